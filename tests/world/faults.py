"""What goes wrong, drawn by a seed. Rare things are common here; each is mended by `Faults.mend_all` at the latest."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from controller.fabric.graph import PortRef
from controller.schemes.scheme import Scheme
from protocol.control import FlowTypes
from protocol.priority import TypePriority
from tests.world.agents import Host
from tests.world.switches import Habits
from tests.world.world import Weather, World

FIRST_PORT: Final = 5000
CONNECTIONS: Final = 20_000
"""Their first source port."""
SEGMENT: Final = 1300
SYN, ACK, FIN = 2, 16, 1


class Faults:
    """Draws faults for *world*. ``log`` says what happened when, in words."""

    def __init__(self, world: World, schemes: Sequence[Scheme], directory: Path, rng: random.Random) -> None:
        self._world = world
        self._schemes = schemes
        self._directory = directory
        self._rng = rng
        self.log: list[str] = []
        self._mended = 0
        self._kinds: tuple[tuple[int, Callable[[], str]], ...] = (
            (4, self._cable),
            (2, self._one_end),
            (2, self._no_light),
            (3, self._flap),
            (3, self._kill_switch),
            (3, self._break_link),
            (3, self._unreachable_switch),
            (3, self._habit),
            (3, self._kill_controller),
            (2, self._stall_controller),
            (3, self._kill_agent),
            (2, self._unreachable_agent),
            (1, self._stall_agent),
            (3, self._scheme),
            (2, self._weather),
            (4, self._packets),
            (2, self._move_host),
            (4, self._connection),
            (2, self._flow_types),
        )

    def next(self) -> None:
        """Let something go wrong now."""
        weights = [weight for weight, _ in self._kinds]
        (_, fault) = self._rng.choices(self._kinds, weights)[0]
        self._note(fault())

    def mend_all(self) -> None:
        """Mend everything that is broken."""
        world = self._world
        self._note("all is mended")
        self._mended += 1
        world.weather = Weather()
        world.hardware.lossy.clear()
        if world.controller is None:
            world.start_controller()
        for dpid, daemon in world.daemons.items():
            daemon.habits = Habits()
            if not daemon.alive:
                world.revive_switch(dpid)
            if not daemon.reachable:
                world.reach_switch(dpid, True)
            for number in sorted(daemon.tables.down):
                if PortRef(dpid, number) not in world.dark:
                    world.set_port(PortRef(dpid, number), True)
        for name, host in world.hosts.items():
            if host.core is None:
                world.start_agent(name)
            if not host.reachable:
                world.reach_agent(name, True)

    def _note(self, text: str) -> None:
        self.log.append(f"{self._world.clock.now:.4f} {text}")

    def _after(self, most_s: float, action: Callable[[], None]) -> None:
        self._in(most_s * self._rng.random(), action)

    def _in(self, seconds: float, action: Callable[[], None]) -> None:
        """Have *action* done later, unless all has been mended before."""
        mended = self._mended
        self._world.clock.after(seconds, lambda: action() if self._mended == mended else None)

    # Cables and ports

    def _cable(self) -> str:
        cable = self._rng.choice(self._world.shape.links)
        up = any(end.port in self._world.daemons[end.dpid].tables.down for end in cable)
        self._world.set_cable(cable, up)
        return f"cable {_end(cable.a)} {_end(cable.b)} is {'mended' if up else 'cut'}"

    def _one_end(self) -> str:
        end = self._rng.choice(self._rng.choice(self._world.shape.links))
        self._world.set_port(end, False)
        return f"port {_end(end)} is dark, the other end is not"

    def _no_light(self) -> str:
        end = self._rng.choice(self._rng.choice(self._world.shape.links))
        self._world.hardware.lossy.add(end)
        return f"nothing that leaves by {_end(end)} arrives"

    def _flap(self) -> str:
        cable, times = self._rng.choice(self._world.shape.links), self._rng.randint(1, 6)
        gap = self._rng.choice((0.0005, 0.01, 0.3))
        for number in range(times):
            up = number % 2 == 1
            self._in(gap * number, partial(self._world.set_cable, cable, up))
        return f"cable {_end(cable.a)} {_end(cable.b)} flaps {times} times, every {gap} s"

    # Switches

    def _kill_switch(self) -> str:
        dpid = self._a_switch()
        self._world.kill_switch(dpid)
        if self._rng.random() < 0.7:
            self._after(2.0, lambda: self._world.revive_switch(dpid))
        return f"the daemon of {dpid:x} dies"

    def _break_link(self) -> str:
        dpid = self._a_switch()
        if self._rng.random() < 0.5:
            self._world.daemons[dpid].habits.breaks = 1
            return f"{dpid:x} ends its connection in place of its next confirmation"
        self._world.end_link(dpid)
        return f"the connection of {dpid:x} breaks"

    def _unreachable_switch(self) -> str:
        dpid = self._a_switch()
        self._world.reach_switch(dpid, False)
        if self._rng.random() < 0.8:
            self._after(self._rng.choice((0.1, 2.0, 20.0)), lambda: self._world.reach_switch(dpid, True))
        return f"{dpid:x} and the controller do not reach each other"

    def _habit(self) -> str:
        dpid, rng = self._a_switch(), self._rng
        habits = self._world.daemons[dpid].habits
        match rng.randrange(3):
            case 0:
                habits.slow_s = rng.choice((0.002, 0.05, 0.4, 3.0))
            case 1:
                habits.early, habits.slow_s = True, rng.choice((0.001, 0.01, 0.3))
            case _:
                habits.refuses = rng.randint(1, 3)
        return f"{dpid:x}: {habits}"

    def _a_switch(self) -> int:
        return self._rng.choice(list(self._world.daemons))

    # The controller

    def _kill_controller(self) -> str:
        self._world.end_controller()
        self._after(self._rng.choice((0.01, 1.0, 6.0)), self._start_controller)
        return "the controller dies"

    def _start_controller(self) -> None:
        if self._world.controller is None:
            self._note("a controller begins")
            self._world.start_controller()

    def _stall_controller(self) -> str:
        seconds = self._rng.choice((0.05, 0.5, 3.0, 8.0))
        if self._world.controller is not None:
            self._world.controller.stall(seconds)
        return f"the controller gets no processor for {seconds} s"

    def _scheme(self) -> str:
        controller, scheme = self._world.controller, self._rng.choice(self._schemes)
        if controller is None or self._world.clock.now < controller.stalled_until:
            return "no other scheme can be asked for"
        match self._rng.randrange(6):
            case 0:
                draft = self._directory / "scheme.new"
                draft.write_text(json.dumps({"scheme": scheme.name})[: self._rng.randint(0, 12)])
                self._world.end_controller()
                how = "dies while it writes it down"
            case 1:
                controller.write_scheme(scheme)
                self._world.end_controller()
                how = "dies when it has written it down"
            case 2:
                controller.change_scheme(scheme)
                self._world.end_controller()
                how = "dies when it has sent it"
            case _:
                controller.change_scheme(scheme)
                how = "changes over"
        self._after(1.0, self._start_controller)
        return f"scheme {scheme.name}: the controller {how}"

    # Agents and packets

    def _kill_agent(self) -> str:
        name = self._a_host().name
        self._world.end_agent(name)
        if self._rng.random() < 0.7:
            self._after(self._rng.choice((0.01, 1.0, 6.0)), lambda: self._start_agent(name))
        return f"the agent of {name} dies"

    def _start_agent(self, name: str) -> None:
        if self._world.hosts[name].core is None:
            self._world.start_agent(name)

    def _unreachable_agent(self) -> str:
        name = self._a_host().name
        self._world.reach_agent(name, False)
        if self._rng.random() < 0.8:
            self._after(self._rng.choice((0.1, 2.0, 15.0)), lambda: self._world.reach_agent(name, True))
        return f"{name} and the controller do not reach each other"

    def _stall_agent(self) -> str:
        host, seconds = self._a_host(), self._rng.choice((0.05, 0.5, 3.0))
        if host.core is not None:
            host.stall(seconds)
        return f"the agent of {host.name} gets no processor for {seconds} s"

    def _weather(self) -> str:
        rng = self._rng
        weather = self._world.weather = Weather(
            rng.choice((0.0, 0.02, 0.3)), rng.choice((0.0, 0.05, 0.5)), rng.choice((0.0, 0.002, 0.1))
        )
        return f"datagrams: {weather}"

    def _packets(self) -> str:
        """Send bursts between two hosts, with gaps."""
        source, target = self._rng.choice(self._world.watch.pairs)
        flow, count = FIRST_PORT + self._rng.randrange(4), self._rng.randint(1, 60)
        gap = self._rng.choice((0.00002, 0.0012, 0.02))
        size = self._rng.choice((8, 200, 1300))
        self.stream(source, target, flow, count, gap, size)
        return f"{source.name} sends {count} packets of {size} B to {target.name}, every {gap} s"

    def stream(self, source: Host, target: Host, flow: int, count: int, gap: float, size: int) -> None:
        """Send packets of one flow, evenly."""
        for number in range(count):
            self._world.clock.after(gap * number, lambda: source.send(target, size, (flow, flow + 1000)))

    def _move_host(self) -> str:
        host, free = self._a_host(), self._world.free_ports()
        if not free:
            return "no host has a port to move to"
        before, to = host.place.place, self._rng.choice(free)
        lit = self._rng.random() < 0.3
        self._world.move_host(host.name, to, lit)
        return f"{host.name} moves from {_end(before)}, which {'stays up' if lit else 'goes dark'}, to {_end(to)}"

    def _connection(self) -> str:
        """Start a TCP connection that sends much: it asks where the scheme has flows ask."""
        source, target = self._rng.choice(self._world.watch.pairs)
        port, count = CONNECTIONS + self._rng.randrange(4), self._rng.randint(1, 80)
        gap, ends = self._rng.choice((0.0002, 0.005)), self._rng.random() < 0.7
        self.connection(source, target, port, count, gap, ends)
        return (
            f"{source.name} sends {count} segments to {target.name} by TCP, every {gap} s, "
            f"{'to the end' if ends else 'without an end'}"
        )

    def connection(
        self, source: Host, target: Host, port: int, count: int, gap: float, ends: bool = True
    ) -> None:
        """Send segments of one connection, evenly."""
        clock, ports = self._world.clock, (port, port + 1000)
        source.send_tcp(target, 0, ports, 1000, SYN)
        for number in range(count):
            at = 1001 + number * SEGMENT
            clock.after(
                gap * (number + 1),
                partial(source.send_tcp, target, SEGMENT, ports, at, ACK),
            )
        if ends:
            at = 1001 + count * SEGMENT
            clock.after(gap * (count + 1), partial(source.send_tcp, target, 0, ports, at, FIN | ACK))

    def _flow_types(self) -> str:
        """Set types of flows as if learnt under the policy in force, or the one before."""
        controller, rng = self._world.controller, self._rng
        if controller is None or self._world.clock.now < controller.stalled_until:
            return "no types are learnt"
        version = controller.current.version - rng.choice((0, 0, 0, 1))
        thresholds = tuple(sorted(rng.randrange(20_000) for _ in range(rng.randint(1, 7))))
        values = tuple((str(FIRST_PORT + 1000 + number),) for number in range(rng.randint(0, 4)))
        types = FlowTypes(version, ("destination_port",), (TypePriority(values, thresholds),))
        controller.set_flow_types(types)
        return f"types of flows for policy {version} of {controller.current.version}"

    def _a_host(self) -> Host:
        return self._rng.choice(list(self._world.hosts.values()))


def _end(place: PortRef) -> str:
    return f"{place.dpid:x}:{place.port}"
