"""The queues of all switches' ports: a connection to each one's database, kept at what the scheme wants.

Runs beside the OpenFlow shell, in the thread of `ovsdb.watcher`; other threads may call everything here.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Final

from controller.fabric.graph import PortRef
from controller.process.control_thread import ControlThread
from controller.queues.ports import COLUMNS, PortState, SwitchPlan, plan
from ovsdb.port_queues import (
    ANSWERED,
    ASKED,
    COUNTERS,
    ONE_QUEUE,
    OVSDB_PORT,
    PortLimit,
    PortQueues,
    QueueCounters,
    counters_from_text,
)
from ovsdb.session import Tables, set_keys
from ovsdb.watcher import OvsdbWatcher

LOG: Final = logging.getLogger(__name__)
FRESH_S: Final = 0.25
"""Counters that are no older are not requested again."""
LOST_S: Final = 1.0
"""A request that has no answer by then is repeated."""
COUNTED: Final = frozenset({"Open_vSwitch"})
"""The table that holds requests for counters and their answers, several times a second; no plan depends on it."""
LONGEST_NUMBER: Final = 20
"""Digits of the number of a request for counters."""
CONNECT_S: Final = 3.0
"""A switch whose database does not answer for so long is not waited for any more."""


@dataclass(frozen=True, slots=True)
class SwitchQueues:
    """What is known of one switch's queues.

    problems: why they are not what is wanted, in words. counters: by port's name and queue; empty if not counted.
    counted_at: when, monotonic seconds; None: never.
    """

    dpid: int
    name: str
    datapath: str
    in_force: bool
    problems: tuple[str, ...]
    ports: tuple[PortState, ...]
    counters: dict[str, tuple[QueueCounters, ...]]
    counted_at: float | None


@dataclass(slots=True)
class _Switch:
    since: float
    tables: Tables | None = None
    plan: SwitchPlan | None = None
    outdated: bool = False
    """The plan is of wishes from before: the watcher's thread, which alone may read the tables, makes another."""
    ticket: int | None = None
    """Of the transaction that has not been answered yet."""
    refused: str = ""
    requested: int = 0
    """Number of the last request for counters; 0: none is open."""
    requested_at: float = 0.0
    answered: int = 0
    counters: dict[str, tuple[QueueCounters, ...]] = field(default_factory=dict)
    counted_at: float | None = None


