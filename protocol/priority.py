"""How an agent chooses the priority of a flow's packets: by what the flow has sent, and by what it is known to be.

Priority 0 is served first. A flow that has sent ``thresholds_bytes[l]`` of payload leaves priority l; from the first
packet on that a threshold of 0 forbids it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from protocol.underlay import PRIORITIES

MOST_BYTES: Final = 1 << 62
"""Of a limit or threshold that flows have: more than any flow sends, and agents' numbers have 64 bits."""

PriorityKind = Literal["class", "bytes-sent", "size"]
"""What decides: the traffic class alone; the payload sent so far (PIAS, TPFS); the announced size, and for flows
without one the payload sent so far."""
FeatureName = Literal["source", "source_port", "destination", "destination_port"]
"""Fields of the inner packet that give the type of a flow."""


@dataclass(frozen=True, slots=True)
class PriorityPolicy:
    """``thresholds_bytes``: of flows of no known type; one fewer than there are queues, not falling."""

    kind: PriorityKind = "class"
    thresholds_bytes: tuple[int, ...] = ()
    predicted: bool = False
    """Whether flows have types (`protocol.control.FlowTypes`), and those that ended are reported
    (`protocol.control.FinishedFlows`)."""


@dataclass(frozen=True, slots=True)
class TypePriority:
    """``values``: texts of the features, in their order, of the flows that are of this type."""

    values: tuple[tuple[str, ...], ...]
    thresholds_bytes: tuple[int, ...]


def priority_problem(policy: PriorityPolicy) -> tuple[str, str] | None:
    """Return the field and text of what cannot be; None if all can."""
    if policy.kind == "class":
        if policy.thresholds_bytes:
            return "thresholds_bytes", "mean nothing to kind class: leave them out"
        if policy.predicted:
            return "predicted", "means nothing to kind class"
        return None
    wrong = thresholds_problem(policy.thresholds_bytes)
    if wrong is not None:
        return "thresholds_bytes", wrong
    if policy.thresholds_bytes[-1] > MOST_BYTES:
        return "thresholds_bytes", f"must be at most {MOST_BYTES} B"
    if policy.predicted and policy.kind != "bytes-sent":
        return "predicted", "goes with kind bytes-sent only"
    return None


def thresholds_problem(thresholds: Sequence[int]) -> str | None:
    """Return what is wrong with thresholds; None: nothing."""
    if not 1 <= len(thresholds) < PRIORITIES:
        return f"must be 1 to {PRIORITIES - 1} sizes, not {len(thresholds)}"
    if any(threshold < 0 for threshold in thresholds) or list(thresholds) != sorted(thresholds):
        return "must not be negative, nor fall"
    return None


def types_problem(
    features: Sequence[FeatureName], types: Sequence[TypePriority], policy: PriorityPolicy
) -> str | None:
    """Return what keeps these types from being used under *policy*; None: nothing."""
    for flow_type in types:
        wrong = thresholds_problem(flow_type.thresholds_bytes)
        if wrong is not None:
            return f"thresholds of a type {wrong}"
        if len(flow_type.thresholds_bytes) != len(policy.thresholds_bytes):
            return f"a type has {len(flow_type.thresholds_bytes)} thresholds, the policy {len(policy.thresholds_bytes)}"
        if any(len(value) != len(features) for value in flow_type.values):
            return f"a value must have {len(features)} fields"
    return None
