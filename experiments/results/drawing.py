"""Figures of results: schemes side by side, and lines over a sweep. Each as PNG and SVG beside its result."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from experiments.results.claims import RATIOS
from experiments.results.simulated import Document
from experiments.results.statistics import FLOWS_FOR_P99
from experiments.results.sweep_results import labels_of
from experiments.spec.spec import Measure
from experiments.spec.sweep import show
from figures.charts import Estimate, scheme_bars, scheme_lines
from figures.style import applied, label, new_figure, save

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIDE_BY_SIDE: Final = 6
"""Up to this many schemes the panels stand beside each other, more have them one below the other."""


LETTERS_PER_INCH: Final = 15
"""Of the caption, in its 7 point type."""
HEADROOM: Final = 1.08
"""A sweep's axes reach so far above the largest value that its marker is whole."""


@dataclass(frozen=True, slots=True)
class _Panel:
    """One measure: what its axis is called, in which unit, and where a scheme's block has it."""

    measure: Measure
    axis: str
    unit: str
    kind: str
    value: str
    interval: str


PANELS: Final = (
    _Panel("short-mean", "mean completion time, short flows", "ms", "short", "afct_ms", "afct_ci_ms"),
    _Panel("short-p99", "p99 completion time, short flows", "ms", "short", "p99_ms", "p99_ci_ms"),
    _Panel("long-goodput", "goodput, long flows", "Mbit/s", "long", "goodput_mbps", "goodput_ci_mbps"),
)


def draw_comparison(document: Document, directory: Path) -> tuple[Path, ...]:
    """Draw comparison.png and .svg: each measure of every scheme over that of the baseline, with intervals.

    Returns the files: none where there is nothing to compare.
    """
    with applied():
        figure = comparison_figure(document)
        return () if figure is None else save(figure, directory / "comparison")


def comparison_figure(document: Document) -> Figure | None:
    """Return the figure of `draw_comparison`; use inside `figures.style.applied`.

    Of fewer than two schemes there is nothing to compare: nothing is drawn. p99 has a panel where all have flows
    enough.
    """
    schemes, baseline = document["schemes"], document["baseline"]
    if len(schemes) < 2:
        return None
    panels = [
        (panel, bars)
        for panel in PANELS
        if (bars := {name: _ratio(panel, name, entry, baseline) for name, entry in schemes.items()})
        and None not in bars.values()
    ]
    if not panels:
        return None
    names = {name: entry["scheme"] for name, entry in schemes.items()}
    beside = len(schemes) <= SIDE_BY_SIDE
    columns, rows = (len(panels), 1) if beside else (1, len(panels))
    width = 1.2 + 0.42 * len(schemes)
    figure = new_figure(max(6.4, width * columns), 3.4 if beside else 2.6 * rows + 0.6)
    for index, (panel, bars) in enumerate(panels):
        axes = figure.add_subplot(rows, columns, index + 1)
        scheme_bars(axes, {name: bar for name, bar in bars.items() if bar is not None}, 1.0, names)
        label(axes, x="", y=f"{panel.axis}\n/ {baseline}".replace(", ", "\n"))
    figure.suptitle(document["title"], x=0.01, ha="left", fontsize=10)
    _caption(figure, document, schemes.values())
    return figure


def _ratio(panel: _Panel, name: str, scheme: Document, baseline: str) -> Estimate | None:
    doubtful = _is_doubtful(scheme)
    if name == baseline:
        block = scheme.get(panel.kind, {})
        there = panel.value in block and (panel.measure != "short-p99" or block["p99_shown"])
        return Estimate(1.0, 1.0, 1.0, doubtful) if there else None
    against = scheme["against"].get(baseline, {})  # a point of a sweep may run other schemes
    key = RATIOS[panel.measure]
    return _estimate(against.get(key), against.get(f"{key}_ci"), doubtful)


def _is_doubtful(scheme: Document) -> bool:
    """Return whether a scheme's figures are not to be used. Documents of before say nothing of disturbed runs."""
    return bool(scheme["cpu_limited"] or scheme.get("disturbed"))


