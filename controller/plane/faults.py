"""Faults made on purpose, in a lab: links and switches taken down, links made slower, agents killed; and brought back.

Ports are taken down by OpenFlow (OFPT_PORT_MOD), so that a switch and its neighbour see what they would see of a cable
that is pulled: no carrier. A switch that is "down" has all its ports down; its OpenFlow session stays, for that runs
over a network of its own. A slow link's ports are limited by their switches' databases (`ovsdb.port_queues`). An agent
that is down was made to end as by a crash; the lab starts it again when the fault has ended. Faults outlive the
controller (they stay where they were made), so they are kept in a file.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, Protocol

from capstan_client.errors import CapstanError
from controller.fabric.graph import PortRef
from controller.plane.naming import FabricNames, NamedLink
from ovsdb.port_queues import PortLimit
from plain.reading import did_you_mean

Kind = Literal["link-down", "switch-down", "slow-link", "agent-down"]
_LOG: Final = logging.getLogger("capstan.faults")
LIMIT_S: Final = 5.0
"""A link that has not become slower by then, does not."""


class FaultError(CapstanError, ValueError):
    """No such fault or target."""


class FaultConflictError(CapstanError, RuntimeError):
    """The fault is there already, or this fabric cannot have it."""


@dataclass(frozen=True, slots=True)
class Fault:
    """``target``: name of the link, switch or host; ``began_at``: Unix seconds; ``ports``: those that it is about.

    ``rate_mbps`` (at most), ``delay_ms`` (on top): of slow links; None: as it was.
    """

    id: int
    kind: Kind
    target: str
    began_at: float
    ports: tuple[PortRef, ...] = ()
    rate_mbps: float | None = None
    delay_ms: float | None = None


@dataclass(frozen=True, slots=True)
class FaultBegan:
    """A fault is in force."""

    fault: Fault


@dataclass(frozen=True, slots=True)
class FaultEnded:
    """A fault is undone."""

    fault: Fault


class PortsLeftOut(NamedTuple):
    """Ports that were not set. ``away``: their switches are; ``missing``: their switches are here, without them."""

    away: frozenset[PortRef] = frozenset()
    missing: frozenset[PortRef] = frozenset()


class Reach(Protocol):
    """What faults are made with."""

    def names(self) -> FabricNames:
        """Return the names of the fabric as it is now."""

    def set_ports(self, ports: Iterable[PortRef], up: bool) -> PortsLeftOut:
        """Take ports down or up. Return those that are left out."""

    def set_limits(self, limits: Mapping[PortRef, PortLimit]) -> None:
        """Limit just these ports."""

    def wait_ports(self, ports: Collection[PortRef], timeout_s: float) -> list[str]:
        """Wait until ports have their limits; return what is not so then, in words."""

    def crash_agent(self, host: str) -> None:
        """Have a host's agent crash. Raise KeyError for a host without an agent."""


