"""CAPTON on a host: which TCP flows are large, what is asked for them, and how far they may send. Pure.

Small flows leave at once. A flow is large if it was announced with more than the threshold, and then asks when it
opens; or as soon as it has sent more. A flow that was not announced asks for what its socket holds unsent; if that is
full, or cannot be asked, for as much again as it has sent besides, which for heavy-tailed sizes is about right. Every
refresh corrects that. Of a flow that was open before the scheme, or the agent, the kernel tells what its SYNs agreed;
then it is as any other, with what it has left of its announcement.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final

from capstan_native import WindowClamp

from host_agent.admission.requests import Requests
from host_agent.admission.sent_again import ResentBytes
from host_agent.admission.unsent import Unsent
from host_agent.inner_packet import FIN, RST, SYN, TCP, InnerPacket, PacketError, look
from host_agent.wire import OUTER_HEADER_BYTES
from protocol.admission import MODULUS, AdmissionPolicy, Finished, Grant, Request, Stop
from protocol.datagram import HEADER_BYTES
from protocol.sent_again import FlowState

IDLE_S: Final = 60.0
MAX_FLOWS: Final = 65536
STALLED_S: Final = 1.0
"""Who is granted a rate and sends nothing new for so long gives it back: its receiver does not read, or is dead."""
_INNER_HEADERS_BYTES: Final = 52
_ETHERNET_BYTES: Final = 14
_HEADERS_BYTES: Final = _INNER_HEADERS_BYTES + HEADER_BYTES + OUTER_HEADER_BYTES + _ETHERNET_BYTES
OVERHEAD_BYTES: Final = _HEADERS_BYTES + _HEADERS_BYTES // 2
"""What a segment takes besides its payload: its headers (IPv4, TCP with timestamps), and half an acknowledgement the
other way (RFC 9293, 3.8.6.3: one for two segments), for links that are granted whole both ways would else have no room
for those, and their queues would grow for as long as that lasts."""


@dataclass(slots=True)
class _Flow:
    number: int
    peer: str
    clamp: WindowClamp
    size: float | None
    """Payload that it was announced with, bytes."""
    last: float
    free_bytes: int
    """It asks once it has sent more than that."""
    moved: float = 0.0
    """When something new left last, or a rate was granted."""
    asked: bool = False
    """Whether it ever did."""
    joined: bool = False
    """It was open before we knew of it."""
    holds: Unsent | None = None
    """What its socket held when it asked last; None: it was announced, or nobody knows."""


class HostAdmission:
    """The TCP flows of a host. Times are seconds of one monotonic clock.

    after: the one whose numbers go on. resent: hears of all packets; None: one of its own.
    """

    def __init__(
        self, policy: AdmissionPolicy, after: HostAdmission | None = None, resent: ResentBytes | None = None
    ) -> None:
        self._policy: Final = policy
        self._resent: Final = ResentBytes() if resent is None else resent
        self._requests: Requests = Requests(policy, 0 if after is None else after._requests.sequence)
        self._flows: Final[dict[bytes, _Flow]] = {}
        self._keys: Final[dict[int, bytes]] = {}
        """Of the flows that have asked."""
        self._strangers: Final[set[bytes]] = set()
        """Open flows of which the kernel has not been asked yet."""
        self._updates: list[bytes] = []
        self._next: int = 1 if after is None else after._next
        self._counts: Final[Counter[str]] = Counter()

    def __len__(self) -> int:
        return len(self._flows)

    def __contains__(self, key: bytes) -> bool:
        return key in self._flows

    def sent(
        self,
        packet: bytes,
        seen: InnerPacket,
        peer: str,
        announced: float | None,
        now: float,
        before: float = 0.0,
    ) -> None:
        """The host has sent a packet or super-packet towards a peer (its underlay address).

        announced: payload that its flow was announced with, bytes (inf: no end); None: it was not.
        before: payload that it had sent when it was open already and is not known yet, bytes.
        """
        if seen.protocol != TCP or seen.flow[-4:] == bytes(4):
            return
        flags = packet[seen.transport + 13]
        flow = self._flows.get(seen.flow)
        again = self._resent.left(packet, seen, self._state(seen.flow, flow), now)
        if again:
            self._counts["bytes_sent_again"] += again
        if flags & SYN and (flow is None or flow.clamp.sent_bytes):
            flow = self._begin(seen.flow, peer, announced, now)
        if flow is None:
            if not seen.payload or flags & (FIN | RST):
                return
            flow = self._join(seen.flow, peer, announced, before, now)
        flow.last = now
        before_it = flow.clamp.sent_bytes
        flow.clamp.left(packet, seen)
        done = flow.clamp.sent_bytes
        if done > before_it:
            flow.moved = now
        if flags & RST or flags & FIN:
            self._forget(seen.flow)
        elif flow.number in self._requests:
            if flow.size is not None and done >= flow.size:
                self._end(flow, now)
            else:
                self._requests.left(flow.number, self._bytes_left(flow))
        elif seen.flow in self._strangers:
            pass  # until the kernel has told of it
        elif done > flow.free_bytes or (not done and flow.size is not None and flow.size > flow.free_bytes):
            self._ask(seen.flow, flow, now)

    def received(self, packets: Iterable[bytes], now: float) -> list[bytes]:
        """Packets of peers, as the host is to get them; with them what it is to be told besides."""
        given = [self._limited(packet, now) for packet in packets] if self._flows else list(packets)
        return given + self.updates()

    def updates(self) -> list[bytes]:
        """Packets that tell the host how far it may send; each is given once."""
        updates, self._updates = self._updates, []
        return updates

    def decided(self, message: Grant | Stop, now: float) -> tuple[bytes, int] | None:
        """The controller has decided about a flow: its key and the stamp of its path (0: none of its own), if news."""
        if not self._requests.decided(message, now):
            return None
        self._apply(message.flow, now)
        return self._keys[message.flow], self._requests.stamp(message.flow)

    def connected(self, now: float) -> None:
        """The controller listens again: it is asked for all flows."""
        self._requests.connected(now)

    def release(self, now: float) -> None:
        """The scheme has changed: nothing is held any longer."""
        for flow in self._flows.values():
            flow.free_bytes = 1 << 62
            if flow.number in self._requests:
                self._end(flow, now)

    def messages_to_send(
        self, now: float = 0.0, unsent: Callable[[bytes], Unsent | None] = lambda key: None
    ) -> list[Request | Finished]:
        """Messages for the controller, in order; each is given once.

        unsent: what the socket of a flow holds; asked for flows that were not announced. There may be `updates` then.
        """
        for stranger in list(self._strangers):
            self._learn(stranger, unsent(stranger), now)
        messages: list[Request | Finished] = []
        for message in self._requests.messages_to_send():
            key = self._keys.get(message.flow) if isinstance(message, Request) else None
            flow = None if key is None else self._flows[key]
            if flow is not None and self._stalled(flow, now):
                self._pause(flow, now)
            elif key is None or flow is None or flow.size is not None or isinstance(message, Finished):
                messages.append(message)
            elif (holds := unsent(key)) is not None and not holds.bytes and not holds.more:
                self._end(flow, now)
            else:
                flow.holds = holds
                messages.append(replace(message, bytes_left=self._bytes_left(flow)))
        return messages + self._requests.messages_to_send()

    def get_timer(self) -> float | None:
        """When `handle_timer` has something to do."""
        timers = [self._requests.get_timer()]
        timers += [self._flows[key].clamp.deadline() for key in self._keys.values()]
        return min((timer for timer in timers if timer is not None), default=None)

    def handle_timer(self, now: float) -> None:
        """Ask again what is due, and tell senders that have used up what they were told."""
        for number in self._requests.handle_timer(now):
            self._apply(number, now)
        for key in self._keys.values():
            clamp = self._flows[key].clamp
            due = clamp.deadline()
            if due is not None and now >= due:
                self._tell(clamp, now)

    def sweep(self, now: float) -> None:
        """Forget flows that have been idle for long."""
        for key in [key for key, flow in self._flows.items() if now - flow.last > IDLE_S]:
            self._forget(key)

    def totals(self) -> dict[str, int]:
        """What was counted since the start, by name."""
        return {**self._counts, **self._requests.counts, **self._requests.latencies.counters()}

    def standing(self) -> dict[str, int]:
        """How many flows are in which state, by name."""
        granted, waiting, unscheduled = self._requests.standing()
        return {"flows_granted": granted, "flows_waiting": waiting, "flows_unscheduled": unscheduled}

    def _state(self, key: bytes, flow: _Flow | None) -> FlowState:
        if flow is None:
            return "done" if key in self._resent else "unknown"
        if flow.number in self._requests:
            return self._requests.state(flow.number)
        if flow.asked:
            return "done"
        return "unknown" if flow.joined else "small"

    def _begin(self, key: bytes, peer: str, announced: float | None, now: float) -> _Flow:
        if key in self._flows:
            self._forget(key)
        elif len(self._flows) >= MAX_FLOWS:
            self._forget(next(iter(self._flows)))
        clamp = WindowClamp(self._policy.burst_s)
        flow = _Flow(self._next, peer, clamp, announced, now, self._policy.threshold_bytes)
        self._flows[key] = flow
        self._next = self._next % (MODULUS - 1) + 1
        return flow

    def _join(self, key: bytes, peer: str, announced: float | None, before: float, now: float) -> _Flow:
        """A flow that is open already."""
        left = None if announced is None or announced <= before else announced - before
        flow = self._begin(key, peer, left, now)
        flow.joined = True
        flow.free_bytes = max(0, self._policy.threshold_bytes - round(before))
        self._strangers.add(key)
        return flow

    def _learn(self, key: bytes, told: Unsent | None, now: float) -> None:
        """What the kernel tells of a flow that was open already; None: it is none of its sockets."""
        self._strangers.discard(key)
        flow = self._flows[key]
        if told is None or not told.segment_bytes:
            flow.free_bytes = 1 << 62  # whoever sends it, we cannot hold it
            return
        flow.clamp.join(told.scale, told.segment_bytes, told.most_segment_bytes)
        if not told.bytes and not told.more:
            flow.free_bytes = flow.clamp.sent_bytes + self._policy.threshold_bytes
        elif flow.clamp.sent_bytes > flow.free_bytes or (
            flow.size is not None and flow.size > flow.free_bytes
        ):
            self._ask(key, flow, now)

    def _ask(self, key: bytes, flow: _Flow, now: float) -> None:
        if flow.size is not None and flow.clamp.sent_bytes >= flow.size:
            flow.size = None  # it has sent more than was announced: nobody knows
        self._keys[flow.number] = key
        self._counts["flows_scheduled"] += not flow.asked
        flow.asked = True
        self._requests.ask(flow.number, flow.peer, self._bytes_left(flow), now)
        flow.clamp.set_rate(0.0, now)

    def _end(self, flow: _Flow, now: float) -> None:
        """It has sent what it asked for: what follows is small, or asks anew."""
        self._requests.end(flow.number)
        del self._keys[flow.number]
        flow.free_bytes = max(flow.free_bytes, flow.clamp.sent_bytes + self._policy.threshold_bytes)
        flow.clamp.set_rate(math.inf, now)
        self._tell(flow.clamp, now)

    def _stalled(self, flow: _Flow, now: float) -> bool:
        return now - flow.moved >= STALLED_S and self._requests.state(flow.number) == "granted"

    def _pause(self, flow: _Flow, now: float) -> None:
        """It gives its grant back, and asks anew with the first segment that leaves; that much it was told already."""
        self._counts["flows_stalled"] += 1
        self._requests.end(flow.number)
        del self._keys[flow.number]
        flow.free_bytes = flow.clamp.sent_bytes
        flow.clamp.set_rate(0.0, now)

    def _forget(self, key: bytes) -> None:
        flow = self._flows.pop(key)
        self._strangers.discard(key)
        if not flow.asked and not flow.joined and flow.clamp.sent_bytes:
            self._counts["flows_small"] += 1
        self._keys.pop(flow.number, None)
        self._requests.end(flow.number)

    def _apply(self, number: int, now: float) -> None:
        flow = self._flows[self._keys[number]]
        flow.moved, clamp = now, flow.clamp
        rate = self._requests.rate_bps(number) / 8
        clamp.set_rate(rate / _on_the_link(clamp), now)
        self._tell(clamp, now)

    def _tell(self, clamp: WindowClamp, now: float) -> None:
        update = clamp.update(now)
        if update is not None:
            self._updates.append(update)

    def _bytes_left(self, flow: _Flow) -> int:
        """On the link."""
        done = flow.clamp.sent_bytes
        if flow.size is not None:
            left = flow.size - done
        elif flow.holds is None:
            left = done
        else:
            left = flow.holds.bytes + flow.holds.more * done
        return round(min(max(1.0, left), 1e15) * _on_the_link(flow.clamp))

    def _limited(self, packet: bytes, now: float) -> bytes:
        try:
            seen = look(packet)
        except PacketError:
            return packet
        if seen.protocol != TCP or seen.flow[-4:] == bytes(4):
            return packet
        self._resent.arrived(packet, seen, now)
        flow = self._flows.get(seen.reverse)
        if flow is None:
            return packet
        if packet[seen.transport + 13] & RST:
            self._forget(seen.reverse)
            return packet
        return flow.clamp.arrived(packet, seen, now)


def _on_the_link(clamp: WindowClamp) -> float:
    """Bytes on the link for each byte of payload, in full segments."""
    return (clamp.segment_bytes + OVERHEAD_BYTES) / clamp.segment_bytes
