"""Priority of a flow's packets: by bytes sent against the thresholds of its type, or by its announced size (TPFS,
PIAS).

A flow carries what its next packet needs: ``tos`` by traffic class, and how much it may send before that changes.
So a packet costs one comparison; types are looked up when a flow begins, and for all flows when types or policy
change.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from ipaddress import ip_address
from typing import Final

from host_agent.flows import NEVER, FlowTable, SendFlow
from host_agent.inner_packet import addresses
from protocol.control import FlowTypes
from protocol.policy import Policy
from protocol.priority import FeatureName, types_problem
from protocol.underlay import PRIORITIES, TrafficClass, dscp

MOST_VALUES: Final = 65536
"""Values of types that are kept."""

Thresholds = tuple[int, ...]


class Priorities:
    """What the flows of one host get. ``counts`` gets totals of flows by whether their type is known."""

    def __init__(self, counts: Counter[str]) -> None:
        self._counts = counts
        self._policy: Policy | None = None
        self._types: FlowTypes | None = None
        self._features: tuple[FeatureName, ...] = ()
        self._of_value: dict[tuple[bytes, ...], Thresholds] = {}
        self._tos: tuple[tuple[int, ...], ...] = ()

    @property
    def predicted(self) -> bool:
        """Whether the controller wants to hear of flows that have ended."""
        return self._policy is not None and self._policy.priority.predicted

    def set_policy(self, policy: Policy) -> None:
        """From now on; `assign` all flows anew."""
        self._policy = policy
        classes = (policy.short, policy.long)
        by_class = policy.priority.kind == "class"
        self._tos = tuple(
            (
                dscp(TrafficClass.NONE) << 2,
                *(
                    dscp(kind, one.priority if by_class else priority) << 2
                    for kind, one in zip((TrafficClass.SHORT, TrafficClass.LONG), classes, strict=True)
                ),
                dscp(TrafficClass.CONTROL, policy.control.priority) << 2,
            )
            for priority in range(PRIORITIES)
        )
        self._use_types()

    def set_types(self, types: FlowTypes, flows: FlowTable[bytes, SendFlow]) -> None:
        """Use *types* from each flow's next packet on, if they belong to our policy (else when that comes)."""
        self._types = types
        self._use_types()
        for flow in flows:
            self.assign(flow)

    def _use_types(self) -> None:
        self._features, self._of_value = (), {}
        types, policy = self._types, self._policy
        if types is None or policy is None or types.version != policy.version:
            return
        if not policy.priority.predicted or types_problem(types.features, types.types, policy.priority):
            self._counts["flow_types_refused"] += 1
            return
        self._features = types.features
        for one in types.types:
            for value in one.values[: MOST_VALUES - len(self._of_value)]:
                self._of_value[_packed(types.features, value)] = one.thresholds_bytes

    @property
    def control_tos(self) -> int:
        """Of what belongs to no flow."""
        return self._tos[0][TrafficClass.CONTROL]

    def assign(self, flow: SendFlow) -> None:
        """Give *flow* what its next packet needs; at its beginning, and when policy, types or its size change."""
        assert self._policy is not None
        policy = self._policy.priority
        if policy.kind == "class":
            flow.thresholds, flow.demote_at, flow.tos = (), NEVER, self._tos[0]
            return
        thresholds = policy.thresholds_bytes
        if policy.predicted:
            found = self._of_value.get(_value(self._features, flow.key)) if self._features else None
            if not flow.payload:
                self._counts["flows_of_known_type" if found is not None else "flows_of_unknown_type"] += 1
            thresholds = thresholds if found is None else found
        flow.thresholds = thresholds
        if policy.kind == "size" and flow.announced is not None:
            size = flow.announced
            flow.demote_at = NEVER
            flow.tos = self._tos[len(thresholds) if math.isinf(size) else bisect_left(thresholds, size)]
            return
        self.demote(flow)

    def demote(self, flow: SendFlow) -> None:
        """*flow* has sent ``demote_at``: its next packet has the priority of what it has sent."""
        priority = bisect_right(flow.thresholds, flow.payload)
        flow.demote_at = flow.thresholds[priority] if priority < len(flow.thresholds) else NEVER
        flow.tos = self._tos[priority]


def _value(features: Sequence[FeatureName], key: bytes) -> tuple[bytes, ...]:
    """The value of a flow (`InnerPacket.flow`)."""
    source, destination = addresses(key)
    fields = {
        "source": source,
        "destination": destination,
        "source_port": key[-4:-2],
        "destination_port": key[-2:],
    }
    return tuple(fields[name] for name in features)


def _packed(features: Sequence[FeatureName], value: Sequence[str]) -> tuple[bytes, ...]:
    """The same from its texts; what is no address or port is no flow's value."""
    packed = []
    for name, text in zip(features, value, strict=True):
        try:
            packed.append(int(text).to_bytes(2, "big") if name.endswith("_port") else ip_address(text).packed)
        except (ValueError, OverflowError):
            packed.append(b"")
    return tuple(packed)
