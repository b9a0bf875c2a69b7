"""A switch's daemon: it works off one message after the other, slowly, with lies, or not to the end."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from controller.fabric.graph import PortRef
from controller.fabric.switch_data import Held, MeterReading, Port
from controller.openflow.wanted import Difference, SwitchState
from tests.unit.fabric_shapes import LOCAL
from tests.unit.fake_tables import frame_of, packet_of
from tests.unit.simulated_fabric import held_of
from tests.world.clock import Channel, Clock
from tests.world.fabric import Tables

DELAY_S: Final = 0.0005
"""Of a message between a switch and the controller, on average."""


@dataclass(frozen=True, slots=True)
class Hello:
    """What a switch says of itself when it connects."""

    ports: list[Port]
    held: Held | None


@dataclass(eq=False)
class Link:
    """One connection between a switch and a controller."""

    to_switch: Channel
    to_controller: Channel
    unconfirmed: int = 0
    closed: bool = False

    def close(self) -> None:
        self.closed = True
        self.to_switch.close()
        self.to_controller.close()


@dataclass
class Habits:
    """How a switch takes updates. early: it confirms before it has done them. refuses, breaks: the next ones."""

    slow_s: float = 0.0
    early: bool = False
    refuses: int = 0
    breaks: int = 0
    """Updates that it makes, and ends its connection in place of a confirmation."""


@dataclass
class Calls:
    """Whom a switch's daemon calls: what leaves by a port, and what the controller gets on a connection."""

    leaves: Callable[[PortRef, bytes], None]
    packet_in: Callable[[Link, PortRef, int, bytes], None]
    confirmed: Callable[[Link, int, int], None]
    """The connection, the switch, and how many parts of the update were refused."""
    metered: Callable[[Link, int, Mapping[int, MeterReading]], None]
    ended: Callable[[int], None]
    changed: Callable[[int], None]
    """The switch forwards by other entries."""


@dataclass
class Daemon:
    """The switch *dpid* with ports 1 to *ports*; ``link`` is its connection."""

    dpid: int
    ports: int
    tables: Tables
    clock: Clock
    rng: random.Random
    calls: Calls
    alive: bool = True
    reachable: bool = True
    """Whether its messages and the controller's get through."""
    link: Link | None = None
    habits: Habits = field(default_factory=Habits)
    _busy_until: float = 0.0
    _exact: bool = True
    """It holds what it was sent: then a change that does not fit is a defect of the controller."""

    @property
    def busy(self) -> bool:
        """Return whether the switch has yet to come to what it is sent now."""
        return self._busy_until > self.clock.now

    def hello(self) -> Hello:
        """Return what the controller reads back when the switch connects."""
        return Hello(self.all_ports(), held_of(self.tables.state))

    def all_ports(self) -> list[Port]:
        numbers = range(1, self.ports + 1)
        return [Port(LOCAL, f"sw{self.dpid:x}", "02:00:00:00:00:01", True), *map(self.port, numbers)]

    def port(self, number: int) -> Port:
        up = number not in self.tables.down
        return Port(number, f"sw{self.dpid:x}-{number}", "02:00:00:00:00:02", up, 10_000_000)

    def connect(self) -> Link:
        """Make a new connection, in place of the one before, and return it."""
        if self.link is not None:
            self.link.close()
        self.link = Link(Channel(self.clock, self.rng, DELAY_S), Channel(self.clock, self.rng, DELAY_S))
        return self.link

    def cut(self, reachable: bool) -> None:
        """Have messages wait from now on, or go again."""
        self.reachable = reachable
        if self.link is not None:
            for channel in (self.link.to_switch, self.link.to_controller):
                channel.mend() if reachable else channel.cut()

    def end(self) -> None:
        """Kill the daemon, and all entries with it; cables keep their light."""
        self.alive = False
        self.tables.state = SwitchState()
        self._exact = True
        self.tables.meter_counts.clear()
        if self.link is not None:
            self.link.close()
            self.link = None
        self.calls.changed(self.dpid)

    # Messages, in order

    def update(self, link: Link, change: Difference, whole: bool) -> None:
        """Handle an update that has arrived."""
        early = self.habits.early
        if early:
            link.to_controller.send(lambda: self.calls.confirmed(link, self.dpid, 0))
        self._in_turn(link, lambda: self._apply(link, change, whole, early), self.habits.slow_s)

    def packet_out(self, link: Link, port: int, frame: bytes) -> None:
        self._in_turn(link, lambda: self.calls.leaves(PortRef(self.dpid, port), frame))

    def read_meters(self, link: Link) -> None:
        def read() -> None:
            counts = self.tables.meter_counts
            readings = {
                one: MeterReading(counts.get(one, 0), 1500 * counts.get(one, 0))
                for one in self.tables.state.meters
            }
            link.to_controller.send(lambda: self.calls.metered(link, self.dpid, readings))

        self._in_turn(link, read)

    def frame_in(self, port: int, frame: bytes) -> None:
        """Handle LLDP or ARP that comes in, as the tables say."""
        if not self.alive or port in self.tables.down:
            return
        for outcome in self.tables.every_outcome(packet_of(frame), port):
            for cookie in outcome.punted:
                self.copy_up(PortRef(self.dpid, port), cookie, frame)
            for way, sent in outcome.sent:
                self.calls.leaves(PortRef(self.dpid, way), frame_of(sent))

    def copy_up(self, place: PortRef, cookie: int, frame: bytes) -> None:
        """Send the controller a packet, as the entry with *cookie* does."""
        link = self.link
        if link is not None:
            link.to_controller.send(lambda: self.calls.packet_in(link, place, cookie, frame))

    def _in_turn(self, link: Link, work: Callable[[], None], takes_s: float = 0.0) -> None:
        self._busy_until = max(self._busy_until, self.clock.now) + takes_s
        if self._busy_until <= self.clock.now:
            work()
            return

        def later() -> None:
            if self.link is link and self.alive:
                work()

        self.clock.at(self._busy_until, later)

    def _apply(self, link: Link, change: Difference, whole: bool, early: bool) -> None:
        refused, habits = 0, self.habits
        parts = len(change.add_groups) + len(change.add_flows)
        if habits.refuses and parts and not early:  # its errors would go first
            habits.refuses -= 1
            left_out = frozenset(self.rng.sample(range(parts), self.rng.randint(1, min(parts, 5))))
            refused = self.tables.apply_some(change, whole, left_out)
            self._exact = False
        elif self._exact or whole:
            self.tables.apply(change, whole=whole)
            self._exact = True
        else:
            refused = self.tables.apply_some(change, whole, frozenset())
        self.calls.changed(self.dpid)
        if habits.breaks:
            habits.breaks -= 1
            self.calls.ended(self.dpid)
        elif not early:
            link.to_controller.send(lambda: self.calls.confirmed(link, self.dpid, refused))
