"""What the controller saw happen during a run, out of its events, as plain data in the run's own time.

Events' ``at`` are Unix seconds; ``at_s`` in what is returned are seconds since the run's start.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from experiments.supervision import Restart

Events = Iterable[Mapping[str, Any]]

_FABRIC_KINDS: Final = {
    "link-down": "link",
    "link-up": "link",
    "switch-down": "switch",
    "switch-up": "switch",
}


def mode_changes(events: Events, epoch: float, duration_s: float) -> tuple[Mapping[str, Any], ...]:
    """Changes of leaves' modes up to the run's end. epoch: the run's start, Unix seconds."""
    return tuple(
        {
            "at_s": round(event["at"] - epoch, 6),
            **{name: event[name] for name in ("leaf", "mode", "cause")},
        }
        for event in events
        if event["at"] - epoch <= duration_s
    )


def path_splits(events: Events, epoch: float, duration_s: float) -> tuple[Mapping[str, Any], ...]:
    """How paths were split, of the events since the scheme was set: so the first is from before the start."""
    return tuple(
        {
            "at_s": round(event["at"] - epoch, 6),
            **{name: event[name] for name in ("low_latency", "throughput", "share")},
        }
        for event in events
        if event["kind"] == "partition-changed" and event["at"] - epoch <= duration_s
    )


def fabric_changes(events: Events, epoch: float, duration_s: float) -> tuple[Mapping[str, Any], ...]:
    """Links and switches that went or came back between the run's start and its end: nothing, in a sound run.

    Flows took other paths meanwhile, also where the scheme would have kept them to one.
    """
    return tuple(
        {
            "at_s": round(event["at"] - epoch, 6),
            "kind": event["kind"],
            "name": event[_FABRIC_KINDS[event["kind"]]],
            "cause": event.get("cause"),
        }
        for event in events
        if event["kind"] in _FABRIC_KINDS and 0 <= event["at"] - epoch <= duration_s
    )


def types_learnt(events: Events, epoch: float, duration_s: float) -> tuple[Mapping[str, Any], ...]:
    """Types of flows (TPFS) that agents were told of, since the scheme was set: so the first may be from before the
    start."""
    return tuple(
        {
            "at_s": round(event["at"] - epoch, 6),
            **{name: event[name] for name in ("flows", "features", "types", "unknown_flows", "seconds")},
        }
        for event in events
        if event["kind"] == "types-learnt" and event["told"] and event["at"] - epoch <= duration_s
    )


def types_notices(
    label: str, repeat: int, learnt: Sequence[Mapping[str, Any]], counted_from_s: float
) -> list[str]:
    """A sentence on a run in which types were not known when flows began to count. For schemes that learn types."""
    known = next((one["at_s"] for one in learnt if one["types"]), None)
    if known is not None and known <= counted_from_s:
        return []
    when = "never" if known is None else f"at {known:.1f} s"
    return [
        f"{label}'s run {repeat + 1}: types of flows were {when} known, and flows count from {counted_from_s:.1f} s "
        "on: until then all had the default thresholds"
    ]


def fabric_notices(label: str, repeat: int, changes: Sequence[Mapping[str, Any]]) -> list[str]:
    """A sentence for people on what happened to the fabric during one run, or none."""
    if not changes:
        return []
    first = changes[0]
    cause = f" ({first['cause']})" if first["cause"] else ""
    what, how = first["kind"].split("-")
    more = f", and {len(changes) - 1} more" if len(changes) > 1 else ""
    return [
        f"the fabric changed during {label}'s run {repeat + 1}: {what} {first['name']} {how} "
        f"at {first['at_s']:.1f} s{cause}{more}; flows took other paths meanwhile"
    ]


def disturbances(restarts: Iterable[Restart], epoch: float) -> tuple[Mapping[str, Any], ...]:
    """Restarts as plain data in the run's own time. epoch: its start, monotonic seconds."""
    return tuple(
        {
            "at_s": round(restart.ended_at - epoch, 3),
            "part": restart.part,
            "how": restart.how,
            "after_s": round(restart.after_s, 3),
        }
        for restart in restarts
    )


def disturbance_notices(
    label: str, repeat: int, disturbed: tuple[Mapping[str, Any], ...], repeated: int
) -> list[str]:
    """Return a sentence for people on a run that was disturbed or repeated, or none."""
    times = "once" if repeated == 1 else f"{repeated} times"
    found = []
    if repeated:
        found.append(
            f"{label}'s run {repeat + 1} was repeated {times} with the same flows: "
            "a part of the lab had ended during it"
        )
    if disturbed:
        first = disturbed[0]
        more = f", and {len(disturbed) - 1} more" if len(disturbed) > 1 else ""
        found.append(
            f"{label}'s run {repeat + 1} is disturbed: {first['part']} ended ({first['how']}) at {first['at_s']:.1f} s "
            f"and was back after {first['after_s']:.1f} s{more}"
        )
    return found
