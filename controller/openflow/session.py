"""One switch's OpenFlow 1.5 connection, without a socket: bytes in, events and bytes out.

The shape is aioquic's: `receive` takes what came, `data_to_send` gives what must go, `timer` is called at
`deadline`. It shakes hands, takes the switch's inventory, keeps the connection alive, turns differences into
bundles and says when the switch has confirmed them.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from controller.fabric.switch_data import MOST_PORTS, MeterReading, Port
from controller.openflow import bundle, codec, reading, requests
from controller.openflow.error_names import error_names
from controller.openflow.errors import PeerError, SwitchError, describe
from controller.openflow.holdings import Holdings, Subject
from controller.openflow.inventory import InventoryReader
from controller.openflow.osken import ofp
from controller.openflow.replies import Replies, Reply, ReplyRoom
from controller.openflow.session_events import (
    MeterCount,
    PacketIn,
    PortsCounted,
    PortStatus,
    Ready,
    Refused,
    SessionEvent,
    UpdateDone,
)
from controller.openflow.wanted import Difference

LOG: Final = logging.getLogger(__name__)

ECHO_INTERVAL_S: Final = 5.0
"""A switch that has said nothing for this long is asked for an echo."""
SILENCE_LIMIT_S: Final = 15.0
"""A switch that has said nothing for this long is given up."""
ECHO_LIMIT_S: Final = SILENCE_LIMIT_S - ECHO_INTERVAL_S
"""For the answer: time before the request is no silence of the switch, as the controller may not have run in it."""
HANDSHAKE_LIMIT_S: Final = 10.0
MOST_UNCONFIRMED: Final = 4096
"""Updates, and requests for counters: a switch that leaves so many unanswered is none that we can work with."""
MOST_ERRORS: Final = 100
"""Of one update; what more a switch refuses of it is not kept."""

_HEADER: Final = reading.HEADER
_ERROR_BYTES: Final = 12


@dataclass(slots=True)
class _Update:
    """Messages of one update: consecutive transaction ids from ``first`` on, the last one a barrier's."""

    ticket: int
    first: int
    subjects: list[Subject]
    errors: list[SwitchError] = field(default_factory=list)


