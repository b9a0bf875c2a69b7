"""``python -m figures.draw NAME FORMAT``: one figure of a result, drawn in a process of its own.

Standard input: a line of JSON with ``schemes`` and ``runs`` of a result, then a line for each flow record: values of
FIELDS, in this order. Standard output: the picture, SVG or PNG; nothing where the result has not enough for it.
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any, Final

from figures import results
from figures.style import applied

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIELDS: Final = ("traffic_class", "scheme", "fct_s", "size_bytes", "paths")
FIGURES: Final[Mapping[str, str]] = {
    "completion-times": "Distribution of completion times, all runs of a scheme together.",
    "by-size": "Mean completion time by flow size.",
    "path-balance": "How evenly paths were used, all runs of a scheme together.",
    "modes": "When leaves sent long flows on one path each.",
}
"""Name and caption of each."""
FORMATS: Final = ("svg", "png")


def draw(name: str, kind: str, document: Mapping[str, Any], records: Sequence[Mapping[str, str]]) -> bytes:
    """Return the picture; empty where there is not enough for it."""
    with applied():
        figure = figure_of(name, document, records)
        return b"" if figure is None else picture(figure, kind)


def figure_of(name: str, document: Mapping[str, Any], records: Sequence[Mapping[str, str]]) -> Figure | None:
    """Return one of `FIGURES`; None where there is not enough for it. To be called where the style is applied."""
    if name == "modes":
        return results.mode_timeline(document)
    makers = {
        "completion-times": results.completion_times,
        "by-size": results.by_size,
        "path-balance": results.path_balance,
    }
    return makers[name](document, records)


def picture(figure: Figure, kind: str) -> bytes:
    """Return a figure as SVG or PNG, the same bytes each time."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    FigureCanvasAgg(figure)
    buffer = io.BytesIO()
    made = {"Date": None, "Creator": "Capstan"} if kind == "svg" else {"Software": None}
    figure.savefig(buffer, format=kind, metadata=made)
    return buffer.getvalue()


def lines_of(document: Mapping[str, Any], records: Iterable[Sequence[str]]) -> Iterable[bytes]:
    """Yield the standard input for `main`; records: values of FIELDS."""
    yield json.dumps(document).encode() + b"\n"
    for record in records:
        yield json.dumps(record).encode() + b"\n"


def main(name: str, kind: str, source: IO[bytes], target: IO[bytes]) -> None:
    """Draw the figure of that name and kind from *source* (a document, then a record a line) into *target*."""
    document = json.loads(source.readline())
    records = [dict(zip(FIELDS, json.loads(line), strict=True)) for line in source]
    target.write(draw(name, kind, document, records))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.stdin.buffer, sys.stdout.buffer)
