"""Figures of results: distributions, balance of paths, modes over time. Drawn from a result and its flow records."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from figures.style import label, label_styles, logarithmic, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Document = Mapping[str, Any]
Record = Mapping[str, str]
"""A row of flows.csv."""
SIZE_GROUPS: Final = 8
FEWEST_OF_A_GROUP: Final = 3
"""Flows of which a mean is shown."""


def completion_times(document: Document, records: Iterable[Record]) -> Figure | None:
    """Return the distribution of completion times, a panel for each class of flows; None without a finished flow.

    Shares are of all flows that were to end: where some failed, a line ends below 1.
    """
    times: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    flows: Counter[tuple[str, str]] = Counter()
    for record in records:
        flows[record["traffic_class"], record["scheme"]] += bool(record["size_bytes"] or record["fct_s"])
        if record["fct_s"]:
            times[record["traffic_class"]][record["scheme"]].append(float(record["fct_s"]) * 1e3)
    if not times:
        return None
    figure = new_figure(max(6.4, 4.2 * len(times)), 3.6)
    for index, kind in enumerate(sorted(times, reverse=True)):
        axes = figure.add_subplot(1, len(times), index + 1)
        for name, style in _styles(document):
            values = np.sort(times[kind].get(name, []))
            if len(values):
                shares = np.arange(1, len(values) + 1) / flows[kind, name]
                axes.step(values, shares, where="post", color=style.colour, linestyle=style.line, label=name)
        logarithmic(axes, x=True)
        axes.set_ylim(0, 1)
        label(axes, x="completion time", x_unit="ms", y=f"share of {kind} flows")
        axes.legend(fontsize=7)
    return figure


def by_size(document: Document, records: Iterable[Record]) -> Figure | None:
    """Return mean completion time over flow size, in groups of equal numbers of flows; None with too few of them."""
    points: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for record in records:
        if record["fct_s"] and record["size_bytes"]:
            points[record["scheme"]].append((float(record["size_bytes"]) / 1e3, float(record["fct_s"]) * 1e3))
    sizes = np.array([size for run_points in points.values() for size, _ in run_points])
    if len(sizes) < SIZE_GROUPS * FEWEST_OF_A_GROUP or np.ptp(sizes) == 0:
        return None
    edges = np.unique(np.quantile(sizes, np.linspace(0, 1, SIZE_GROUPS + 1)))
    figure = new_figure(6.4, 3.6)
    axes = figure.add_subplot()
    for name, style in _styles(document):
        line = [
            (float(np.mean([size for size, _ in group])), float(np.mean([time for _, time in group])))
            for group in size_groups(points[name], edges)
            if len(group) >= FEWEST_OF_A_GROUP
        ]
        if line:
            axes.plot(
                *zip(*line, strict=True),
                color=style.colour,
                linestyle=style.line,
                marker=style.marker,
                label=name,
            )
    logarithmic(axes, x=True, y=True)
    label(axes, x="flow size", x_unit="kB", y="mean completion time", y_unit="ms")
    axes.legend(fontsize=7)
    return figure


def size_groups(
    points: Iterable[tuple[float, float]], edges: Sequence[float] | NDArray[np.float64]
) -> list[list[tuple[float, float]]]:
    """Return (size, time) of flows by size, each in one group: from its lower edge on to below the next, the last up to
    its own.
    """
    groups: list[list[tuple[float, float]]] = [[] for _ in edges[1:]]
    for point in points:
        groups[min(max(int(np.searchsorted(edges, point[0], "right")) - 1, 0), len(groups) - 1)].append(point)
    return groups


def path_balance(document: Document, records: Iterable[Record]) -> Figure | None:
    """Return each scheme's paths by what they carried, the busiest first; None if no packet had a choice."""
    carried: dict[str, Counter[str]] = defaultdict(Counter)
    for record in records:
        for word in record["paths"].split():
            stamp, _, count = word.partition(":")
            if stamp != "0":
                carried[record["scheme"]][stamp] += int(count)
    stamps = {stamp for stamps in carried.values() for stamp in stamps}
    if len(stamps) < 2:
        return None
    from matplotlib.ticker import MaxNLocator

    figure = new_figure(6.4, 3.4)
    axes = figure.add_subplot()
    for name, style in _styles(document):
        total = sum(carried[name].values())
        if total:
            shares = sorted((carried[name].get(stamp, 0) / total * 100 for stamp in stamps), reverse=True)
            axes.plot(
                range(1, len(shares) + 1), shares, color=style.colour, linestyle=style.line, marker=style.marker,
                label=name,
            )  # fmt: skip
    axes.axhline(100 / len(stamps), color="grey", linewidth=0.8)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_ylim(bottom=0)
    label(axes, x="path, the busiest first (grey: an even share)", y="of all packets", y_unit="%")
    axes.legend(fontsize=7)
    return figure


def mode_timeline(document: Document) -> Figure | None:
    """Return when leaves were ON, in the first run of each scheme that has modes; None if no mode ever changed."""
    runs = [run for run in document["runs"] if run["modes"] and run["repeat"] == 0]
    if not runs:
        return None
    rows = sum(len(_leaves(run)) for run in runs)
    figure = new_figure(6.4, 1.2 + 0.28 * rows)
    axes = figure.add_subplot()
    names: list[str] = []
    styles = dict(_styles(document))
    for run in runs:
        for leaf in _leaves(run):
            spans = on_spans([mode for mode in run["modes"] if mode["leaf"] == leaf], run["duration_s"])
            colour = styles[run["scheme"]].colour
            axes.broken_barh(spans, (len(names) - 0.35, 0.7), color=colour)
            names.append(f"{run['scheme']}, {leaf}")
    axes.set_yticks(range(len(names)), names, fontsize=7)
    axes.set_xlim(0, max(run["duration_s"] for run in runs))
    axes.invert_yaxis()
    label(axes, x="time since the run's start (bars: short flows are ON)", x_unit="s", y="")
    return figure


def on_spans(changes: Sequence[Mapping[str, Any]], end_s: float) -> list[tuple[float, float]]:
    """Return (start, length) in seconds of a leaf's times ON, from its changes in order; it may be ON at
    first, or at last.
    """
    spans: list[tuple[float, float]] = []
    since = 0.0 if changes and changes[0]["mode"] == "off" else None
    for change in changes:
        position = min(max(float(change["at_s"]), 0.0), end_s)
        if change["mode"] == "on":
            since = position if since is None else since
        elif since is not None:
            spans.append((since, position - since))
            since = None
    if since is not None:
        spans.append((since, end_s - since))
    return [span for span in spans if span[1] > 0]


def _leaves(run: Mapping[str, Any]) -> list[str]:
    return sorted({change["leaf"] for change in run["modes"]})


def _styles(document: Document) -> list[tuple[str, Any]]:
    return list(label_styles({name: entry["scheme"] for name, entry in document["schemes"].items()}).items())
