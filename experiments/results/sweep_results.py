"""The result of a sweep: one document over all points, its tables, and the files in which it is kept."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from rich.console import Group
from rich.table import Table
from rich.text import Text

from experiments.results.claims import RATIOS, WORDS, compared, find_across, heading, verdict_text
from experiments.results.document import FORMAT, text_of, write_document
from experiments.results.notes import congestion_words
from experiments.results.notices import unlike_notices
from experiments.results.run_shares import SHARES
from experiments.results.simulated import Document, is_simulated
from experiments.results.statistics import FLOWS_FOR_P99
from experiments.results.tables import interval_text, marks, milliseconds, new_table, scheme_name, warnings
from experiments.spec.serialized import spec_to_dict
from experiments.spec.spec import Claim, Spec
from experiments.spec.sweep import is_across, show, words

_OF_ALL: Final = ("started", "seed", "repeats", "baseline", "transport", "versions", "machine")
_INTERVALS: Final = {"afct_ms": "afct_ci_ms", "p99_ms": "p99_ci_ms", "goodput_mbps": "goodput_ci_mbps"}
_FIGURES: Final = {
    "short": ("n", "failed", "afct_ms", "p99_ms"),
    "long": ("n", "failed", "afct_ms", "goodput_mbps"),
    "medium": ("n", "failed", "afct_ms"),
    "large": ("n", "failed", "afct_ms"),
}
_NOT_RUN: Final[Document] = {"cpu_limited": False}
"""A scheme at a point at which it did not run."""
_OF_EACH: Final = (
    "experiment",
    "schemes",
    "cpu_limited",
    "disturbed",
    "duration_s",
    "packet_time_ms",
    "long_flow_pressure",
    "flow_sizes",
    "notices",
)


def sweep_document(spec: Spec, results: Sequence[tuple[tuple[Any, ...], Path, Document]]) -> dict[str, Any]:
    """Return the whole sweep as plain data, ready for JSON.

    results: for each point what its axes show, where it is kept, and its own result document.
    """
    first = results[0][2]
    of_points = [iter([claim["ours"] for claim in document["claims"]]) for _, _, document in results]
    by_tick = {show(ticks[0]): document["schemes"] for ticks, _, document in results}

    def ours(claim: Claim) -> Any:
        if claim.compare is not None and is_across(claim):
            return find_across(claim.compare, by_tick, spec.seed).to_dict()
        each = [next(verdicts) for verdicts in of_points]
        return None if claim.compare is None else each

    return {
        "format": FORMAT,
        "kind": "sweep",
        "simulated": is_simulated(first),
        "name": spec.name,
        "title": spec.title,
        **{name: first[name] for name in _OF_ALL},
        "duration_s": round(sum(document["duration_s"] for _, _, document in results), 1),
        "cpu_limited": any(document["cpu_limited"] for _, _, document in results),
        "disturbed": any(document.get("disturbed", False) for _, _, document in results),
        "sweep": [asdict(axis) for axis in spec.sweep],
        "points": [
            {
                "at": list(values),
                "words": words(spec.sweep, values),
                "directory": directory.name,
                **{name: document[name] for name in _OF_EACH if name in document},
            }
            for values, directory, document in results
        ],
        "claims": [asdict(claim) | {"ours": ours(claim)} for claim in spec.claims],
        "notices": unlike_notices([(words(spec.sweep, at), document) for at, _, document in results]),
        "spec": spec_to_dict(spec),
    }


def write_sweep(directory: Path, document: Document, spec_text: str) -> None:
    """Write points.csv, tables.txt and spec.yaml of a sweep, and at last its result.json."""
    (directory / "points.csv").write_text(point_table(document), encoding="utf-8")
    (directory / "tables.txt").write_text(text_of(sweep_tables(document)), encoding="utf-8")
    (directory / "spec.yaml").write_text(spec_text, encoding="utf-8")
    write_document(directory, document)


def point_table(document: Document) -> str:
    """Return figures of every scheme at every point as CSV; empty where there is none. Times in ms, rates in Mbit/s."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    columns = [(kind, name) for kind in _FIGURES for name in _FIGURES[kind]]
    writer.writerow(
        [*(axis["label"] for axis in document["sweep"]), "scheme", "cpu_limited", "disturbed"]
        + [f"{kind}_{name}{part}" for kind, name in columns for part in _parts(name)]
    )
    for point in document["points"]:
        for label, scheme in point["schemes"].items():
            marked = [int(scheme["cpu_limited"]), int(bool(scheme.get("disturbed")))]
            row: list[Any] = [*(show(value) for value in point["at"]), label, *marked]
            for kind, name in columns:
                row += _csv_cells(scheme.get(kind, {}), name)
            writer.writerow(row)
    return text.getvalue()


