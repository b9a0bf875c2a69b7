"""What the controller saw happen during a run, out of its events, as plain data in the run's own time.

Events' ``at`` are Unix seconds; ``at_s`` in what is returned are seconds since the run's start.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from experiments.run.supervision import Restart

Events = Iterable[Mapping[str, Any]]
CLOCK_SET_S: Final = 0.1
"""A clock that runs beside another may drift by some ms in a run."""

_FABRIC_KINDS: Final = {
    "link-down": "link",
    "link-up": "link",
    "switch-down": "switch",
    "switch-up": "switch",
}


def gap_notice(events: Sequence[Mapping[str, Any]], cursor: int, label: str, repeat: int) -> str:
    """Return what a result says of a run whose first events the controller has no more; the empty string: it has all.

    events: all that it has after *cursor*, which was the newest when the run began.
    """
    missing = events[0]["cursor"] - cursor - 1 if events else 0
    if missing <= 0:
        return ""
    return (
        f"{label}'s run {repeat + 1} had more events than the controller keeps: the first {missing} are missing, with "
        "what they say of modes, links and types; take fewer flows and more repeats"
    )


def clock_notice(set_by_s: float, label: str, repeat: int) -> str:
    """Return what a result says of a run during which the machine's clock was set; the empty string: it was not.

    set_by_s: seconds by which it then differed from what it would have been.
    """
    if abs(set_by_s) < CLOCK_SET_S:
        return ""
    return (
        f"the machine's clock was set by {set_by_s:+.1f} s during {label}'s run {repeat + 1}: times of its changes of "
        "modes, links and types are as much too late or too early, or they are missing; run it again"
    )


def mode_changes(events: Events, epoch: float, duration_s: float) -> tuple[Mapping[str, Any], ...]:
    """Return the changes of leaves' modes up to the run's end. epoch: the run's start, Unix seconds."""
    return tuple(
        {
            "at_s": round(event["at"] - epoch, 6),
            **{name: event[name] for name in ("leaf", "mode", "cause")},
        }
        for event in events
        if event["at"] - epoch <= duration_s
    )


def path_splits(events: Events, epoch: float, duration_s: float) -> tuple[Mapping[str, Any], ...]:
    """Return how paths were split, of the events since the scheme was set: so the first is from before the start.

    epoch: the run's start, Unix seconds.
    """
    return tuple(
        {
            "at_s": round(event["at"] - epoch, 6),
            **{name: event[name] for name in ("low_latency", "throughput", "share")},
        }
        for event in events
        if event["kind"] == "partition-changed" and event["at"] - epoch <= duration_s
    )


def fabric_changes(events: Events, epoch: float, duration_s: float) -> tuple[Mapping[str, Any], ...]:
    """Return the links and switches that went or came back between the run's start and its end: nothing, in a sound
    run.

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
    """Return the types of flows (TPFS) that agents got since the scheme was set: so the first may be from before the
    start. epoch: the run's start, Unix seconds.
    """
    return tuple(
        {
            "at_s": round(event["at"] - epoch, 6),
            **{name: event[name] for name in ("flows", "features", "types", "unknown_flows", "seconds")},
        }
        for event in events
        if event["kind"] == "types-learnt" and event["sent"] and event["at"] - epoch <= duration_s
    )


def disturbances(restarts: Iterable[Restart], epoch: float) -> tuple[Mapping[str, Any], ...]:
    """Return the restarts as plain data in the run's own time. epoch: its start, monotonic seconds."""
    return tuple(
        {
            "at_s": round(restart.ended_at - epoch, 3),
            "part": restart.part,
            "how": restart.how,
            "after_s": round(restart.after_s, 3),
        }
        for restart in restarts
    )
