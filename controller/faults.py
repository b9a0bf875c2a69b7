"""Faults made on purpose, in a lab: links and switches taken down, and brought back.

Ports are taken down by OpenFlow (OFPT_PORT_MOD), so that a switch and its neighbour see what they would see of a cable
that is pulled: no carrier. A switch that is "down" has all its ports down; its OpenFlow session stays, for that runs
over a network of its own. Faults outlive the controller (they stay in the switches), so they are kept in a file.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal

from controller.fabric.graph import PortRef
from controller.live.naming import FabricNames
from protocol.plain import did_you_mean

Kind = Literal["link-down", "switch-down"]
_LOG: Final = logging.getLogger("capstan.faults")


class FaultError(ValueError):
    """No such fault or target."""


class FaultConflictError(RuntimeError):
    """The fault is there already."""


@dataclass(frozen=True, slots=True)
class Fault:
    """``target``: name of the link or switch; ``began_at``: Unix seconds; ``ports``: those that it holds down."""

    id: int
    kind: Kind
    target: str
    began_at: float
    ports: tuple[PortRef, ...] = ()


@dataclass(frozen=True, slots=True)
class FaultBegan:
    fault: Fault


@dataclass(frozen=True, slots=True)
class FaultEnded:
    fault: Fault


class Faults:
    """All that are in force. *set_ports* takes ports down or up; *tell* gets `FaultBegan` and `FaultEnded`."""

    def __init__(
        self,
        file: Path,
        names: Callable[[], FabricNames],
        set_ports: Callable[[Iterable[PortRef], bool], None],
        tell: Callable[[FaultBegan | FaultEnded], None],
    ) -> None:
        self._file = file
        self._names = names
        self._set_ports = set_ports
        self._tell = tell
        self._lock = threading.Lock()
        self._faults: dict[int, Fault] = {fault.id: fault for fault in _read(file)}
        self._next_id = max(self._faults, default=0) + 1

    def all(self) -> list[Fault]:
        """The oldest first."""
        return list(self._faults.values())

    def held_down(self, dpid: int) -> list[PortRef]:
        """Ports of a switch that faults hold down: one that has come back is told again."""
        return [port for port in sorted(self._ports()) if port.dpid == dpid]

    def begin(self, kind: Kind, target: str) -> Fault:
        """Returns once switches were told.

        Raises:
            FaultError: there is no such link or switch.
            FaultConflictError: it is down already.
        """
        with self._lock:
            name, ports = self._find(kind, target)
            if any((one.kind, one.target) == (kind, name) for one in self._faults.values()):
                raise FaultConflictError(f"{name} is down already")
            fault = Fault(self._next_id, kind, name, time.time(), ports)
            self._set_ports(set(ports) - self._ports(), False)
            self._next_id += 1
            self._faults[fault.id] = fault
            self._write()
            self._tell(FaultBegan(fault))
            return fault

    def end(self, number: int) -> Fault:
        """Returns once switches were told. Raises FaultError."""
        with self._lock:
            fault = self._faults.get(number)
            if fault is None:
                raise FaultError(f"there is no fault {number} (any more)")
            rest = self._ports(but=number)
            self._set_ports(set(fault.ports) - rest, True)
            del self._faults[number]
            self._write()
            self._tell(FaultEnded(fault))
            return fault

    def _ports(self, but: int | None = None) -> set[PortRef]:
        return {port for fault in self._faults.values() if fault.id != but for port in fault.ports}

    def _find(self, kind: Kind, target: str) -> tuple[str, tuple[PortRef, ...]]:
        names = self._names()
        if kind == "link-down":
            link = names.by_name(target)
            if link is None:
                hint = did_you_mean(target, [one.name for one in names.links])
                raise FaultError(f"there is no link {target!r}{hint}")
            # One end is enough, its peer loses the carrier. A host's own end would lose its routes: the switch's.
            return link.name, (link.b,)
        dpid = names.dpid(target)
        if dpid is None:
            raise FaultError(f"there is no switch {target!r}{did_you_mean(target, names.switches())}")
        ends = {end for link in names.links for end in (link.a, link.b) if end is not None}
        return target, tuple(sorted(end for end in ends if end.dpid == dpid))

    def _write(self) -> None:
        fresh = self._file.with_suffix(".new")
        fresh.write_text(json.dumps([asdict(fault) for fault in self._faults.values()]))
        fresh.replace(self._file)


def _read(file: Path) -> list[Fault]:
    try:
        data: list[dict[str, Any]] = json.loads(file.read_text())
        return [Fault(**{**one, "ports": tuple(PortRef(*port) for port in one["ports"])}) for one in data]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError) as error:
        _LOG.warning("%s cannot be used, no fault is known: %s", file, error)
        return []
