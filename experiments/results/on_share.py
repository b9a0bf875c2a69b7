"""For how much of the time leaves were ON: what became of the ON periods that a workload offers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def on_share(changes: Sequence[Mapping[str, Any]], begin_s: float, end_s: float) -> float | None:
    """Return the share of a span in which leaves were ON, the mean over those that ever were; None: none was.

    changes: of one run, in order, with `leaf`, `mode` and `at_s`; all leaves begin OFF.
    """
    on_s: dict[str, float] = {}
    since: dict[str, float] = {}
    for change in changes:
        leaf, at_s = change["leaf"], min(max(change["at_s"], begin_s), end_s)
        on_s.setdefault(leaf, 0.0)
        if change["mode"] == "on":
            since.setdefault(leaf, at_s)
        elif leaf in since:
            on_s[leaf] += at_s - since.pop(leaf)
    for leaf, at_s in since.items():
        on_s[leaf] += end_s - at_s
    if not on_s or end_s <= begin_s:
        return None
    return sum(on_s.values()) / len(on_s) / (end_s - begin_s)


def mean_share(shares: Iterable[float | None]) -> float | None:
    """Return the mean of what runs have; None: none has any."""
    known = [share for share in shares if share is not None]
    return sum(known) / len(known) if known else None