class OpenFlowSession:
    """State of one connection, from its first byte on.

    Args:
        now: seconds; every time here is on the caller's clock.
        counters: of what was not taken, by name; the caller's, for all its sessions.
        refusal: why a switch with this datapath id may not connect, or None if it may.
        room: for replies that are not whole; the caller's, for all its sessions.
    """

    def __init__(
        self,
        now: float,
        counters: Counter[str] | None = None,
        refusal: Callable[[int], str | None] = lambda dpid: None,
        room: ReplyRoom | None = None,
    ) -> None:
        self.dpid: int | None = None
        """The switch's datapath id, once known; it never changes then."""
        self.ready = False
        self._began = self._received_at = now
        self._echo_asked: float | None = None
        self._in = bytearray()
        self._out: list[bytes] = []
        self._xid = 0
        self._features_xid: int | None = None
        self._refusal = refusal
        self._probe_xid: int | None = None
        self.probe_answered = False
        """Whether the last `probe` has been answered."""
        self._replies = Replies(Counter() if counters is None else counters, room or ReplyRoom())
        self._inventory = InventoryReader()
        """Of the replies that come until the session is ready."""
        self._ports: dict[int, Port] = {}
        self._readings: dict[int, MeterReading] = {}
        """Of meters that were asked for, until the last one's has come."""
        self._last_readings: set[int] = set()
        self._updates: dict[int, _Update] = {}
        self._next_ticket = 1
        self._next_bundle = 1
        self._holdings: Holdings | None = None
        self._send(requests.hello())

    # Bytes

    def receive(self, data: bytes, now: float) -> Iterator[SessionEvent]:
        """Return the events in *data*. Raises PeerError if the other end is no switch that we can work with.

        The events must be consumed to the end (or to the error).
        """
        if max(len(self._updates), len(self._replies)) > MOST_UNCONFIRMED:
            raise PeerError(f"it leaves more than {MOST_UNCONFIRMED} updates or requests unanswered")
        self._received_at = now
        self._echo_asked = None
        self._in += data
        while len(self._in) >= _HEADER.size:
            version, kind, length, xid = _HEADER.unpack_from(self._in)
            if length < _HEADER.size:
                raise PeerError(f"message of {length} B is shorter than its header")
            if kind != ofp.OFPT_HELLO and version != codec.VERSION:
                raise PeerError(f"message of OpenFlow wire version {version}, not {codec.VERSION} (1.5)")
            if len(self._in) < length:
                return
            message = bytes(self._in[:length])
            del self._in[:length]
            try:
                yield from self._message(kind, xid, message, now)
            except PeerError:
                raise
            except Exception as error:
                raise PeerError(f"message of type {kind} is malformed: {error!r}") from error

    def data_to_send(self) -> bytes:
        """Return all bytes that must go to the switch now; they are the caller's from here on."""
        data = b"".join(self._out)
        self._out.clear()
        return data

    def timer(self, now: float) -> None:
        """Keep the connection alive, and delete groups that have long been of no use.

        Raises PeerError if the switch has gone silent or never got ready.
        """
        if not self.ready and now - self._began >= HANDSHAKE_LIMIT_S:
            raise PeerError(f"no handshake within {HANDSHAKE_LIMIT_S:g} s")
        if self._echo_asked is not None and now - self._echo_asked >= ECHO_LIMIT_S:
            raise PeerError(f"silent for {now - self._received_at:.0f} s")
        if self._echo_asked is None and now - self._received_at >= ECHO_INTERVAL_S:
            self._echo_asked = now
            self._send(requests.ECHO)
        if self._holdings is not None:
            for message in self._holdings.delete_unused(now):
                self._send(message)

    def probe(self) -> None:
        """Ask the switch for an echo now; `probe_answered` says when it has."""
        self.probe_answered = False
        self._probe_xid = self._send(requests.ECHO)

    def ports(self) -> tuple[Port, ...]:
        """Return all ports of the switch, as they are now."""
        return tuple(self._ports.values())

    def end(self) -> None:
        """Give back what it took of the room for all: the connection is over."""
        self._replies.close()

    def count_ports(self) -> int:
        """Return how many ports the switch has."""
        return len(self._ports)

    def deadline(self) -> float:
        """Return when `timer` wants to be called next, seconds."""
        asked = self._echo_asked
        due = self._received_at + ECHO_INTERVAL_S if asked is None else asked + ECHO_LIMIT_S
        if not self.ready:
            due = min(due, self._began + HANDSHAKE_LIMIT_S)
        unused_at = None if self._holdings is None else self._holdings.unused_at()
        return due if unused_at is None else min(due, unused_at)

    # What the controller wants

    def apply(self, difference: Difference, whole: bool, now: float) -> int:
        """Send *difference* as one atomic bundle; returns a ticket that an `UpdateDone` will carry.

        With *whole*, the difference is all that the switch should hold (`Holdings.plan`).
        Raises EncodingError if OpenFlow cannot say it; nothing is sent then.
        """
        assert self._holdings is not None  # nothing is wanted of a switch before it is ready
        plan = self._holdings.plan(difference, whole, now)
        update = _Update(self._next_ticket, self._xid + 1, [])
        self._next_ticket += 1

        def send(message: bytes, subject: Subject) -> None:
            update.subjects.append(subject)
            self._send(message)

        for message, subject in plan.before:
            send(message, subject)
        if plan.inside:
            number = self._next_bundle
            self._next_bundle += 1
            send(bundle.open_bundle(number), ("opening of bundle", number))
            for message, subject in plan.inside:
                update.subjects.append(subject)
                part = bundle.add_to_bundle(number, message)
                self._out.append(bundle.with_part_xid(part, self._next_xid()))
            send(bundle.commit_bundle(number), ("commit of bundle", number))
        for message, subject in plan.after:
            send(message, subject)
        self._updates[self._send(requests.BARRIER)] = update
        return update.ticket

    def packet_out(self, port: int, data: bytes) -> None:
        """Send the frame *data* out of *port*."""
        self._send(codec.packet_out(port, data))

    def read_meters(self) -> None:
        """Ask for the counts of the meters that count; a `MeterCount` answers for all of them."""
        assert self._holdings is not None  # nothing is read of a switch before it is ready
        xid = None
        for meter in self._holdings.counting_meters():
            xid = self._send(requests.meter_counts(meter))
            self._replies.ask(xid, ofp.OFPMP_METER_STATS)
        if xid is not None:
            self._last_readings.add(xid)

    def read_ports(self) -> None:
        """Ask for all ports' counters; a `PortsCounted` answers. A switch that still owes an answer is not asked."""
        if self.ready and not self._replies.waits_for(ofp.OFPMP_PORT_STATS):
            self._replies.ask(self._send(requests.port_counters()), ofp.OFPMP_PORT_STATS)

    def has_port(self, number: int) -> bool:
        """Return True if the switch has a port of this number."""
        return number in self._ports

    def set_port(self, number: int, up: bool) -> None:
        """Take a port down, or up again (OFPT_PORT_MOD). Raises KeyError for a port that the switch has not."""
        self._send(requests.port_change(self._ports[number], up))

    @property
    def unconfirmed(self) -> tuple[int, ...]:
        """Return the tickets of the updates that the switch has not confirmed yet."""
        return tuple(update.ticket for update in self._updates.values())

    # Messages

    def _message(self, kind: int, xid: int, message: bytes, now: float) -> Iterator[SessionEvent]:
        handler = self._HANDLERS.get(kind)
        if handler is not None:
            return handler(self, xid, message, now)
        if kind not in _NEEDS_NO_ANSWER:
            LOG.debug("switch %s: message of type %d is of no use here", self.name, kind)
        return iter(())

    def _on_hello(self, xid: int, message: bytes, now: float) -> Iterator[SessionEvent]:
        if not reading.hello_versions(message) >> codec.VERSION & 1:
            raise PeerError(
                "the switch does not speak OpenFlow 1.5", remedy="set protocols=OpenFlow15 on its bridge"
            )
        if self._features_xid is not None:
            raise PeerError("it says hello a second time")
        self._features_xid = self._send(requests.features())
        yield from ()

    def _on_echo_request(self, xid: int, message: bytes, now: float) -> Iterator[SessionEvent]:
        self._out.append(requests.echo_reply(message, xid))
        yield from ()

    def _on_echo_reply(self, xid: int, message: bytes, now: float) -> Iterator[SessionEvent]:
        if xid == self._probe_xid:
            self._probe_xid, self.probe_answered = None, True
        yield from ()

    def _on_features(self, xid: int, message: bytes, now: float) -> Iterator[SessionEvent]:
        if self.dpid is not None or xid != self._features_xid:
            raise PeerError("features reply that was not asked for; a switch says once who it is")
        self.dpid = reading.datapath_id(message)
        if (refusal := self._refusal(self.dpid)) is not None:
            raise PeerError(refusal)
        for kind, request in requests.inventory().items():
            self._replies.ask(self._send(request), kind, in_parts=True)
        yield from ()

    def _on_multipart(self, xid: int, message: bytes, now: float) -> Iterator[SessionEvent]:
        reply = self._replies.take(xid, message)
        if reply is None:
            return
        if not self.ready:
            self._read_inventory(reply)
            if not self._replies:
                yield self._take_inventory()
        elif reply.kind == ofp.OFPMP_METER_STATS:
            assert self._holdings is not None  # it was ready when it was asked
            wanted = set(self._holdings.counting_meters())
            readings_of_all = reading.meters_in(reply.body)
            self._readings |= {meter: count for meter, count in readings_of_all.items() if meter in wanted}
            if xid in self._last_readings:
                self._last_readings.discard(xid)
                readings, self._readings = self._readings, {}
                yield MeterCount(readings)
        elif reply.kind == ofp.OFPMP_PORT_STATS:
            reading.check_port_counters(reply.body)
            yield PortsCounted(reply.body)

    def _on_port_status(self, xid: int, message: bytes, now: float) -> Iterator[SessionEvent]:
        port = reading.port_status(message)
        if port is not None:
            self._ports[port.number] = port
            if len(self._ports) > MOST_PORTS:
                raise PeerError(f"it has had more than {MOST_PORTS} ports")
            if self.ready:
                yield PortStatus(port)

    def _on_packet_in(self, xid: int, message: bytes, now: float) -> Iterator[SessionEvent]:
        if self.ready:
            packet = reading.packet_in(message)
            yield PacketIn(packet.in_port, codec.cookie_of(packet.cookie), packet.data)

    def _on_barrier(self, xid: int, message: bytes, now: float) -> Iterator[SessionEvent]:
        update = self._updates.pop(xid, None)
        if update is not None:
            yield UpdateDone(update.ticket, tuple(update.errors))

    def _on_error(self, xid: int, message: bytes, now: float) -> Iterator[SessionEvent]:
        names = error_names(*reading.error_numbers(message))
        if not self.ready and (self.dpid is None or self._replies.is_pending(xid)):
            raise PeerError(f"the switch refused our handshake: {' '.join(names)}")
        for update in self._updates.values():
            index = (xid - update.first) % (1 << 32)
            if index < len(update.subjects):
                verb, thing = update.subjects[index]
                error = SwitchError(self.dpid or 0, f"{verb} {describe(thing)}", *names, at=now)
                if len(update.errors) < MOST_ERRORS:
                    update.errors.append(error)
                return
        self._replies.refused(xid)
        self._last_readings.discard(xid)
        # The switch returns the beginning of what it refused.
        refused = message[_ERROR_BYTES:]
        description = f"message of type {refused[1]}" if len(refused) >= _HEADER.size else "a message"
        yield Refused(SwitchError(self.dpid or 0, description, *names, at=now))

    _HANDLERS: Final[dict[int, Callable[[OpenFlowSession, int, bytes, float], Iterator[SessionEvent]]]] = {
        ofp.OFPT_HELLO: _on_hello,
        ofp.OFPT_ERROR: _on_error,
        ofp.OFPT_ECHO_REQUEST: _on_echo_request,
        ofp.OFPT_ECHO_REPLY: _on_echo_reply,
        ofp.OFPT_FEATURES_REPLY: _on_features,
        ofp.OFPT_PACKET_IN: _on_packet_in,
        ofp.OFPT_PORT_STATUS: _on_port_status,
        ofp.OFPT_MULTIPART_REPLY: _on_multipart,
        ofp.OFPT_BARRIER_REPLY: _on_barrier,
    }

    # Parts

    @property
    def name(self) -> str:
        """Return the datapath id in hexadecimal, or words where it is not known yet."""
        return "not yet named" if self.dpid is None else f"{self.dpid:#x}"

    def _read_inventory(self, reply: Reply) -> None:
        match reply.kind:
            case ofp.OFPMP_PORT_DESC:  # what a port status says after its first part is newer
                if not self._inventory.knows_ports:
                    self._ports.clear()
                ports = self._inventory.ports(reply.body, reply.last)
                self._ports |= {port.number: port for port in ports if port.number not in self._ports}
            case ofp.OFPMP_FLOW_DESC:
                self._inventory.flows(reply.body, reply.last)
            case ofp.OFPMP_GROUP_STATS:
                self._inventory.groups(reply.body, reply.last)
            case _:
                self._inventory.meters(reply.body, reply.last)

    def _take_inventory(self) -> Ready:
        inventory, self._inventory = self._inventory.inventory(), InventoryReader()
        self._holdings = Holdings(inventory)
        self.ready = True
        assert self.dpid is not None
        return Ready(self.dpid, tuple(self._ports.values()), inventory)

    def _next_xid(self) -> int:
        self._xid = (self._xid + 1) % (1 << 32)
        return self._xid

    def _send(self, message: bytes) -> int:
        xid = self._next_xid()
        self._out.append(codec.with_xid(message, xid))
        return xid


_NEEDS_NO_ANSWER: Final = {ofp.OFPT_BUNDLE_CONTROL}
"""A bundle's end shows by the barrier after it, or by an error."""
