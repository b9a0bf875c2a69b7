"""Between the agent's core and CAPTON: in force while the policy says so, and gone without a trace when it does not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

from host_agent.admission.host import HostAdmission
from host_agent.admission.sent_again import ResentBytes
from host_agent.admission.unsent import Unsent
from host_agent.inner_packet import TCP, InnerPacket, PacketError, look
from protocol.admission import AdmissionPolicy, Finished, Grant, Request, Stop
from protocol.sent_again import Resent

AFTERWARDS_S: Final = 5.0
"""How long after its end what is sent again is told: a change of the scheme is not to blame for it unseen."""


class KnownFlow(NamedTuple):
    """A flow that the host sends: its number, payload that it was announced with (bytes; None: it was not), payload
    that it has sent."""

    id: int
    announced: float | None
    payload: int


class Flows(Protocol):
    """What the gate asks of the agent's core."""

    def flow(self, key: bytes) -> KnownFlow | None: ...
    def grant(self, flow: int, stamp: int) -> None: ...


class Gate:
    """All that passes when no policy asks for admission; `HostAdmission` when one does."""

    def __init__(self, flows: Flows) -> None:
        self._flows = flows
        self._policy: AdmissionPolicy | None = None
        self._admission: HostAdmission | None = None
        self._last: HostAdmission | None = None
        """The one before, whose numbers go on."""
        self._messages: list[Request | Finished] = []
        self._given: list[bytes] = []
        """What the host is to be told of an admission that is over."""
        self._totals: Counter[str] = Counter()
        """Of admissions that are over."""
        self._resent: Final = ResentBytes()
        self._looks_until: float | None = None
        """No admission is in force, but what is sent again is still looked at; None: it is not."""

    @property
    def shut(self) -> bool:
        """Whether packets have to pass `sent` and `delivered`."""
        return (
            self._admission is not None
            or self._looks_until is not None
            or bool(self._given)
            or bool(self._messages)
        )

    def set_policy(self, policy: AdmissionPolicy | None, now: float) -> None:
        """Hold flows by this from now on; what was held by another one is let go."""
        if policy == self._policy:
            return
        old, self._policy = self._admission, policy
        if old is not None:
            old.release(now)
            self._given += old.updates()
            self._messages += old.messages_to_send()
            self._totals.update(old.totals())
            self._last = old
        self._admission = None if policy is None else HostAdmission(policy, self._last, self._resent)
        self._looks_until = now + AFTERWARDS_S if old is not None and policy is None else None

    def sent(self, underlay_ip: str, packet: bytes, seen: InnerPacket, now: float) -> None:
        """The host has sent a packet or super-packet, which is on its way to the peer there."""
        if seen.protocol != TCP or seen.flow[-4:] == bytes(4):
            return
        if self._admission is None:
            if self._looks_until is not None:
                again = self._resent.left(packet, seen, "no-admission", now)
                self._totals["bytes_sent_again"] += again
            return
        flow = None
        if seen.opening or seen.flow not in self._admission:
            flow = self._flows.flow(seen.flow)
        announced = None if flow is None else flow.announced
        before = 0 if flow is None else flow.payload - seen.payload
        self._admission.sent(packet, seen, underlay_ip, announced, now, before)

    def delivered(self, packets: list[bytes], now: float) -> list[bytes]:
        """What the host is to get in place of these."""
        given, self._given = self._given, []
        if self._admission is not None:
            return given + self._admission.received(packets, now)
        if self._looks_until is not None:
            self._look_at(packets, now)
        return given + packets

    def decided(self, message: Grant | Stop, now: float) -> None:
        """The controller has decided about a flow."""
        if self._admission is None:
            return
        news = self._admission.decided(message, now)
        if news is not None and (flow := self._flows.flow(news[0])) is not None:
            self._flows.grant(flow.id, news[1])

    def connected(self, now: float) -> None:
        """The controller listens again, perhaps another one."""
        if self._admission is not None:
            self._admission.connected(now)

    def messages_to_send(
        self, now: float, unsent: Callable[[bytes], Unsent | None]
    ) -> list[Request | Finished]:
        """As `HostAdmission.messages_to_send`; before `delivered`."""
        messages, self._messages = self._messages, []
        if self._admission is not None:
            messages += self._admission.messages_to_send(now, unsent)
        return messages

    def get_timer(self) -> float | None:
        """When `handle_timer` has something to do."""
        return None if self._admission is None else self._admission.get_timer()

    def handle_timer(self, now: float) -> None:
        if self._admission is not None:
            self._admission.handle_timer(now)

    def late(self, late_s: float, now: float) -> None:
        """The agent's loop woke so much later than it wanted: told with what is sent again."""
        if self.shut:
            self._resent.late(late_s, now)

    def resent(self, now: float) -> list[Resent]:
        """What was sent again, and is over; each is given once."""
        self._resent.settle(now)
        return self._resent.stories()

    def sweep(self, now: float) -> None:
        """Forget flows that have been idle for long."""
        if self._looks_until is not None and now >= self._looks_until:
            self._looks_until = None
        if self._admission is not None:
            self._admission.sweep(now)

    def counters(self) -> Counter[str]:
        """Totals since the start, and how many flows are in which state now."""
        counters = Counter(self._totals)
        if self._admission is not None:
            counters.update(self._admission.totals())
            counters.update(self._admission.standing())
        return counters

    def _look_at(self, packets: list[bytes], now: float) -> None:
        for packet in packets:
            try:
                seen = look(packet)
            except PacketError:
                continue
            if seen.protocol == TCP and seen.flow[-4:] != bytes(4):
                self._resent.arrived(packet, seen, now)
