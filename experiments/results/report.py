"""A result of an experiment or a sweep as one page: HTML with all in it, or Markdown with its figures beside it."""

from __future__ import annotations

import base64
import csv
import html
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rich.table import Table
from rich.text import Text

from capstan_client.errors import CapstanError
from experiments.results.drawing import comparison_figure, sweep_figures
from experiments.results.notes import notes
from experiments.results.simulated import Document, is_simulated
from experiments.results.sweep_results import sweep_notes, sweep_tables_of
from experiments.results.tables import tables_of
from figures.draw import FIGURES, figure_of, picture
from figures.style import applied

CPU_WARNING: Final = (
    "The processor, not the fabric, set the pace of the runs marked *: do not use their figures. "
    "Lower the rates or use a machine with more cores."
)
DISTURBED_WARNING: Final = (
    "A part of the lab ended during the runs marked #, and again whenever they were repeated: run them again for "
    "figures to use."
)
SIMULATED: Final = "Simulated, packet by packet: no real switches or hosts."
_STYLE: Final = """
:root { color-scheme: light dark; --line: #8886; --mark: #b3261e; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 0.9rem; }
th, td { padding: 0.2rem 0.7rem; text-align: right; border-bottom: 1px solid var(--line); vertical-align: bottom; }
th:first-child, td:first-child { text-align: left; font-weight: 600; }
th { white-space: pre-line; }
figure { margin: 1rem 0; background: #fff; } img { max-width: 100%; }
figcaption { background: Canvas; font-size: 0.85rem; }
pre { overflow-x: auto; border: 1px solid var(--line); padding: 0.7rem; font-size: 0.8rem; }
.wide { overflow-x: auto; } .warning { color: var(--mark); font-weight: 600; }
"""