def _estimate(value: float | None, interval: Sequence[float] | None, doubtful: bool) -> Estimate | None:
    if value is None:
        return None
    low, high = (value, value) if interval is None else interval
    return Estimate(
        value, min(low, value), max(high, value), doubtful
    )  # a bootstrap interval may miss its figure


def _caption(figure: Figure, document: Document, schemes: Iterable[Document]) -> None:
    """Write below the figure what a reader needs to judge it, in as many lines as it takes."""
    repeats = document["repeats"]
    text = f"95 % bootstrap intervals, {repeats} repeat{'' if repeats == 1 else 's'}, same flows for all schemes."
    if any(scheme.get("short", {}).get("p99_shown") is False for scheme in schemes):
        text += f" No p99 of fewer than {FLOWS_FOR_P99} flows."
    causes = {"cpu_limited": "limited by the processor", "disturbed": "a part of the lab ended meanwhile"}
    if there := [words for name, words in causes.items() if document.get(name)]:
        text += f" * and pale or hollow: {' or '.join(there)}, not to be used."
    lines = textwrap.wrap(text, int(figure.get_figwidth() * LETTERS_PER_INCH))
    figure.supxlabel("\n".join(lines), x=0.01, ha="left", fontsize=7)


def draw_sweep(document: Document, directory: Path) -> tuple[Path, ...]:
    """Draw sweep.png and .svg: each measure over the first axis, a line for each scheme.

    Further axes get a figure for each of their combinations: sweep-1, sweep-2, ... Returns the files.
    """
    files: list[Path] = []
    with applied():
        for stem, _, figure in sweep_figures(document):
            files += save(figure, directory / stem)
    return tuple(files)


def sweep_figures(document: Document) -> Iterator[tuple[str, str, Figure]]:
    """Yield the figures of `draw_sweep`: file stem, title, figure; use inside `figures.style.applied`."""
    groups: dict[tuple[Any, ...], list[Document]] = {}
    for point in document["points"]:
        groups.setdefault(tuple(point["at"][1:]), []).append(point)
    for number, (rest, points) in enumerate(groups.items(), 1):
        title = document["title"]
        for axis, value in zip(document["sweep"][1:], rest, strict=True):
            title += f", {axis['label']} = {show(value)}{' ' + axis['unit'] if axis['unit'] else ''}"
        yield "sweep" if len(groups) == 1 else f"sweep-{number}", title, _lines(document, points, title)


def _lines(document: Document, points: Sequence[Document], title: str) -> Figure:
    axis = document["sweep"][0]
    ticks = [point["at"][0] for point in points]
    numbers = all(isinstance(tick, int | float) and not isinstance(tick, bool) for tick in ticks)
    xs = [float(tick) for tick in ticks] if numbers else [float(index) for index in range(len(ticks))]
    labels = labels_of(points)
    names = {
        name: next(point["schemes"][name]["scheme"] for point in points if name in point["schemes"])
        for name in labels
    }
    panels = []
    for panel in PANELS:
        series = {
            name: [
                _absolute(panel, point["schemes"][name]) if name in point["schemes"] else None
                for point in points
            ]
            for name in labels
        }
        if any(value is not None for line in series.values() for value in line):
            panels.append((panel, series))
    figure = new_figure(max(6.4, 3.6 * len(panels)), 3.8)
    for index, (panel, series) in enumerate(panels):
        axes = figure.add_subplot(1, len(panels), index + 1)
        scheme_lines(axes, xs, series, names)
        axes.set_xticks(xs, [show(tick) for tick in ticks])
        top = max(point.high for line in series.values() for point in line if point is not None)
        axes.set_ylim(0.0, HEADROOM * top if top > 0 else 1.0)
        label(axes, x=axis["label"], x_unit=axis["unit"], y=panel.axis, y_unit=panel.unit)
    figure.suptitle(title, x=0.01, ha="left", fontsize=10)
    _caption(figure, document, [scheme for point in points for scheme in point["schemes"].values()])
    return figure


def _absolute(panel: _Panel, scheme: Document) -> Estimate | None:
    block = scheme.get(panel.kind, {})
    if panel.measure == "short-p99" and not block.get("p99_shown"):
        return None
    return _estimate(block.get(panel.value), block.get(panel.interval), _is_doubtful(scheme))
