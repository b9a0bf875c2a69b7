"""A flow that is opened twice, so that ECMP may put its copies on two paths.

flow: both copies send everything; the first that the receiving application has acknowledged counts, the other is
aborted. (H. Xu, B. Li: RepFlow: Minimizing Flow Completion Times with Replicated Flows in Data Centers, IEEE INFOCOM
2014, section III.)
syn: both copies connect; the first that is established sends, the other is aborted before it sent a byte. (S. Liu,
H. Xu, L. Liu, W. Bai, K. Chen, Z. Cai: RepNet: Cutting Latency with Flow Replication in Data Center Networks, IEEE
Transactions on Services Computing, 2018.)

The copies' ports are planned and independent: of n equal-cost paths both take the same one with probability 1/n.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from workloads.loop import Loop
from workloads.records import FlowOrder, FlowState, SentFlow
from workloads.sender import Sender

LOST = "the other copy was first"


class ReplicatedFlow:
    """Two senders of one flow; to the generator it looks like one. Arguments are a `Sender`'s."""

    def __init__(
        self,
        loop: Loop,
        order: FlowOrder,
        port: int,
        *,
        congestion_control: str,
        epoch: float,
        on_end: Callable[[ReplicatedFlow], None],
    ) -> None:
        if order.copy_port is None or order.replication is None:
            raise ValueError(f"flow {order.id}: replication needs both copy_port and replication")
        self.order = order
        self.state: FlowState | None = None
        self._on_end = on_end
        self._copies = [
            Sender(
                loop,
                replace(order, source_port=source_port),
                port,
                congestion_control=congestion_control,
                epoch=epoch,
                on_end=self._copy_ended,
                copy=copy,
                on_connected=self._copy_connected if order.replication == "syn" else None,
            )
            for copy, source_port in enumerate((order.source_port, order.copy_port))
        ]
        self._first = self._copies[0]

    def begin(self) -> None:
        """Connect both copies."""
        for copy in self._copies:
            copy.begin()

    def note_window(self) -> None:
        """Begin or end the measuring window."""
        for copy in self._copies:
            copy.note_window()

    def stop(self) -> None:
        """End the run: a flow of which no copy finished has failed."""
        for copy in self._copies:
            copy.stop()

    def record(self) -> SentFlow:
        """Return what was measured of both copies; only after the end."""
        assert self.state is not None
        other = next(copy for copy in self._copies if copy is not self._first).record()
        first = self._first.record()
        return replace(
            first,
            retransmissions=first.retransmissions + other.retransmissions,
            bytes_retransmitted=first.bytes_retransmitted + other.bytes_retransmitted,
            reordering_events=first.reordering_events + other.reordering_events,
            duplicates_reported=first.duplicates_reported + other.duplicates_reported,
            other_port=other.source_port,
        )

    def _copy_connected(self, copy: Sender) -> None:
        for other in self._copies:
            if other is not copy:
                other.give_up(LOST)

    def _copy_ended(self, copy: Sender) -> None:
        if self.state is not None:
            return
        if copy.state != "finished" and any(copy.state is None for copy in self._copies):
            return  # the other one may still make it
        self._first = self._with_end_noted(copy)
        self.state = self._first.state
        for other in self._copies:
            other.give_up(LOST)
        self._on_end(self)

    def _with_end_noted(self, copy: Sender) -> Sender:
        """Return the copy that finished; if none did, one that did not fail because the other was preferred."""
        if copy.state == "finished":
            return copy
        return next((copy for copy in self._copies if not copy.gave_way), copy)
