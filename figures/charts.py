"""The two charts that comparisons of schemes need: bars with intervals, and lines over a swept parameter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING

from figures.style import SchemeStyle, label_styles

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value and its interval, in the axis' unit; *low* <= *value* <= *high*."""

    value: float
    low: float
    high: float
    doubtful: bool = False
    """Drawn pale, with a star: for instance where the processor set the pace."""

    def __post_init__(self) -> None:
        if (
            not all(map(isfinite, (self.value, self.low, self.high)))
            or not self.low <= self.value <= self.high
        ):
            raise ValueError(f"an estimate needs finite low <= value <= high, not {self}")


def scheme_bars(
    axes: Axes,
    estimates: Mapping[str, Estimate],
    reference: float | None = None,
    schemes: Mapping[str, str] | None = None,
) -> None:
    """Draw one bar a label, in the order of *estimates*, with its interval and its value above.

    Args:
        axes: where; its axes are not named here (`style.label`).
        estimates: by label.
        reference: a thin line at this value, e.g. 1.0 where bars are normalised.
        schemes: scheme of each label (of all that a figure has), where labels are not schemes' names.
    """
    if not estimates:
        raise ValueError("a bar chart needs at least one estimate")
    top = max(estimate.high for estimate in estimates.values())
    styles = label_styles(schemes or {name: name for name in estimates})
    for x, (name, bar) in enumerate(estimates.items()):
        style = styles[name]
        axes.bar(
            x,
            bar.value,
            width=0.72,
            color=style.colour,
            hatch=style.hatch,
            edgecolor="white",
            linewidth=0.0,
            alpha=0.45 if bar.doubtful else 1.0,
        )
        axes.errorbar(
            x, bar.value, [[bar.value - bar.low], [bar.high - bar.value]], color="#222222", linewidth=1.0
        )
        text = f"{bar.value:.3g}" + ("*" if bar.doubtful else "")
        axes.text(x, bar.high + 0.015 * top, text, ha="center", va="bottom", fontsize=7)
    if reference is not None:
        axes.axhline(reference, color="#222222", linewidth=0.8, linestyle=(0, (4, 3)), zorder=0.9)
    axes.set_xticks(range(len(estimates)), list(estimates), rotation=35, ha="right", rotation_mode="anchor")
    axes.set_xlim(-0.6, len(estimates) - 0.4)
    axes.set_ylim(0.0, 1.12 * top if top > 0 else 1.0)


def scheme_lines(
    axes: Axes,
    xs: Sequence[float],
    series: Mapping[str, Sequence[Estimate | None]],
    schemes: Mapping[str, str] | None = None,
) -> None:
    """Draw one line a label over *xs*, with its interval as a band; None where there is no figure (the line
    breaks).

    Doubtful points are hollow. Raises ValueError where a series is not as long as *xs*.
    """
    styles = label_styles(schemes or {name: name for name in series})
    for name, points in series.items():
        if len(points) != len(xs):
            raise ValueError(f"series {name!r} has {len(points)} points for {len(xs)} values on the x axis")
        draw_line(axes, xs, points, name=name, style=styles[name])
    if len(series) > 1:
        axes.legend(ncols=1 + (len(series) - 1) // 8)


def draw_line(
    axes: Axes, xs: Sequence[float], points: Sequence[Estimate | None], *, name: str, style: SchemeStyle
) -> None:
    """Draw one line of `scheme_lines`, in any style."""
    nan = float("nan")
    values = [nan if point is None else point.value for point in points]
    lows = [nan if point is None else point.low for point in points]
    highs = [nan if point is None else point.high for point in points]
    axes.plot(xs, values, color=style.colour, linestyle=style.line, marker=style.marker, label=name)
    if any(high > low for low, high in zip(lows, highs, strict=True)):
        axes.fill_between(xs, lows, highs, color=style.colour, alpha=0.15, linewidth=0.0)
    hollow = [
        (x, point.value) for x, point in zip(xs, points, strict=True) if point is not None and point.doubtful
    ]
    if hollow:
        axes.plot(
            [x for x, _ in hollow],
            [y for _, y in hollow],
            color=style.colour,
            linestyle="",
            marker=style.marker,
            markerfacecolor="white",
            zorder=3,
        )
