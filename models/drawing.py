"""Draws a study in the style of all figures: panels side by side, curves as lines, simulation as points."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from figures import style
from figures.style import SchemeStyle
from models.study import Curve, Panel, Study

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PANEL_WIDTH_IN: Final = 4.6
HEIGHT_IN: Final = 4.2
FEW_POINTS: Final = 24
"""Curves with more are drawn without markers."""


def draw(study: Study, stem: Path) -> tuple[Path, Path]:
    """Write ``stem.png`` and ``stem.svg`` and return both paths. Raises OSError where they cannot be written."""
    columns = min(len(study.panels), 2 if len(study.panels) == 4 else 3)
    rows = -(-len(study.panels) // columns)
    styles = styles_of(curve for panel in study.panels for curve in panel.curves)
    with style.applied():
        figure = style.new_figure(PANEL_WIDTH_IN * columns, HEIGHT_IN * rows)
        figure.suptitle(study.title, x=0.01, ha="left", fontweight="bold", fontsize=11)
        axes = figure.subplots(rows, columns, squeeze=False).flat
        for axis, panel in zip(axes, study.panels, strict=False):
            _panel(axis, panel, styles)
        for spare in list(axes)[len(study.panels) :]:
            spare.remove()
        return style.save(figure, stem)


def _panel(axes: Axes, panel: Panel, styles: Mapping[str, SchemeStyle]) -> None:
    for curve in panel.curves:
        look = styles[curve.label]
        points = [(x, y) for x, y in zip(panel.xs, curve.ys, strict=True) if y is not None]
        xs, ys = [x for x, _ in points], [y for _, y in points]
        if curve.trials:
            axes.plot(
                xs, ys, linestyle="", color=look.colour, marker=look.marker, markerfacecolor="white", zorder=3
            )
        else:
            has_trials = any(other.trials and other.label == curve.label for other in panel.curves)
            marker = "" if has_trials or len(xs) > FEW_POINTS else look.marker
            axes.plot(xs, ys, color=look.colour, linestyle=look.line, marker=marker, label=curve.label)
    for mark in panel.marks:
        look = styles[mark.of]
        if mark.text:
            axes.axvline(mark.x, color=style.INK, linewidth=0.8, linestyle=(0, (4, 3)), zorder=0.9)
            axes.text(
                mark.x, 0.98, f" {mark.text}", transform=axes.get_xaxis_transform(), va="top", fontsize=8
            )
        else:
            axes.plot(mark.x, mark.y, marker="o", markersize=7, markerfacecolor="white", color=look.colour)
    if panel.log_x:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:g}")
    style.label(
        axes, x=panel.x.what, x_unit=panel.x.unit, y=panel.y.what, y_unit=panel.y.unit, title=panel.title
    )
    if not panel.marks:
        axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    if any(curve.trials for curve in panel.curves):
        axes.plot(
            [], [], linestyle="", marker="o", markerfacecolor="white", color=style.INK, label="simulated"
        )
    if len(panel.curves) > 1:
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2)


def styles_of(curves: Iterable[Curve]) -> dict[str, SchemeStyle]:
    """Return the style by label: the scheme's, or the palette's next that no scheme among *curves* has taken."""
    curves = list(curves)
    schemes = {curve.label: style.scheme_style(curve.scheme) for curve in curves if curve.scheme is not None}
    taken = {look.colour for look in schemes.values()}
    free = (i for i in range(2 * len(style.PALETTE)) if style.series_style(i).colour not in taken)
    styles: dict[str, SchemeStyle] = {}
    for number, label in enumerate(dict.fromkeys(curve.label for curve in curves)):
        line = style.LINES[(number + number // len(style.PALETTE)) % len(style.LINES)]
        styles[label] = schemes.get(label) or replace(style.series_style(next(free)), line=line)
    return styles
