"""What stands in the OpenFlow shell's place where there are no switches: the same calls, without sockets or a thread.

So a controller that only takes experiments needs neither os-ken nor what Linux alone has.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol, TypeVar

from controller.fabric.graph import PortRef
from controller.plane.effects import Effects
from controller.plane.faults import PortsLeftOut
from controller.shell.shell_events import ShellEvent

T = TypeVar("T")


class Shell(Protocol):
    """What a controller needs of the shell round its control plane; `OpenFlowShell` describes it."""

    @property
    def port(self) -> int:
        """Return the TCP port that switches connect to."""

    @staticmethod
    def now() -> float:
        """Return the clock of the control plane: seconds, monotonic."""

    def start(self) -> None:
        """Begin."""

    def stop(self) -> None:
        """End."""

    def address_of(self, dpid: int) -> str | None:
        """Return the address that a switch calls from."""

    def post(self, work: Callable[[], object]) -> None:
        """Have *work* done; `Effects` that it returns are carried out."""

    def call(self, work: Callable[[], T], timeout: float = 10.0) -> T:
        """Do as `post`, and return what *work* returned. timeout: seconds."""

    def wait_applied(self, timeout: float) -> None:
        """Wait until switches have confirmed all updates, at most *timeout* seconds."""

    def read_ports(self) -> None:
        """Ask all switches for their ports' counters."""

    def set_ports(self, ports: Iterable[PortRef], up: bool) -> PortsLeftOut:
        """Take ports down, or up again. Return those that are left out."""

    def set_ports_soon(self, ports: Iterable[PortRef], up: bool) -> None:
        """Take ports down, or up again, soon."""

    def counters(self) -> Mapping[str, int]:
        """Return totals since the start, by name."""


class SwitchlessShell:
    """Calls a control plane that has no switches, one call at a time, in the caller's thread.

    on_event: gets the events of the control plane.
    """

    port: int = 0

    def __init__(self, on_event: Callable[[ShellEvent], None]) -> None:
        self._on_event = on_event
        self._one_at_a_time = threading.RLock()

    @staticmethod
    def now() -> float:
        """Return the clock of the control plane: seconds, monotonic."""
        return time.monotonic()

    def start(self) -> None:
        """Begin: there is nothing to listen for."""

    def stop(self) -> None:
        """End: there is nothing to close."""

    def address_of(self, dpid: int) -> str | None:
        """Return None: no switch calls."""
        return None

    def post(self, work: Callable[[], object]) -> None:
        """Do *work*, and pass on the events of what it returns; updates have no switch to go to."""
        self.call(work)

    def call(self, work: Callable[[], T], timeout: float = 10.0) -> T:
        """Do as `post`, and return what *work* returned, or raise what it raised. *timeout*: for other shells."""
        with self._one_at_a_time:
            result = work()
            if isinstance(result, Effects):
                for event in result.events:
                    self._on_event(event)
            return result

    def wait_applied(self, timeout: float) -> None:
        """Return: no switch has to confirm anything."""

    def read_ports(self) -> None:
        """Return: there are no ports."""

    def set_ports(self, ports: Iterable[PortRef], up: bool) -> PortsLeftOut:
        """Return all: their switches are away."""
        return PortsLeftOut(away=frozenset(ports))

    def set_ports_soon(self, ports: Iterable[PortRef], up: bool) -> None:
        """Return: their switches are away."""

    def counters(self) -> Mapping[str, int]:
        """Return none: nothing is counted."""
        return {}
