"""Finding links by LLDP, and noticing when they are gone: a pure state machine.

Every port of a connected switch that is up sends a frame at once, a few more in the first second, and then one per
period. A link is up when each end has received a frame of the other. It is down

- at once when one of its ports goes down;
- when one end has received nothing for `SILENCE_PERIODS` and then, though asked every `HASTE_S`, for `SUSPECT_S`
  more. Full queues drop LLDP like everything else, so a few lost frames must not take a busy link out of service. Time
  in which the controller itself had no time to listen does not count;
- when a frame of one of its ends arrives elsewhere.

A link of a switch that is not connected can neither be proved nor disproved by LLDP; it stays as it is until a port
at the other end goes down. What was once a link's port stays one (it is *wired*) until a host is found on it or another
link: tiers come from the wiring, and hosts are not looked for on wired ports.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final

from controller.fabric.came_up import CameUp
from controller.fabric.events import LinkDown, LinkDownCause, LinkUp
from controller.fabric.frame_times import FrameTimes
from controller.fabric.graph import Link, PortRef, link_between
from controller.fabric.joining_ports import AT_ONCE, JoiningPorts
from controller.fabric.port_state import PortState
from controller.fabric.switch_data import LOCAL_PORT_FIRST, Port
from controller.fabric.wired_ports import WiredPorts

PERIOD_S: Final = 1.0
"""Between two frames of a link's port."""
EDGE_PERIOD_S: Final = 5.0
"""Between two frames of a port on which no frame of a switch arrived."""
PORTS_PER_S: Final = 400
"""Most frames a second for all links' ports together; beyond, periods grow."""
OPENING_S: Final = (0.1, 0.2, 0.4)
"""Gaps after the first frames of a port that came up."""
SILENCE_PERIODS: Final = 3
HASTE_S: Final = 0.1
SUSPECT_S: Final = 2.0
LATE_S: Final = 0.1
"""A controller that comes so much later than it wanted to has had no time to listen."""
MOST_AT_ONCE: Final = 64
"""Frames that one call of `due` names: some milliseconds' work, and then others have their turn."""
QUIET_S: Final = 0.6
"""A port on which no frame of a switch arrived for this long after it came up leads to a host, or nowhere."""

LinkEvent = LinkUp | LinkDown


