"""The rows of docs/evidence.md as data: what the page shows under each claim. A cell of the document is the source."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, get_args

from capstan_client.errors import CapstanError
from plain.reading import PlainError, build
from simulation.evidence import Word
from simulation.evidence_document import NOT_RUN, SIMULATED_ONLY, Cells

ROWS: Final = Path(__file__).parent / "evidence_rows.json"
"""Of docs/evidence.md, in the room that the simulator's wheel and the images have."""
WORDS: Final[tuple[Word, ...]] = get_args(Word)
_FIGURE: Final = re.compile(
    r"(?:(?P<point>[^;]+): )?(?P<ratio>-?[\d.]+)(?: \[(?P<low>-?[\d.]+), (?P<high>-?[\d.]+)\])?"
)
_NOTE: Final = re.compile(r"(?P<figures>.*?) ?\((?P<note>[^()]*)\)")


class EvidenceRowsError(CapstanError, ValueError):
    """The file of rows, or a cell of the document, is not of the known form; the text says where."""


@dataclass(frozen=True, slots=True)
class Figure:
    """The ratio of two schemes at one point of a sweep, with its 95 % interval; point: empty without a sweep."""

    point: str
    ratio: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a claim, in simulation or on switches. note: how a lab differed, or why there can be none."""

    verdict: Word
    figures: tuple[Figure, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class EvidenceRow:
    """A claim as the document has it: its first three cells, and what it came to."""

    figure: str
    text: str
    compared: str
    simulated: Outcome
    on_switches: Outcome
    why: str

    @property
    def key(self) -> tuple[str, str, str]:
        """Return what `simulation.evidence_document.key_of` returns of its claim."""
        return self.figure, self.text, self.compared


def row_of(cells: Cells) -> EvidenceRow:
    """Return a row of the document as data. Raises EvidenceRowsError: a cell is not of the known form."""
    return EvidenceRow(
        cells.figure,
        cells.text,
        cells.compared,
        read_cell(cells.simulated),
        read_cell(cells.on_switches),
        cells.why,
    )


def read_cell(cell: str) -> Outcome:
    """Return what a cell of the document says. Raises EvidenceRowsError: it is not of the known form."""
    word, _, rest = cell.removeprefix("*").partition("*")
    verdict = next((known for known in WORDS if cell.startswith(f"*{known}*")), None)
    if verdict is None:
        raise EvidenceRowsError(f"{cell!r} begins with {word!r}, no verdict: simulate its preset again")
    if verdict in (SIMULATED_ONLY, NOT_RUN):
        return Outcome(verdict, note=rest.removeprefix(": "))
    note = ""
    if match := _NOTE.fullmatch(rest):
        rest, note = match["figures"], match["note"]
    texts = rest.removeprefix(": ").split("; ") if rest else []
    return Outcome(verdict, tuple(_figure(text, cell) for text in texts), note)


def _figure(text: str, cell: str) -> Figure:
    match = _FIGURE.fullmatch(text)
    if match is None:
        raise EvidenceRowsError(f"{text!r} in {cell!r} is no ratio: simulate its preset again")
    low, high = (None if match[bound] is None else float(match[bound]) for bound in ("low", "high"))
    return Figure(match["point"] or "", float(match["ratio"]), low, high)


def rows_text(rows: Iterable[EvidenceRow]) -> str:
    """Return the file of rows: JSON, a row a line, so that a change of one is a change of a line."""
    lines = ",\n".join(" " + json.dumps(asdict(row), ensure_ascii=False) for row in rows)
    return f"[\n{lines}\n]\n"


def read_rows(path: Path = ROWS) -> tuple[EvidenceRow, ...]:
    """Return what `rows_text` has written.

    Raises:
        EvidenceRowsError: it is not JSON, or of another form.
    """
    try:
        return tuple(
            build(EvidenceRow, row, f"row {number}")
            for number, row in enumerate(json.loads(path.read_text(encoding="utf-8")), 1)
        )
    except (PlainError, ValueError) as error:
        raise EvidenceRowsError(f"{path}: {error}; ./capstan evidence --merge writes it anew") from None
