"""The one writer of all ports' queueing disciplines in a lab: rates, buffers and queues, changed while it runs.

Queues, and lower rates, are asked for at switches' ports, by OVSDB (`topologies.port_writer`). A host has those of the
leaf's port that it is plugged into, for its own interface is the first queue that its packets meet.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from typing import Any

from ovsdb.port_queues import ONE_QUEUE, Applied, PortQueues, QueueCounters
from topologies.links import Link, LinkError, reshape_commands, shape_commands
from topologies.namespaces import CommandError, run, run_batch
from topologies.wiring import LabHost, LabLink

Inside = Callable[[str, Callable[[], Any]], "Future[Any]"]


class PortTrees:
    """Trees of all ends of *links*, as they were made first. *inside*: has work done in a node's namespace."""

    def __init__(self, links: Iterable[LabLink], netem: bool, inside: Inside) -> None:
        self._netem = netem
        self._inside = inside
        self._links = {link.name: link for link in links}
        self.shapes = {link.name: link.shape for link in self._links.values()}
        self._at: dict[str, tuple[str, str]] = {}
        """Of each interface: its link and node."""
        self._far: dict[str, str] = {}
        """Of a leaf's port to a host: the host's interface."""
        for link in self._links.values():
            for end, other in ((link.intf1, link.intf2), (link.intf2, link.intf1)):
                self._at[end.name] = link.name, end.node.name
                if isinstance(other.node, LabHost):
                    self._far[end.name] = other.name
        self._queues = dict.fromkeys(self._at, ONE_QUEUE)
        self._unsure: set[str] = set()
        """Interfaces whose last commands have failed: their trees may be of any shape between."""
        self._lock = threading.Lock()

    def reshape(self, name: str, new: Link) -> None:
        """Change a link, both ends; its queues stay. Raises CommandError."""
        with self._lock:
            old = self.shapes[name]
            link = self._links[name]
            work = [
                (
                    end.name,
                    self._commands(end.name, (old, new), (queues, queues), end.name not in self._unsure),
                )
                for end in (link.intf1, link.intf2)
                for queues in [self._queues[end.name]]
            ]
            self.shapes[name] = new
            self._run(work)

    def set_queues(self, wanted: Mapping[str, PortQueues], check: bool = False) -> dict[str, Applied]:
        """Give ports (interfaces by name) their queues; return what each has then.

        check: look whether the kernel still has what was written last, and write it anew if not. A port whose last
        commands failed is written anew in any case, so that its problem stays until they succeed. What a port cannot
        have is its own problem: it keeps what it had, and the others get what they are to have.
        """
        every = {
            **wanted,
            **{self._far[name]: queues for name, queues in wanted.items() if name in self._far},
        }
        with self._lock:
            work = []
            refused: dict[str, str] = {}
            whole = (self._intact(every) if check else set(every)) - self._unsure
            for name, queues in every.items():
                link, had = self.shapes[self._at[name][0]], self._queues[name]
                try:
                    work.append((name, self._commands(name, (link, link), (had, queues), name in whole)))
                    self._queues[name] = queues
                except LinkError as error:
                    refused[name] = str(error)
            problem = ""
            try:
                self._run(work)
            except CommandError as error:
                problem = str(error)
            return {
                name: replace(self._applied(name, refused.get(name, problem)), limit=queues.limit)
                for name, queues in wanted.items()
            }

    def port(self, name: str) -> tuple[Link, int]:
        """Return what an interface has now: its shape, and how many queues, each with that buffer."""
        with self._lock:
            shape, queues = self._shape(name), self._queues[name]
        if queues.buffer_packets is not None:
            shape = replace(shape, buffer_packets=queues.buffer_packets, buffer_bytes=None)
        return shape, 1 if shape.rate_mbps is None else queues.number

    def counters(self, node: str) -> dict[str, tuple[QueueCounters, ...]]:
        """Return what the queues of a switch's ports hold and have sent, by interface."""
        shown = self._inside(node, partial(run, ["tc", "-s", "-j", "qdisc", "show"])).result()
        return read_queues(json.loads(shown))

    def _applied(self, name: str, problem: str) -> Applied:
        queues = self._queues[name]
        link = self._shape(name)
        if queues.limit.delay_us and not self._netem:
            problem = problem or "this kernel has no netem, and so no delay"
        if link.rate_mbps is None:
            return Applied(1, 0, 0, problem, queues.limit)
        packets = queues.buffer_packets or link.limits[0] or 0
        return Applied(queues.number, packets, round(link.rate_mbps * 1e6), problem, queues.limit)

    def _shape(self, name: str) -> Link:
        """Return what an interface has now: its link's shape, or slower."""
        return self.shapes[self._at[name][0]].limited(self._queues[name].limit)

    def _intact(self, names: Iterable[str]) -> set[str]:
        """Return the ports that have the queues that were written last, by the kernel's account."""
        intact = set()
        nodes: dict[str, dict[str, list[int]]] = {}
        for name in names:
            node = self._at[name][1]
            if node not in nodes:
                text = self._inside(node, partial(run, ["tc", "-j", "qdisc", "show"])).result()
                nodes[node] = _limits(json.loads(text))
            shape, queues = self._shape(name), self._queues[name]
            limit = queues.buffer_packets or shape.buffer_bytes or shape.buffer_packets
            have = nodes[node].get(name, [])
            count = 0 if shape.rate_mbps is None else queues.number
            delayed = bool(shape.delay_ms) and self._netem
            if len(have) == count and (delayed or set(have) <= {limit}):
                intact.add(name)
        return intact

    def _commands(
        self, name: str, links: tuple[Link, Link], queues: tuple[PortQueues, PortQueues], whole: bool
    ) -> list[str]:
        """Return lines that take an interface to a shape and queues (before, after); whole: it has the former."""
        before, after = (link.limited(of.limit) for link, of in zip(links, queues, strict=True))
        if whole:
            return reshape_commands(name, before, after, netem=self._netem, queues=queues)
        anything = f"qdisc replace dev {name} root handle 9: pfifo"  # else there may be nothing to delete
        fresh = shape_commands(name, after, self._netem, queues[1])
        return [anything, f"qdisc del dev {name} root", *fresh]

    def _run(self, work: Iterable[tuple[str, list[str]]]) -> None:
        """Run lines of ports, in one batch a namespace, all namespaces at once."""
        work = [(name, lines) for name, lines in work if lines]
        written = {name for name, _ in work}
        self._unsure |= written
        batches: dict[str, list[str]] = {}
        for name, lines in work:
            batches.setdefault(self._at[name][1], []).extend(lines)
        started = [self._inside(node, partial(run_batch, "tc", lines)) for node, lines in batches.items()]
        for future in started:
            future.result()
        self._unsure -= written