class LinkDiscovery:
    """Finds links by LLDP: what is known of ports, and which of them are to send a frame when."""

    def __init__(self) -> None:
        self._ports: dict[PortRef, PortState] = {}
        self._by_switch: dict[int, dict[int, PortState]] = {}
        self._numbers: dict[int, tuple[int, ...]] = {}
        """Of each switch's ports, ascending, until it has others."""
        self._connected: set[int] = set()
        self._wired = WiredPorts()
        self._up: set[Link] = set()
        self._frame_times = FrameTimes(self._ports)
        self._clear_times: dict[int, float] = {}
        """`clear_at` of each switch, until one of its ports changes."""
        self._came_up = CameUp()
        self._joining = JoiningPorts()
        self._looked_at = float("-inf")
        """When `due` was last called."""

    # What is known

    def links_up(self) -> frozenset[Link]:
        """Return the links that are up now."""
        return frozenset(self._up)

    def links_known(self) -> frozenset[Link]:
        """Return all wired links, up or not."""
        return self._wired.links()

    def is_wired(self, ref: PortRef) -> bool:
        """Return whether a port is a link's, up or not."""
        return ref in self._wired

    def port(self, ref: PortRef) -> Port | None:
        """Return a port as its switch described it last; None: it has not."""
        state = self._ports.get(ref)
        return None if state is None else state.port

    def ports_of_all(self) -> dict[int, tuple[int, ...]]:
        """Return the numbers of each known switch's ports, ascending, up or not."""
        for dpid in self._by_switch.keys() - self._numbers.keys():
            self._numbers[dpid] = tuple(sorted(self._by_switch[dpid]))
        return {dpid: self._numbers[dpid] for dpid in self._by_switch}

    def wired_switches(self) -> set[int]:
        """Return the switches that have a port which is a link's, up or not."""
        return self._wired.switches()

    def is_wired_switch(self, dpid: int) -> bool:
        """Return whether one of a switch's ports is a link's, up or not."""
        return self._wired.has_switch(dpid)

    def count_all_ports(self) -> int:
        """Return how many ports of all switches are known."""
        return len(self._ports) + self._joining.count_all_new()

    def count_ports(self, dpid: int) -> int:
        """Return how many ports of a switch are known, 0 if it is not."""
        return len(self._by_switch.get(dpid, ())) + self._joining.count_new(dpid)

    def neighbours(self, dpid: int) -> set[int]:
        """Return the switches that links which are up join to *dpid*."""
        refs = (PortRef(dpid, number) for number in self._by_switch.get(dpid, ()))
        return {self._wired[ref].dpid for ref in refs if self._in_link(ref)}

    def edge_ports(self) -> list[PortRef]:
        """Return ports of connected switches that are up and lead to no switch."""
        return [
            ref
            for ref, state in self._ports.items()
            if state.next_send is not None and ref not in self._wired
        ]

    def is_linked(self, ref: PortRef) -> bool:
        """Return True if *ref* is one end of a link that is up, or a frame of a switch arrived there."""
        state = self._ports.get(ref)
        return self._in_link(ref) or (state is not None and state.peer is not None)

    def is_quiet(self, ref: PortRef, now: float) -> bool:
        """Return True if *ref* has been up for long enough to have received a frame of a switch."""
        state = self._ports.get(ref)
        return state is not None and state.next_send is not None and now >= state.up_since + QUIET_S

    def is_clear(self, dpid: int, now: float) -> bool:
        """Return whether every up port of a connected switch is either half of a link or has been quiet."""
        return now >= self.clear_at(dpid)

    def clear_at(self, dpid: int) -> float:
        """Return when `is_clear` holds at the latest, seconds, as far as is known now."""
        if dpid in self._joining:
            return max(self._looked_at, self._joining.since_of(dpid)) + QUIET_S
        if dpid not in self._clear_times:
            last = self._came_up.last(dpid, self._came_up_alone)
            self._clear_times[dpid] = float("-inf") if last is None else last + QUIET_S
        return self._clear_times[dpid]

    def _came_up_alone(self, ref: PortRef, since: float) -> bool:
        """Return whether a port came up then, and is half of no link since."""
        state = self._ports.get(ref)
        came_up = state is not None and state.next_send is not None and state.up_since == since
        return came_up and not self._in_link(ref)

    def _in_link(self, ref: PortRef) -> bool:
        peer = self._wired.get(ref)
        return peer is not None and link_between(ref, peer) in self._up

    # What happens

    def switch_connected(self, dpid: int, ports: Sequence[Port], now: float) -> list[LinkEvent]:
        """Note that a switch is connected; return what happens to links.

        ports: all of its ports, as they are now; `AT_ONCE` of them are taken up now, links' first, the others by `due`.
        """
        events: list[LinkEvent] = []
        self._connected.add(dpid)
        self._clear_times.pop(dpid, None)
        mine = self._by_switch.setdefault(dpid, {})
        current = {port.number: port for port in ports if port.number < LOCAL_PORT_FIRST}
        for number, state in list(mine.items()):
            new = current.get(number)
            if new is None or new.name != state.port.name:
                events += self._unwire(PortRef(dpid, number), "port down", now)
                del mine[number], self._ports[PortRef(dpid, number)]
                self._numbers.pop(dpid, None)
        linked = self._wired.numbers(dpid)
        first = {number: current[number] for number in (linked & current.keys())}
        first |= islice(((number, port) for number, port in current.items() if number not in linked), AT_ONCE)
        for port in first.values():
            events += self._set_port(dpid, port, now, fresh=True)
        waiting = {number: port for number, port in current.items() if number not in first}
        self._joining.add(dpid, waiting, mine.keys(), now, unlinked=False)
        return events

    @property
    def is_joining(self) -> bool:
        """Return whether ports wait to be taken up, some at each call of `due`."""
        return bool(self._joining)

    def _join(self, now: float) -> list[LinkEvent]:
        events: list[LinkEvent] = []
        for joining in self._joining.take():
            if not (joining.unlinked and self._in_link(PortRef(joining.dpid, joining.port.number))):
                since = max(now, joining.since)
                events += self._set_port(joining.dpid, joining.port, since, fresh=True)
        return events

    def listening(self, dpid: int, now: float) -> None:
        """Begin anew at ports without a known peer: the switch forwards by our state from now on.

        Before, it handed us no LLDP. A peer that receives one of their frames answers at once.
        """
        self._clear_times.pop(dpid, None)
        known = self._by_switch.get(dpid, {})
        ports = {number: state.port for number, state in known.items() if state.next_send is not None}
        ports |= self._joining.ports(dpid)
        self._joining.add(dpid, ports, known.keys(), now, unlinked=True)
        if len(ports) <= AT_ONCE:
            self._join(now)

    def switch_disconnected(self, dpid: int) -> None:
        """Note that a switch is gone. Its links stay as they are (see above)."""
        self._connected.discard(dpid)
        self._joining.drop(dpid)
        self._clear_times.pop(dpid, None)
        for state in self._by_switch.get(dpid, {}).values():
            state.next_send = None

    def forget_switch(self, dpid: int, now: float) -> list[LinkEvent]:
        """Forget all ports and links of a switch, connected or not; return the events of its links."""
        self.switch_disconnected(dpid)
        events: list[LinkEvent] = []
        for number in list(self._by_switch.get(dpid, ())):
            events += self._unwire(PortRef(dpid, number), "port down", now)
            del self._ports[PortRef(dpid, number)]
        self._by_switch.pop(dpid, None)
        self._came_up.forget(dpid)
        self._numbers.pop(dpid, None)
        return events

    def port_changed(self, dpid: int, port: Port, now: float) -> list[LinkEvent]:
        """Take up what a connected switch says of one of its ports. Return what happens to links."""
        if port.number >= LOCAL_PORT_FIRST or dpid not in self._connected:
            return []
        return self._set_port(dpid, port, now, fresh=self._joining.pop(dpid, port.number) is not None)

    def host_found(self, ref: PortRef, now: float) -> list[LinkEvent]:
        """Remove the link at *ref*, where a host is. Return the links that changed."""
        return self._unwire(ref, "rewired", now) if ref in self._wired else []

    def receive(self, receiver: PortRef, sender: PortRef, now: float) -> list[LinkEvent]:
        """Handle a frame that left by *sender* and arrived at *receiver*. Return the links that changed."""
        state, other = self._ports.get(receiver), self._ports.get(sender)
        if state is None or other is None or receiver == sender or state.next_send is None:
            return []
        if not other.port.up:  # It was under way while the port went down.
            return []
        events: list[LinkEvent] = []
        if self._wired.get(receiver, sender) != sender:
            events += self._unwire(receiver, "rewired", now)
        if self._wired.get(sender, receiver) != receiver:
            events += self._unwire(sender, "rewired", now)
        state.peer, state.received_at = sender, now
        if other.peer != receiver:
            # Half a link: let this end answer now, rather than a period later.
            self._schedule(receiver, state, now)
            return events
        self._wired.add(receiver, sender)
        link = link_between(receiver, sender)
        if link not in self._up:
            self._up.add(link)
            events.append(LinkUp(now, *link))
            for end in link:
                self._clear_times.pop(end.dpid, None)
                self._hasten(end, now + self._period())
        return events

    def due(self, now: float) -> tuple[list[PortRef], list[LinkEvent]]:
        """Return ports that have to send a frame now, and links that are lost.

        At most `MOST_AT_ONCE` ports: `deadline` does not move on before all have had their turn.
        """
        self._excuse(now)
        ports: list[PortRef] = []
        events = self._join(now)
        while len(ports) < MOST_AT_ONCE:
            ref = self._frame_times.take(now)
            if ref is None:
                break
            state = self._ports[ref]
            ports.append(ref)
            state.sent += 1
            gap, lost = self._gap(ref, state, now)
            if lost:
                events += self._link_down(ref, "no LLDP", now)
            self._schedule(ref, state, now + gap)
        return ports, events

    def deadline(self) -> float | None:
        """Return when `due` wants to be called next, seconds; None: not before something else happens."""
        times = self._frame_times.next(), self._joining.since()
        return min((when for when in times if when is not None), default=None)

    def _excuse(self, now: float) -> None:
        """Count no silence for the time in which this was not called although it should have been."""
        deadline = self.deadline()
        late = 0.0 if deadline is None else now - max(deadline, self._looked_at)
        self._looked_at = now
        if late > LATE_S:
            for state in self._ports.values():
                state.received_at = min(now, state.received_at + late)

    def _gap(self, ref: PortRef, state: PortState, now: float) -> tuple[float, bool]:
        """Return the time until the next frame of *ref*, and whether its peer has been deaf to it for too long."""
        if state.sent <= len(OPENING_S):
            return OPENING_S[state.sent - 1], False
        if not self._in_link(ref):
            return (PERIOD_S if ref in self._wired else EDGE_PERIOD_S), False
        period = self._period()
        other = self._ports[self._wired[ref]]
        if other.next_send is None:
            return period, False
        silence = now - other.received_at - SILENCE_PERIODS * period
        return (HASTE_S if silence > 0 else period), silence > SUSPECT_S

    def _period(self) -> float:
        return max(PERIOD_S, 2 * len(self._up) / PORTS_PER_S)

    def _hasten(self, ref: PortRef, when: float) -> None:
        """Have *ref*'s next frame leave by *when*, among those of links.

        A port that answered before its link was up waits for an edge port's turn: too late for the other end.
        """
        state = self._ports[ref]
        if state.next_send is not None:
            self._schedule(ref, state, min(state.next_send, when))

    def _schedule(self, ref: PortRef, state: PortState, when: float) -> None:
        state.next_send = when
        self._frame_times.add(ref, when, of_link=ref in self._wired)

    def _set_port(self, dpid: int, port: Port, now: float, *, fresh: bool) -> list[LinkEvent]:
        ref = PortRef(dpid, port.number)
        state = self._ports.get(ref)
        if state is None:
            state = PortState(port)
            self._ports[ref] = self._by_switch.setdefault(dpid, {})[port.number] = state
            self._numbers.pop(dpid, None)
        state.port = port
        self._clear_times.pop(dpid, None)
        if not port.up:
            state.next_send = None
            return self._link_down(ref, "port down", now)
        if fresh or state.next_send is None:
            state.up_since, state.sent = now, 0
            self._forgive(ref, state, now)
            self._schedule(ref, state, now)
            self._came_up.note(ref, now)
        return []

    def _forgive(self, ref: PortRef, state: PortState, now: float) -> None:
        """Start counting silence anew at both ends of *ref*'s link: neither end could send before."""
        state.received_at = now
        peer = self._wired.get(ref)
        if peer is not None and peer in self._ports:
            self._ports[peer].received_at = now

    def _link_down(self, ref: PortRef, cause: LinkDownCause, now: float) -> list[LinkEvent]:
        """Take the link at *ref* out of service, until both directions are proved anew; return the events."""
        state = self._ports[ref]
        ends: Iterable[PortRef | None] = (state.peer, self._wired.get(ref))
        state.peer = None
        for end in ends:
            if end is not None and end in self._ports and self._ports[end].peer == ref:
                self._ports[end].peer = None
        peer = self._wired.get(ref)
        if peer is None or link_between(ref, peer) not in self._up:
            return []
        link = link_between(ref, peer)
        self._up.discard(link)
        for end in link:
            self._clear_times.pop(end.dpid, None)
            self._came_up.note(end, self._ports[end].up_since)
        return [LinkDown(now, *link, cause)]

    def _unwire(self, ref: PortRef, cause: LinkDownCause, now: float) -> list[LinkEvent]:
        """Forget that *ref* is a link's port; return the events."""
        events = self._link_down(ref, cause, now)
        self._wired.remove(ref)
        return events