class QueueService:
    """Between `start` and `stop`. port: where switches' databases listen, on the addresses that they call from."""

    def __init__(self, port: int = OVSDB_PORT) -> None:
        self._port = port
        self._wanted = ONE_QUEUE
        self._limits: dict[int, dict[int, PortLimit]] = {}
        """By dpid and port."""
        self._switches: dict[int, _Switch] = {}
        self._changed = threading.Condition()
        self._first_request = self._last_request = time.time_ns()
        self._watcher = OvsdbWatcher(COLUMNS, self._on_tables, self._on_done, ControlThread)

    def start(self) -> None:
        """Begin to watch the databases of switches."""
        self._watcher.start()

    def stop(self) -> None:
        """Disconnect from the databases; ports keep their queues."""
        self._watcher.stop()

    @property
    def wanted(self) -> PortQueues:
        """Return the queues that every port shall have."""
        return self._wanted

    def switch_up(self, dpid: int, address: str) -> None:
        """Look for the database of a switch at *address*, which it has called from."""
        with self._changed:
            self._switches.setdefault(dpid, _Switch(time.monotonic())).since = time.monotonic()
        self._watcher.watch(_key(dpid), (address, self._port))

    def switch_down(self, dpid: int) -> None:
        """Forget a switch whose connection is lost; its ports keep their queues."""
        with self._changed:
            self._switches.pop(dpid, None)
            self._changed.notify_all()
        self._watcher.watch(_key(dpid), None)

    def set_queues(self, wanted: PortQueues) -> None:
        """Set the queues that every port shall have; `wait` returns when they have them."""
        with self._changed:
            self._wanted = wanted
            for switch in self._switches.values():
                switch.refused = ""
                switch.outdated = True
        self._watcher.post(self._bring_all)

    def set_limits(self, limits: Mapping[PortRef, PortLimit]) -> None:
        """Set which ports are to be slower than their links from now on; all others are not."""
        by_switch: dict[int, dict[int, PortLimit]] = {}
        for (dpid, port), limit in limits.items():
            by_switch.setdefault(dpid, {})[port] = limit
        with self._changed:
            changed = [
                dpid for dpid in {*self._limits, *by_switch} if self._limits.get(dpid) != by_switch.get(dpid)
            ]
            self._limits = by_switch
            for dpid in changed:
                if dpid in self._switches:
                    self._switches[dpid].refused = ""
                    self._switches[dpid].outdated = True
        if changed:
            self._watcher.post(self._bring_all)

    def wait_ports(self, ports: Collection[PortRef], timeout_s: float) -> list[str]:
        """Wait until *ports* have what is wanted; return what is not so then, in words, at once if that is final."""
        deadline = time.monotonic() + timeout_s
        with self._changed:
            while True:
                states = [self._port_problem(port) for port in sorted(ports)]
                problems = [text for text, _ in states if text]
                if time.monotonic() >= deadline or not any(pending for text, pending in states if text):
                    return list(dict.fromkeys(problems))
                self._changed.wait(min(deadline - time.monotonic(), 0.1))

    def _port_problem(self, port: PortRef) -> tuple[str, bool]:
        """Return what keeps a port from what is wanted ("": nothing), and whether it may go by itself."""
        switch = self._switches.get(port.dpid)
        if switch is None:
            return f"switch {_key(port.dpid)} is not connected", False
        if switch.refused:
            return f"its database refuses: {switch.refused}", False
        if switch.plan is None:
            return self._watcher.problem(_key(port.dpid)) or "its database has no bridge of this id", True
        if switch.outdated:
            return "not in force yet", True
        for state in switch.plan.ports:
            if state.number == port.port and state.in_force:
                return "", False
            if state.number == port.port:
                return state.problem or "not in force yet", not state.problem
        return f"port {port.port} is not in its database", True

    def wait(self, timeout_s: float) -> list[str]:
        """Wait until all switches have the wanted queues; return what is not so then, at once if that is final."""
        deadline = time.monotonic() + timeout_s
        with self._changed:
            while True:
                now = time.monotonic()
                problems, pending = self._problems(now)
                if not pending or now >= deadline:
                    return problems
                self._changed.wait(min(deadline - now, 0.1))

    def problems(self) -> list[str]:
        """Return what is not as wanted now, in words, by switch."""
        with self._changed:
            return self._problems(time.monotonic())[0]

    def rates_bps(self) -> dict[tuple[int, int], int]:
        """Return the known rates of ports, bit/s by dpid and OpenFlow port, without waiting."""
        with self._changed:
            return {
                (dpid, port.number): port.rate_bps
                for dpid, switch in self._switches.items()
                if switch.plan is not None
                for port in switch.plan.ports
                if port.rate_bps > 0
            }

    def latest(self, age_s: float) -> dict[PortRef, tuple[float, tuple[QueueCounters, ...]]]:
        """Return the known counters of all ports, and when they came (monotonic seconds), without waiting.

        Switches whose counters are older than *age_s* are asked for new ones, which the next call finds.
        """
        now = time.monotonic()
        newest: dict[PortRef, tuple[float, tuple[QueueCounters, ...]]] = {}
        with self._changed:
            for dpid, switch in self._switches.items():
                if switch.plan is None or not _counts(switch):
                    continue
                if switch.counted_at is None or now - switch.counted_at >= age_s:
                    self._request_once(dpid, switch, now)
                if switch.counted_at is not None:
                    for port in switch.plan.ports:
                        counters = switch.counters.get(port.name, ())
                        if len(counters) == port.queues:  # else of the queues that it had before
                            newest[PortRef(dpid, port.number)] = switch.counted_at, counters
        return newest

    def _request_once(self, dpid: int, switch: _Switch, now: float) -> None:
        """Request counters, unless an answer is still to come."""
        if switch.requested and now - switch.requested_at < LOST_S:
            return
        self._last_request += 1
        switch.requested, switch.requested_at = self._last_request, now
        self._watcher.post(partial(self._request, dpid, switch.requested))

    def snapshot(self, timeout_s: float = 1.0) -> list[SwitchQueues]:
        """Return all switches, by dpid, with counters that are at most `FRESH_S` old where they came within
        *timeout_s*."""
        now = time.monotonic()
        deadline = now + timeout_s
        with self._changed:
            requested = []
            for dpid, switch in self._switches.items():
                if not _counts(switch) or (
                    switch.counted_at is not None and now - switch.counted_at < FRESH_S
                ):
                    continue
                self._request_once(dpid, switch, now)
                requested.append((switch, switch.requested))
            while (
                any(switch.answered < number for switch, number in requested) and time.monotonic() < deadline
            ):
                self._changed.wait(max(0.0, deadline - time.monotonic()))
            return [self._view(dpid, switch) for dpid, switch in sorted(self._switches.items())]

    def _view(self, dpid: int, switch: _Switch) -> SwitchQueues:
        plan = switch.plan
        return SwitchQueues(
            dpid,
            plan.bridge if plan else "",
            plan.datapath if plan else "",
            plan is not None and plan.in_force and not switch.outdated,
            tuple(self._switch_problems(dpid, switch)),
            plan.ports if plan else (),
            dict(switch.counters),
            switch.counted_at,
        )

    def _problems(self, now: float) -> tuple[list[str], bool]:
        """Return in words what is wrong, and whether some of it may go by itself soon. The caller holds the
        lock.
        """
        problems: list[str] = []
        pending = False
        for dpid, switch in sorted(self._switches.items()):
            words = self._switch_problems(dpid, switch)
            name = switch.plan.bridge if switch.plan else _key(dpid)
            problems += [f"{name}: {text}" for text in words]
            if switch.plan is None:
                pending |= bool(words) and now - switch.since < CONNECT_S
            elif switch.outdated:
                pending |= not switch.refused
            elif not switch.plan.in_force and not switch.refused:
                pending |= any(not port.in_force and not port.problem for port in switch.plan.ports)
        return problems, pending

    def _switch_problems(self, dpid: int, switch: _Switch) -> list[str]:
        if switch.refused:
            return [f"its database refuses: {switch.refused}"]
        if switch.plan is None:
            if self._wanted == ONE_QUEUE:
                return []  # most likely it has never had more
            why = self._watcher.problem(_key(dpid)) or "it has no bridge of this datapath id"
            return [f"its database cannot be asked for queues: {why}"]
        if switch.outdated:
            return ["not in force yet"]
        waiting = [port.name for port in switch.plan.ports if not port.in_force and not port.problem]
        late = [f"{', '.join(waiting)}: not in force yet"] if waiting else []
        return [*switch.plan.problems, *late]

    # In the watcher's thread

    def _on_tables(self, name: str, tables: Tables | None, changed: frozenset[str]) -> None:
        dpid = int(name, 16)
        with self._changed:
            switch = self._switches.get(dpid)
            if switch is None:
                return
            switch.tables = tables
            if tables is None:
                switch.plan, switch.ticket, switch.refused, switch.since = None, None, "", time.monotonic()
                switch.requested = 0
            else:
                if switch.plan is None or changed - COUNTED:
                    switch.outdated = True
                self._read_counters(switch, tables)
                self._bring(dpid, switch)
            self._changed.notify_all()

    def _on_done(self, name: str, ticket: int, error: str) -> None:
        dpid = int(name, 16)
        with self._changed:
            switch = self._switches.get(dpid)
            if switch is None or switch.ticket != ticket:
                return
            switch.ticket, switch.refused = None, error
            if error:
                LOG.error("queues of switch %s: its database refuses: %s", name, error)
            else:
                self._bring(dpid, switch)
            self._changed.notify_all()

    def _bring_all(self) -> None:
        with self._changed:
            for dpid, switch in self._switches.items():
                try:
                    self._bring(dpid, switch)
                except Exception:  # its tables' fault: they were good enough for what was wanted before
                    LOG.exception("fault while planning the queues of switch %s", _key(dpid))
                    switch.refused = "a fault in this program"
            self._changed.notify_all()

    def _bring(self, dpid: int, switch: _Switch) -> None:
        """Send what is missing, unless something is under way: rows would be made twice."""
        if switch.outdated:
            if switch.tables is not None:
                switch.plan = plan(switch.tables, dpid, self._wanted, self._limits.get(dpid))
            switch.outdated = False
        if (
            switch.plan is not None
            and switch.plan.operations
            and switch.ticket is None
            and not switch.refused
        ):
            switch.ticket = self._watcher.transact(_key(dpid), switch.plan.operations)

    def _request(self, dpid: int, number: int) -> None:
        with self._changed:
            switch = self._switches.get(dpid)
            if switch is not None and switch.tables is not None:
                for uuid in islice(switch.tables["Open_vSwitch"], 1):  # there is one, in a real database
                    self._watcher.transact(
                        _key(dpid), set_keys("Open_vSwitch", uuid, "external_ids", {ASKED: str(number)})
                    )

    def _read_counters(self, switch: _Switch, tables: Tables) -> None:
        for row in tables["Open_vSwitch"].values():
            ids = row["external_ids"]
            text = ids.get(ANSWERED, "")
            answered = int(text) if text.isdecimal() and len(text) <= LONGEST_NUMBER else 0
            if self._first_request < answered <= self._last_request and answered > switch.answered:
                switch.answered, switch.counted_at = answered, time.monotonic()
                switch.counters = counters_from_text(ids.get(COUNTERS, ""))
                if answered >= switch.requested:
                    switch.requested = 0


def _key(dpid: int) -> str:
    return f"{dpid:016x}"


def _counts(switch: _Switch) -> bool:
    return switch.plan is not None and any(port.by == "writer" for port in switch.plan.ports)