class ReportError(CapstanError, ValueError):
    """There is no such result, or it is none that a report can be made of; the text says why."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """A figure of the report: file stem, what it shows, and the picture as SVG."""

    name: str
    caption: str
    svg: bytes


def read_result(directory: Path) -> tuple[dict[str, Any], list[dict[str, str]]]:
    """Return the result document and the records of flows that count (none of a sweep) that `capstan run` wrote.

    Raises ReportError.
    """
    try:
        document = json.loads((directory / "result.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ReportError(f"{directory} holds no result.json: give the directory of one result") from None
    except ValueError as error:
        raise ReportError(f"{directory / 'result.json'} cannot be read: {error}") from None
    if not isinstance(document, dict) or not ({"schemes", "runs"} <= document.keys() or _is_sweep(document)):
        raise ReportError(f"{directory / 'result.json'} is not a result that `capstan run` has written")
    records = directory / "flows.csv"
    if not records.exists():
        return document, []
    with records.open(encoding="utf-8", newline="") as file:
        return document, [row for row in csv.DictReader(file) if row.get("counted") != "False"]


def drawings(document: Document, records: Sequence[Mapping[str, str]]) -> list[Drawing]:
    """Return all figures that the result has enough for."""
    if _is_sweep(document):
        with applied():
            return [
                Drawing(name, f"Each measure over the first axis: {title}.", picture(figure, "svg"))
                for name, title, figure in sweep_figures(document)
            ]
    with applied():
        figures = [
            ("comparison", "Every scheme over the baseline.", comparison_figure(document)),
            *((name, caption, figure_of(name, document, records)) for name, caption in FIGURES.items()),
        ]
        return [
            Drawing(name, caption, picture(figure, "svg"))
            for name, caption, figure in figures
            if figure is not None
        ]


def _warnings(document: Document) -> list[str]:
    warnings = {"cpu_limited": CPU_WARNING, "disturbed": DISTURBED_WARNING}
    simulated = [SIMULATED] if is_simulated(document) else []
    return simulated + [text for name, text in warnings.items() if document.get(name)]


def html_report(document: Document, records: Sequence[Mapping[str, str]]) -> str:
    """Return one self-contained page: no script, nothing from anywhere else."""
    parts = [
        f"<h1>{_e(document['title'])}</h1>",
        f"<p>{_e(_question(document))}</p>",
    ]
    parts += [f'<p class="warning">{_e(text)}</p>' for text in _warnings(document)]
    for drawing in drawings(document, records):
        source = f"data:image/svg+xml;base64,{base64.b64encode(drawing.svg).decode()}"
        parts.append(
            f'<figure><img src="{source}" alt="{_e(drawing.caption)}">'
            f"<figcaption>{_e(drawing.caption)}</figcaption></figure>"
        )
    for title, rows in _tables(document):
        head, *body = ["".join(f"<{tag}>{_e(cell)}</{tag}>" for cell in row) for tag, row in _tagged(rows)]
        lines = "\n".join(f"<tr>{row}</tr>" for row in body)
        parts.append(
            f'<h2>{_e(title)}</h2><div class="wide"><table><thead><tr>{head}</tr></thead>\n'
            f"<tbody>{lines}</tbody></table></div>"
        )
    parts += [f"<p>{_e(line)}</p>" for line in _notes(document) if line.strip()]
    for title, text in _circumstances(document):
        parts.append(f"<h2>{_e(title)}</h2><pre>{_e(text)}</pre>")
    content = "\n".join(parts)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{_e(document["title"])}</title>\n'
        f'<meta name="viewport" content="width=device-width">\n<style>{_STYLE}</style></head>\n'
        f"<body>\n{content}\n</body></html>\n"
    )


def markdown_report(document: Document, files: Mapping[str, str]) -> str:
    """Return the report for papers and wikis. *files*: of figures, by caption."""
    parts = [f"# {document['title']}", _question(document)]
    parts += [f"**{text}**" for text in _warnings(document)]
    parts += [f"![{caption}]({file})" for caption, file in files.items()]
    for title, rows in _tables(document):
        cells = [[cell.replace("\n", " ").replace("|", "\\|") for cell in row] for row in rows]
        lines = ["| " + " | ".join(row) + " |" for row in cells]
        rule = "|" + "|".join([" --- "] + [" ---: "] * (len(cells[0]) - 1)) + "|"
        parts.append(f"## {title}\n\n" + "\n".join([lines[0], rule, *lines[1:]]))
    parts += [line for line in _notes(document) if line.strip()]
    parts += [f"## {title}\n\n```\n{text}\n```" for title, text in _circumstances(document)]
    return "\n\n".join(parts) + "\n"


def write_report(directory: Path, out: Path) -> list[Path]:
    """Write the report of the result in *directory* to *out*: .html, or .md with its figures beside it.

    Returns the files. Raises ReportError, OSError.
    """
    document, records = read_result(directory)
    if out.suffix not in (".html", ".md"):
        raise ReportError(f"{out}: a report is a file that ends in .html or .md")
    try:
        return _written(document, records, out)
    except (LookupError, TypeError, AttributeError) as error:
        raise ReportError(
            f"{directory / 'result.json'} lacks what a report is made of ({error!r}): another version wrote it, or it "
            "was changed since; run its spec.yaml again"
        ) from error


def _written(document: Document, records: Sequence[Mapping[str, str]], out: Path) -> list[Path]:
    if out.suffix == ".html":
        out.write_text(html_report(document, records), encoding="utf-8")
        return [out]
    written, files = [out], {}
    for drawing in drawings(document, records):
        file = out.with_name(f"{out.stem}-{drawing.name}.svg")
        file.write_bytes(drawing.svg)
        files[drawing.caption] = file.name
        written.append(file)
    out.write_text(markdown_report(document, files), encoding="utf-8")
    return written


def _question(document: Document) -> str:
    spec = document["spec"]
    schemes = (document["points"][0] if _is_sweep(document) else document)["schemes"]
    return str(spec.get("description") or f"{document['name']}: {', '.join(schemes)} on the same flows.")


def _is_sweep(document: Document) -> bool:
    return document.get("kind") == "sweep"


def _notes(document: Document) -> list[str]:
    return sweep_notes(document) if _is_sweep(document) else notes(document)


def _tables(document: Document) -> Iterator[tuple[str, list[list[str]]]]:
    """Yield the title and rows (the first is the head) of each table."""
    for table in sweep_tables_of(document) if _is_sweep(document) else tables_of(document):
        columns = [[_plain(column.header), *map(_plain, column.cells)] for column in table.columns]
        yield _plain(table.title), [list(row) for row in zip(*columns, strict=True)]


def _plain(cell: Any) -> str:
    if isinstance(cell, Text):
        return cell.plain
    if isinstance(cell, Table):
        raise TypeError("a table within a table")
    return Text.from_markup(str(cell)).plain if "[/" in str(cell) else str(cell or "").replace("\\[", "[")


def _tagged(rows: Sequence[Sequence[str]]) -> Iterator[tuple[str, Sequence[str]]]:
    for index, row in enumerate(rows):
        yield ("td" if index else "th"), row


def _circumstances(document: Document) -> Iterator[tuple[str, str]]:
    versions = [f"{name} {value}" for name, value in document["versions"].items()]
    machine = [f"{name}: {value}" for name, value in document["machine"].items()]
    yield "Set-up", json.dumps(document["spec"], indent=1, ensure_ascii=False)
    yield "Versions and machine", "\n".join([*versions, *machine, f"started: {document['started']}"])
    command = "simulate" if is_simulated(document) else "run"
    yield (
        "Run it again",
        f"./capstan {command} spec.yaml --seed {document['seed']} --repeats {document['repeats']}",
    )


def _e(text: object) -> str:
    return html.escape(str(text))