def _leaves(disciplines: Iterable[Mapping[str, Any]]) -> Iterable[tuple[str, int, Mapping[str, Any]]]:
    """Yield the port, queue and entry of what `tc -j qdisc show` says, of queues only."""
    for entry in disciplines:
        parent = str(entry.get("parent", ""))
        if parent.startswith("1:") and entry["kind"] in ("pfifo", "bfifo", "netem"):
            yield entry["dev"], int(parent[2:], 16) - 1, entry


def _limits(disciplines: Iterable[Mapping[str, Any]]) -> dict[str, list[int]]:
    limits: dict[str, list[int]] = {}
    for name, _, entry in _leaves(disciplines):
        limits.setdefault(name, []).append(int(entry["options"]["limit"]))
    return limits


def read_queues(disciplines: Iterable[Mapping[str, Any]]) -> dict[str, tuple[QueueCounters, ...]]:
    """Return the counters by port and queue, from `tc -s -j qdisc show`."""
    rows: dict[str, dict[int, QueueCounters]] = {}
    for name, queue, entry in _leaves(disciplines):
        rows.setdefault(name, {})[queue] = QueueCounters(
            entry["qlen"], entry["backlog"], entry["drops"], entry["packets"], entry["bytes"]
        )
    return {name: tuple(of_port[q] for q in sorted(of_port)) for name, of_port in rows.items()}