def _parts(name: str) -> tuple[str, ...]:
    return ("", "_low", "_high") if name in _INTERVALS else ("",)


def _csv_cells(block: Document, name: str) -> list[Any]:
    value = block.get(name)
    if name == "p99_ms" and not block.get("p99_shown"):
        value = None
    if name not in _INTERVALS:
        return ["" if value is None else value]
    interval = block.get(_INTERVALS[name]) if value is not None else None
    return ["" if number is None else f"{number:.6g}" for number in (value, *(interval or (None, None)))]


def sweep_tables(document: Document) -> Group:
    """Return everything that `capstan run` prints of a sweep: a table for each measure, schemes by points."""
    return Group(
        *warnings(document), *sweep_tables_of(document), *(Text(line) for line in sweep_notes(document))
    )


def sweep_tables_of(document: Document) -> list[Table]:
    """Return the tables alone."""
    parts: list[Table] = []
    measures: list[tuple[str, Callable[[Document], str | None]]] = [
        ("Mean completion time of short flows, ms [95 % CI]", lambda scheme: _time(scheme, "short", "afct")),
        ("p99 of the completion time of short flows, ms [95 % CI]", _p99),
        ("Mean completion time of long flows, ms [95 % CI]", lambda scheme: _time(scheme, "long", "afct")),
        (
            "Mean completion time of medium flows, ms [95 % CI]",
            lambda scheme: _time(scheme, "medium", "afct"),
        ),
        ("Mean completion time of large flows, ms [95 % CI]", lambda scheme: _time(scheme, "large", "afct")),
        ("Goodput of long flows, sum in Mbit/s [95 % CI]", _goodput),
        ("Packets out of order before release, % of packets", _reordered),
        ("Leaves ON, % of the time", _on_share),
    ]
    for title, cell in measures:
        cells = _cells(document, cell)
        if any(text is not None for row in cells.values() for text in row):
            parts.append(_table(document, title, cells))
    if len(labels_of(document["points"])) > 1:
        parts += _over_baseline(document)
    return parts


def _over_baseline(document: Document) -> list[Table]:
    """Return a table for each measure of time: every other scheme over the baseline at every point."""
    baseline = document["baseline"]

    def ratio(scheme: Document, name: str) -> str | None:
        value = scheme["against"].get(baseline, {}).get(name)
        if value is None:
            return None
        return f"{value:.2f}\n{interval_text(scheme['against'][baseline][f'{name}_ci'], lambda bound: f'{bound:.2f}')}"

    tables: list[Table] = []
    for measure, name in RATIOS.items():
        if measure in SHARES:
            continue
        cells = _cells(document, lambda scheme, name=name: ratio(scheme, name))  # type: ignore[misc]
        cells.pop(baseline, None)
        if any(text is not None for row in cells.values() for text in row):
            tables.append(
                _table(
                    document,
                    f"{WORDS[measure][0].upper()}{WORDS[measure][1:]}, / {baseline} [95 % CI]",
                    cells,
                )
            )
    return tables


def labels_of(points: Sequence[Document]) -> list[str]:
    """Return the labels of the schemes of all *points* of a sweep, each once: a sweep may set which schemes run."""
    return list(dict.fromkeys(label for point in points for label in point["schemes"]))


def _cells(document: Document, cell: Callable[[Document], str | None]) -> dict[str, list[str | None]]:
    return {
        label: [
            cell(point["schemes"][label]) if label in point["schemes"] else None
            for point in document["points"]
        ]
        for label in labels_of(document["points"])
    }


