"""Priority of a flow's packets by the controller's documents: what decides is compiled (native/agent/src/priority.rs).

A flow carries what its next packet needs: ``tos`` by traffic class, and how much it may send before that changes.
So a packet costs one comparison; types are looked up when a flow begins, and for all flows when types or policy
change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from ipaddress import ip_address
from typing import Final

import capstan_native

from host_agent.flows import NEVER, FlowTable, SendFlow
from protocol.control import FlowTypes
from protocol.policy import Policy
from protocol.priority import FeatureName, types_problem

MOST_VALUES: Final = 65536
"""Values of types that are kept."""


class Priorities(capstan_native.Priorities):
    """What the flows of one host get. ``counts`` gets totals of flows by whether their type is known."""

    def __init__(self, counts: Counter[str]) -> None:
        self._counts = counts
        self._policy: Policy | None = None
        self._types: FlowTypes | None = None

    def set_policy(self, policy: Policy) -> None:
        """From now on; `assign` all flows anew."""
        self._policy = policy
        classes = [0, policy.short.priority, policy.long.priority, policy.control.priority]
        rule = policy.priority
        self.use_policy(rule.kind, classes, _bounded(rule.thresholds_bytes), rule.predicted)
        self._use_types()

    def set_types(self, types: FlowTypes, flows: FlowTable[bytes, SendFlow]) -> None:
        """Use *types* from each flow's next packet on, if they belong to our policy (else when that comes)."""
        self._types = types
        self._use_types()
        for flow in flows:
            self.assign(flow)

    def _use_types(self) -> None:
        types, policy = self._types, self._policy
        of_value: dict[bytes, list[int]] = {}
        features: Sequence[FeatureName] = ()
        if types is not None and policy is not None and types.version == policy.version:
            if not policy.priority.predicted or types_problem(types.features, types.types, policy.priority):
                self._counts["flow_types_refused"] += 1
            else:
                features, of_value = types.features, _of_value(types)
        self.use_types(features, of_value)

    def assign(self, flow: SendFlow) -> None:
        """Give *flow* what its next packet needs; at its beginning, and when policy, types or its size change."""
        known = self.give(flow.needs, flow.key, flow.payload, flow.announced)
        if known is not None:
            self._counts["flows_of_known_type" if known else "flows_of_unknown_type"] += 1
        flow.demote_at, flow.tos = flow.needs.demote_at, flow.needs.tos

    def demote(self, flow: SendFlow) -> None:
        """*flow* has sent ``demote_at``: its next packet has the priority of what it has sent."""
        self.give_for(flow.needs, flow.payload)
        flow.demote_at, flow.tos = flow.needs.demote_at, flow.needs.tos


def _bounded(thresholds: Sequence[int]) -> list[int]:
    return [min(one, NEVER) for one in thresholds]


def _of_value(types: FlowTypes) -> dict[bytes, list[int]]:
    """Thresholds by the bytes of a value, of `MOST_VALUES` values at most."""
    of_value: dict[bytes, list[int]] = {}
    for one in types.types:
        for value in one.values[: MOST_VALUES - len(of_value)]:
            packed = _packed(types.features, value)
            if packed is not None:
                of_value[packed] = _bounded(one.thresholds_bytes)
    return of_value


def _packed(features: Sequence[FeatureName], value: Sequence[str]) -> bytes | None:
    """The bytes of a value's texts; None where one is no address or port, which no flow has."""
    packed = b""
    for name, text in zip(features, value, strict=True):
        try:
            packed += int(text).to_bytes(2, "big") if name.endswith("_port") else ip_address(text).packed
        except (ValueError, OverflowError):
            return None
    return packed
