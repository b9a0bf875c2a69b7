"""Which flows of a host have asked, and what was decided of them: the decisions of `capstan_native.AdmissionRequests`
(native/agent/src/admission/requests.rs) by the protocol's messages.
"""

from __future__ import annotations

from typing import Self

from capstan_native import AdmissionRequests

from protocol.admission import AdmissionPolicy, Finished, Grant, Request, Stop
from protocol.latency import Latencies


class Requests(AdmissionRequests):
    """The flows of a host that have asked, by number. *sequence*: of the newest message so far."""

    def __new__(cls, policy: AdmissionPolicy, sequence: int = 0) -> Self:
        return super().__new__(cls, policy.retry_s, policy.refresh_s, policy.fail_safe_s, sequence)

    def __init__(self, policy: AdmissionPolicy, sequence: int = 0) -> None:
        self._latencies = Latencies()

    @property
    def latencies(self) -> Latencies:
        """From a request, the first of those that one decision answers, to that decision."""
        for latency_s in self.take_latencies():
            self._latencies.add(latency_s)
        return self._latencies

    def decided(self, message: Grant | Stop, now: float) -> bool:
        """Take in a decision. Return True if `rate_bps` or `stamp` of the flow is another by it."""
        rate_bps, stamp = (message.rate_bps, message.stamp) if isinstance(message, Grant) else (0, 0)
        return self.decide(message.sequence, message.flow, message.answers, rate_bps, stamp, now)

    def messages_to_send(self) -> list[Request | Finished]:
        """Return messages for the controller, in order; each is given once."""
        return [
            Finished(sequence, flow) if request is None else Request(sequence, flow, *request)
            for sequence, flow, request in self.take_messages()
        ]
