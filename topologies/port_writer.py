"""What a lab does on behalf of its switches: it gives their ports the queues that the controller asks for by OVSDB.

Open vSwitch's userspace datapath cannot bring packets to queues, and sets no buffer of a queue in packets; who writes
the ports' queueing disciplines can do both. The keys: `ovsdb.port_queues`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from ovsdb.port_queues import (
    ANSWERED,
    APPLIED,
    ASKED,
    COUNTERS,
    WRITER,
    Applied,
    PortQueues,
    QueuesError,
    counters_to_text,
)
from ovsdb.session import Tables, set_keys
from ovsdb.watcher import OvsdbWatcher
from topologies.namespaces import CommandError
from topologies.port_trees import PortTrees

LOG: Final = logging.getLogger(__name__)
COLUMNS: Final = {
    "Open_vSwitch": ("external_ids",),
    "Port": ("name", "qos"),
    "QoS": ("other_config", "external_ids"),
}


class PortWriter:
    """The thread that listens to the switches' databases. databases: Unix sockets, by switch."""

    def __init__(self, trees: PortTrees, databases: Mapping[str, Path]) -> None:
        self._trees = trees
        self._databases = dict(databases)
        self._tables: dict[str, Tables] = {}
        self._watcher = OvsdbWatcher(COLUMNS, self._on_tables)

    def start(self) -> None:
        """Begin to watch all databases."""
        self._watcher.start()
        for name, place in self._databases.items():
            self._watcher.watch(name, place)

    def stop(self) -> None:
        """Let go of all databases; ports keep what they have."""
        self._watcher.stop()

    def reshaped(self, switch: str) -> None:
        """Note that a link of this switch has changed: what was said of its ports may not hold any more."""
        self._watcher.post(partial(self._again, switch))

    def _again(self, switch: str) -> None:
        if switch in self._tables:
            try:
                self._on_tables(switch, self._tables[switch])
            except (
                OSError
            ) as error:  # no process can be made just now: what its database says next does the same
                LOG.warning("ports of %s are not looked at after their link has changed: %s", switch, error)

    def _on_tables(self, switch: str, tables: Tables | None, _changed: frozenset[str] = frozenset()) -> None:
        if tables is None:
            self._tables.pop(switch, None)
            return
        returned = switch not in self._tables
        self._tables[switch] = tables
        try:
            operations = [*self._queues(tables, returned), *self._counters(switch, tables)]
        except (CommandError, RuntimeError) as error:  # its namespace ends, or the lab's workers do
            LOG.debug("ports of %s: %s", switch, error)
            return
        if operations:
            self._watcher.transact(switch, operations)

    def _queues(self, tables: Tables, returned: bool) -> list[dict[str, Any]]:
        rows = dict(_ports(tables))
        wanted: dict[str, PortQueues] = {}
        applied: dict[str, Applied] = {}
        for port, (_, row) in rows.items():
            try:
                wanted[port] = PortQueues.from_config(row["other_config"])
            except QueuesError as error:
                applied[port] = Applied(1, 0, 0, str(error))
        applied.update(self._trees.set_queues(wanted, check=returned))
        return [
            operation
            for port, (uuid, row) in rows.items()
            if row["external_ids"].get(APPLIED) != applied[port].to_text()
            for operation in set_keys("QoS", uuid, "external_ids", {APPLIED: applied[port].to_text()})
        ]

    def _counters(self, switch: str, tables: Tables) -> list[dict[str, Any]]:
        for uuid, row in tables["Open_vSwitch"].items():
            request = row["external_ids"].get(ASKED, "")
            if request and row["external_ids"].get(ANSWERED) != request:
                text = counters_to_text(self._trees.counters(switch))
                return set_keys("Open_vSwitch", uuid, "external_ids", {ANSWERED: request, COUNTERS: text})
        return []


def _ports(tables: Tables) -> list[tuple[str, tuple[str, dict[str, Any]]]]:
    """Return ports that are ours to write, each with its row of table QoS."""
    ports = []
    for port in tables["Port"].values():
        row = tables["QoS"].get(port["qos"]) if port["qos"] else None
        if row is not None and WRITER in row["external_ids"]:
            ports.append((port["name"], (port["qos"], row)))
    return ports
