"""The rows of docs/evidence.md as data: nothing in them differs from the document."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from experiments.spec.spec import Claim, Comparison
from simulation.evidence import At, Row
from simulation.evidence_document import Entry, cells_of, markdown, read_document
from simulation.evidence_notes import Notes, Reason
from simulation.evidence_rows import (
    EvidenceRowsError,
    Figure,
    Outcome,
    read_cell,
    read_rows,
    row_of,
    rows_text,
)

DOCUMENT = Path("docs/evidence.md").read_text(encoding="utf-8")
CLAIM = Claim(
    "Sooner | than ECMP",
    "CAPS: Coding, 2019",
    "Fig. 1",
    "qualitative",
    Comparison("short-mean", "caps", "ecmp", at_most=1),
)


def digits(figure: float | None) -> str:
    """Return a figure with two digits, with more where it was stored with more: beside a limit."""
    assert figure is not None
    return max(f"{figure:.2f}", f"{figure:g}", key=len)


def cell(outcome: Outcome) -> str:
    """Return what a cell of the document says of this, put together anew."""
    figures = [
        f"{one.point}: " * bool(one.point)
        + digits(one.ratio)
        + ("" if one.low is None else f" [{digits(one.low)}, {digits(one.high)}]")
        for one in outcome.figures
    ]
    text = f"*{outcome.verdict}*" + (f": {'; '.join(figures)}" if figures else "")
    if not outcome.note:
        return text
    return f"{text}: {outcome.note}" if outcome.verdict == "simulated only" else f"{text} ({outcome.note})"


def test_the_file_of_rows_says_what_the_document_does() -> None:
    rows = read_rows()
    lines = [
        tuple(part.strip() for part in line.strip("|").split(" | "))
        for line in DOCUMENT.splitlines()
        if re.match(r"\| .* \| \*[a-z ]+\*", line)
    ]
    written = [
        (one.figure, one.text, one.compared, cell(one.simulated), cell(one.on_switches), one.why.strip())
        for one in rows
    ]
    again = "`./capstan evidence --merge` writes the file anew"
    assert sorted(written) == sorted((*line, "")[:6] for line in lines), again
    number = re.search(r"\| of (\d+) claims \|", DOCUMENT)
    assert number is not None
    assert len({row.key for row in rows}) == len(rows) == int(number[1])
    assert {row.key for row in rows} == set(read_document(DOCUMENT).rows)


def test_a_row_that_is_simulated_now_is_written_and_read_back() -> None:
    points = tuple(
        At(f"load = {load}", {"verdict": "seen", "ratio": load, "interval": [load / 2, load * 2], "why": ""})
        for load in (0.25, 0.5)
    )
    missing = At("load = 0.75", {"verdict": "no figure", "ratio": None, "interval": None, "why": "few"})
    entry = Entry(
        Row("caps", "small", CLAIM, (*points, missing), (missing,), lab="links at 0.5 of their rates")
    )
    notes = Notes(reasons=(Reason("small", "few flows"),))
    row = row_of(cells_of(entry, notes))
    figures = (Figure("load = 0.25", 0.25, 0.12, 0.5), Figure("load = 0.5", 0.5, 0.25, 1.0))
    assert row.simulated == Outcome("in part", figures)
    assert row.on_switches == Outcome("no figure", (), "links at 0.5 of their rates")
    assert (row.text, row.why) == ("Sooner / than ECMP", "few flows")
    assert row.key in read_document(markdown([entry], notes, quick=False)).rows


def test_what_is_written_is_what_is_read(tmp_path: Path) -> None:
    file = tmp_path / "rows.json"
    file.write_text(rows_text(read_rows()), encoding="utf-8")
    assert read_rows(file) == read_rows()
    file.write_text(rows_text([]), encoding="utf-8")
    assert read_rows(file) == ()
    file.write_text('[{"figure": "Fig. 1"}]', encoding="utf-8")
    with pytest.raises(EvidenceRowsError, match="row 1"):
        read_rows(file)


@pytest.mark.parametrize("text", ["", "holds: 1.00", "*maybe*: 1.00", "*holds*: soon", "*not*: 1.00 [0.90]"])
def test_a_cell_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(EvidenceRowsError):
        read_cell(text)