def _table(document: Document, title: str, cells: Mapping[str, Sequence[str | None]]) -> Table:
    axes = document["sweep"]
    heads = ["\n".join(show(value) for value in point["at"]) for point in document["points"]]
    units = "\n".join(f"{axis['label']}{', ' + axis['unit'] if axis['unit'] else ''}" for axis in axes)
    table = new_table(title, heads, first=f"scheme \\ {units}")
    for label, row in cells.items():
        ours = [point["schemes"].get(label, _NOT_RUN) for point in document["points"]]
        marked = {name: any(entry.get(name) for entry in ours) for name in ("cpu_limited", "disturbed")}
        texts = [
            _marked("-" if text is None else text, marks(entry))
            for text, entry in zip(row, ours, strict=True)
        ]
        table.add_row(scheme_name(label, marked), *texts)
    return table


def _marked(text: str, mark: str) -> str:
    value, line, rest = text.partition("\n")
    return f"{value}{mark}{line}{rest}"


def _time(scheme: Document, kind: str, name: str) -> str | None:
    block = scheme.get(kind, {})
    if f"{name}_ms" not in block:
        return None
    return f"{milliseconds(block[f'{name}_ms'])}\n{interval_text(block[f'{name}_ci_ms'], milliseconds)}"


def _p99(scheme: Document) -> str | None:
    return _time(scheme, "short", "p99") if scheme.get("short", {}).get("p99_shown") else None


def _goodput(scheme: Document) -> str | None:
    block = scheme.get("long", {})
    if "goodput_mbps" not in block:
        return None
    return f"{block['goodput_mbps']:.2f}\n{interval_text(block['goodput_ci_mbps'], lambda value: f'{value:.2f}')}"


def _reordered(scheme: Document) -> str | None:
    packets = scheme["packets"]
    return f"{scheme['reordered_in_fabric'] / packets * 100:.2f}" if packets else None


def _on_share(scheme: Document) -> str | None:
    share = scheme.get("on_share")
    return None if share is None else f"{share * 100:.0f}"


def sweep_notes(document: Document) -> list[str]:
    """Return what stands below the tables."""
    lines = [
        f"{len(document['points'])} points, {document['repeats']} runs of each of "
        f"{len(document['points'][0]['schemes'])} schemes at each, seed {document['seed']}"
        f"{congestion_words(document)}; at each point every scheme got the same flows.",
    ]
    few = [
        point["words"]
        for point in document["points"]
        if any(
            "n" in scheme.get("short", {}) and not scheme["short"]["p99_shown"]
            for scheme in point["schemes"].values()
        )
    ]
    if few:
        where = "all points" if len(few) == len(document["points"]) else "; ".join(few)
        lines.append(
            f"p99 is not shown for fewer than {FLOWS_FOR_P99} short flows of a scheme ({where}); more repeats give it."
        )
    for kind in ("short", "long"):
        if failed := _failed(document, kind, "failed"):
            lines.append(f"{kind.capitalize()} flows that failed, and are in no mean: {'; '.join(failed)}.")
    if failed := _failed(document, "long", "failed_background_flows"):
        lines.append(
            f"Long flows without end that failed; sums count what they had sent: {'; '.join(failed)}."
        )
    for claim in document["claims"]:
        lines.append(heading(claim))
        if isinstance(claim["ours"], Mapping):
            lines.append(f"  ours, {compared(claim['compare'])}: {verdict_text(claim['ours'])}")
        elif claim["ours"] is not None:
            lines.append(f"  ours, {compared(claim['compare'])}:")
            lines += [
                f"    {point['words']}: {verdict_text(verdict)}"
                for point, verdict in zip(document["points"], claim["ours"], strict=True)
            ]
    return lines + [f"Note: {notice}" for notice in sweep_notices(document)]


def _failed(document: Document, kind: str, name: str) -> list[str]:
    """Return how many flows of a class failed, by scheme and point, where any did. name: of the count in its block."""
    return [
        f"{label} at {point['words']}: {count}"
        for point in document["points"]
        for label, scheme in point["schemes"].items()
        if (count := scheme.get(kind, {}).get(name))
    ]


def sweep_notices(document: Mapping[str, Any]) -> list[str]:
    """Return what a sweep's document says for people of it and its points, each sentence once."""
    of_points = (notice for point in document["points"] for notice in point["notices"])
    return list(dict.fromkeys([*document.get("notices", ()), *of_points]))
