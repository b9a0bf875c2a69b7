"""CAPTON's messages, between the compiled gate (`native/agent/src/admission/`) and the controller's channel."""

from __future__ import annotations

from collections.abc import Callable

from capstan_native import HostCore

from host_agent.admission.unsent import Unsent
from protocol.admission import Finished, Grant, Request, Stop
from protocol.latency import Latencies
from protocol.sent_again import Resent


class Gate:
    """Which flows of the host ask, and what the controller decides. Times are seconds of one monotonic clock."""

    def __init__(self, core: HostCore) -> None:
        self._core = core
        self._latencies = Latencies()

    def decided(self, message: Grant | Stop, now: float) -> None:
        """Take in what the controller has decided about a flow."""
        rate_bps, stamp = (message.rate_bps, message.stamp) if isinstance(message, Grant) else (0, 0)
        self._core.decided((message.sequence, message.flow, message.answers, rate_bps, stamp), now)

    def connected(self, now: float) -> None:
        """Ask for all flows again: the controller listens, perhaps another one."""
        self._core.connected(now)

    def messages_to_send(
        self, now: float, unsent: Callable[[bytes], Unsent | None]
    ) -> list[Request | Finished]:
        """Return messages for the controller, in order; each is given once. There may be packets to deliver then.

        unsent: what the socket of a flow holds (`InnerPacket.flow`); asked for flows that were not announced.
        """
        return [
            Finished(sequence, flow) if request is None else Request(sequence, flow, *request)
            for sequence, flow, request in self._core.admission_messages(unsent, now)
        ]

    def late(self, late_s: float, now: float) -> None:
        """Take in that the agent's loop woke so much later than it wanted; retransmission episodes say so."""
        self._core.late(late_s, now)

    def resent(self, now: float) -> list[Resent]:
        """Return the retransmission episodes that are over; each is given once."""
        return [Resent(**fields) for fields in self._core.episodes(now)]

    def counters(self) -> dict[str, int]:
        """Return how long decisions took, as counters."""
        for latency_s in self._core.take_latencies():
            self._latencies.add(latency_s)
        return self._latencies.counters()
