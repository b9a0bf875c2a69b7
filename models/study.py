"""What evaluating a model gives: curves over one parameter, a table, and what to make of them. Plain data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from math import isfinite
from typing import Any


@dataclass(frozen=True, slots=True)
class Axis:
    """A quantity; without *unit* it is a pure number."""

    what: str
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Curve:
    """Values over a panel's x, one each (None: not computed there); *scheme* gives it that scheme's style, else it
    has the next of the palette.

    Values of a curve with *trials* are simulated and drawn as points without a line, in the colour of the curve
    of the same *label* without.
    """

    label: str
    ys: tuple[float | None, ...]
    scheme: str | None = None
    trials: bool = False


@dataclass(frozen=True, slots=True)
class Mark:
    """One point, e.g. an optimum, in the colour of the curve *of*; with *text*, a line at x that says it."""

    x: float
    y: float
    of: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Panel:
    """One pair of axes. Raises ValueError if a curve is not as long as *xs*, holds no finite numbers, or repeats."""

    title: str
    x: Axis
    y: Axis
    xs: tuple[float, ...]
    curves: tuple[Curve, ...]
    marks: tuple[Mark, ...] = ()
    log_x: bool = False

    def __post_init__(self) -> None:
        seen: set[tuple[str, bool]] = set()
        for curve in self.curves:
            if len(curve.ys) != len(self.xs):
                raise ValueError(
                    f"panel {self.title!r}: curve {curve.label!r} has {len(curve.ys)} values for {len(self.xs)} xs"
                )
            if not all(y is None or isfinite(y) for y in curve.ys):
                raise ValueError(
                    f"panel {self.title!r}: curve {curve.label!r} holds values that are not finite"
                )
            if (curve.label, curve.trials) in seen:
                raise ValueError(f"panel {self.title!r} has two curves {curve.label!r}")
            seen.add((curve.label, curve.trials))
        lost = {mark.of for mark in self.marks} - {curve.label for curve in self.curves}
        if lost:
            raise ValueError(f"panel {self.title!r}: marks of no curve: {', '.join(sorted(lost))}")


@dataclass(frozen=True, slots=True)
class Study:
    """A model's outcome. The table's columns carry their units; cells are numbers, or words."""

    title: str
    panels: tuple[Panel, ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[float | int | str, ...], ...]
    notes: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"study {self.title!r}: row {row} does not fit the columns {self.columns}")

    def document(self) -> dict[str, Any]:
        """Return the same as plain data for JSON."""
        return asdict(self)


def curve(label: str, ys: Sequence[float | None], scheme: str | None = None, trials: bool = False) -> Curve:
    """Return a `Curve` of any sequence of numbers (numpy's included)."""
    return Curve(label, tuple(None if y is None else float(y) for y in ys), scheme, trials)