class Faults:
    """All that are in force. *publish* gets `FaultBegan` and `FaultEnded`."""

    def __init__(self, file: Path, reach: Reach, publish: Callable[[FaultBegan | FaultEnded], None]) -> None:
        self._file = file
        self._reach = reach
        self._publish = publish
        self._lock = threading.Lock()
        faults, to_raise = _read(file)
        self._faults: dict[int, Fault] = {fault.id: fault for fault in faults}
        self._to_raise = to_raise
        """Ports that ended faults have left down, since their switches were away. The thread that ends faults waits for
        that of the switches, which takes from here: so there is no lock for it.
        """
        self._next_id = max(self._faults, default=0) + 1

    def all(self) -> list[Fault]:
        """Return all faults, the oldest first."""
        return list(self._faults.values())

    def held_down(self, dpid: int) -> list[PortRef]:
        """Return ports of a switch that faults hold down: a switch that has come back gets them again."""
        return [port for port in sorted(self._held(self.all())) if port.dpid == dpid]

    def let_go(self, dpid: int) -> list[PortRef]:
        """Return the ports of a switch that has come back which faults held down that ended meanwhile; each once."""
        ports = {port for port in tuple(self._to_raise) if port.dpid == dpid}
        self._to_raise -= ports
        return sorted(ports - self._held(self.all()))

    def limits(self) -> dict[PortRef, PortLimit]:
        """Return the limits of all ports that faults make slower."""
        return _limits(self.all())

    def holds_agent(self, host: str) -> bool:
        """Return whether the agent of a host is to be down."""
        return any((fault.kind, fault.target) == ("agent-down", host) for fault in self.all())

    def begin(
        self, kind: Kind, target: str, rate_mbps: float | None = None, delay_ms: float | None = None
    ) -> Fault:
        """Begin a fault. Returns once switches have it; for a slow link: once it is slow.

        Raises:
            FaultError: there is no such link, switch or host.
            FaultConflictError: it is down, or slow, already; or cannot be.
            OSError: it cannot be written to the file; nothing has changed.
        """
        with self._lock:
            name, ports = self._find(kind, target)
            if any((fault.kind, fault.target) == (kind, name) for fault in self._faults.values()):
                state = "slow already: end that fault first" if kind == "slow-link" else "down already"
                raise FaultConflictError(f"{name} is {state}")
            fault = Fault(self._next_id, kind, name, time.time(), ports, rate_mbps, delay_ms)
            others = self.all()
            self._write([*others, fault])  # before all else: what is in force is what a restart would find
            self._faults[fault.id] = fault  # who sees an agent gone is to find why
            try:
                self._make(fault, others)
            except BaseException:
                del self._faults[fault.id]
                with suppress(OSError):
                    self._write(others)
                raise
            self._next_id += 1
            self._publish(FaultBegan(fault))
            return fault

    def end(self, number: int) -> Fault:
        """End a fault. Returns once switches have it.

        Raises:
            FaultError: there is none of this number.
            OSError: it cannot be written to the file; nothing has changed.
        """
        with self._lock:
            fault = self._faults.get(number)
            if fault is None:
                raise FaultError(f"there is no fault {number} (any more)")
            rest = [fault for fault in self._faults.values() if fault.id != number]
            raised = self._held([fault]) - self._held(rest)
            before, new = self._faults, raised - self._to_raise
            # Before switches are asked: what is away then may be back before this thread knows that it was.
            self._faults = {other.id: other for other in rest}
            self._to_raise |= new
            try:
                self._write(rest)
                self._unmake(fault, rest, raised)
            except BaseException:
                self._faults = before
                self._to_raise -= new
                with suppress(OSError):
                    self._write(self.all())
                raise
            with suppress(OSError):  # it says too much then: what is up already is raised once more
                self._write(rest)
            self._publish(FaultEnded(fault))
            return fault

    def _make(self, fault: Fault, others: list[Fault]) -> None:
        if fault.kind == "slow-link":
            self._slow(fault, others)
        elif fault.kind == "agent-down":
            self._crash(fault.target)
        else:
            ports = set(fault.ports) - self._held(others)
            if ports and self._reach.set_ports(ports, False).missing == ports:
                raise FaultConflictError(f"{fault.target} cannot be taken down: its ports are gone")

    def _unmake(self, fault: Fault, rest: list[Fault], raised: set[PortRef]) -> None:
        if fault.kind == "slow-link":
            self._reach.set_limits(_limits(rest))
            for text in self._reach.wait_ports(
                fault.ports, LIMIT_S
            ):  # a switch that comes back gets it again
                _LOG.warning("%s is not as fast as it was: %s", fault.target, text)
        elif raised:  # an agent comes back by itself
            left_out = self._reach.set_ports(raised, True)
            if left_out.missing:  # a port that comes back is up
                gone = ", ".join(f"{port.port} of switch {port.dpid:#x}" for port in sorted(left_out.missing))
                _LOG.warning("%s is no longer down, and has lost ports meanwhile: %s", fault.target, gone)
            self._to_raise -= raised - left_out.away

    def _slow(self, fault: Fault, others: list[Fault]) -> None:
        self._reach.set_limits(_limits([*others, fault]))
        problems = self._reach.wait_ports(fault.ports, LIMIT_S)
        if problems:
            self._reach.set_limits(_limits(others))
            raise FaultConflictError(f"{fault.target} cannot be made slower: {'; '.join(problems)}")

    def _crash(self, host: str) -> None:
        try:
            self._reach.crash_agent(host)
        except KeyError:
            raise FaultError(f"there is no agent {host!r} that is connected") from None

    @staticmethod
    def _held(faults: Iterable[Fault]) -> set[PortRef]:
        return {
            port for fault in faults if fault.kind in ("link-down", "switch-down") for port in fault.ports
        }

    def _find(self, kind: Kind, target: str) -> tuple[str, tuple[PortRef, ...]]:
        """Return the target's own name, and the ports that a fault of it is about."""
        if kind == "agent-down":
            return target, ()
        names = self._reach.names()
        if kind == "link-down":
            # One end is enough, its peer loses the carrier. A host's own end would lose its routes: the switch's.
            link = _link(names, target)
            return link.name, (link.b,)
        if kind == "slow-link":
            link = _link(names, target)
            return link.name, tuple(end for end in (link.a, link.b) if end is not None)
        dpid = names.dpid(target)
        if dpid is None:
            raise FaultError(f"there is no switch {target!r}{did_you_mean(target, names.switches())}")
        ends = {end for link in names.links for end in (link.a, link.b) if end is not None}
        return target, tuple(sorted(end for end in ends if end.dpid == dpid))

    def _write(self, faults: Iterable[Fault]) -> None:
        fresh = self._file.with_suffix(".new")
        document = {"faults": [asdict(fault) for fault in faults], "to_raise": sorted(self._to_raise)}
        fresh.write_text(json.dumps(document))
        fresh.replace(self._file)


def _link(names: FabricNames, target: str) -> NamedLink:
    link = names.by_name(target)
    if link is None:
        hint = did_you_mean(target, [link.name for link in names.links])
        raise FaultError(f"there is no link {target!r}{hint}")
    return link


def _limits(faults: Iterable[Fault]) -> dict[PortRef, PortLimit]:
    """Return the ports of slow links; a link is named by one fault at most."""
    return {
        port: PortLimit(
            None if fault.rate_mbps is None else round(fault.rate_mbps * 1e6),
            round((fault.delay_ms or 0.0) * 1000),
        )
        for fault in faults
        if fault.kind == "slow-link"
        for port in fault.ports
    }


def _read(file: Path) -> tuple[list[Fault], set[PortRef]]:
    """Return the faults, and the ports to raise."""
    try:
        document: Any = json.loads(file.read_text())
        faults = [
            Fault(**{**entry, "ports": tuple(PortRef(*port) for port in entry["ports"])})
            for entry in document["faults"]
        ]
        return faults, {PortRef(*port) for port in document["to_raise"]}
    except FileNotFoundError:
        return [], set()
    except (OSError, ValueError, KeyError, TypeError) as error:
        _LOG.warning("%s cannot be used, no fault is known: %s", file, error)
        return [], set()
