"""docs/evidence.md: written from rows, and read back so that a part of them can be simulated anew."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Final

from experiments.results.claims import estimate_text
from experiments.results.statistics import FLOWS_FOR_P99
from experiments.spec.spec import Claim
from simulation.evidence import (
    MOST_REPEATS,
    PAPERS,
    At,
    Row,
    Summary,
    claimed,
    claims_of_papers,
    summary,
)
from simulation.evidence_notes import Notes

_EARLIER: Final = " are of an earlier run, with the presets' own repeats."
NOT_RUN: Final = "not run"
SIMULATED_ONLY: Final = "simulated only"
_MEANINGS: Final[Mapping[str, str]] = {
    "holds": "the whole interval is within what the paper says, at all points",
    "more": "it is, or beyond the paper's range on the better side, at all points",
    "in part": "it is, or beyond it on the better side, at some points",
    "not": "it is at none, and outside on the worse side at some (outside on either, where the paper says alike)",
    "open": "the intervals decide nothing",
    "no figure": "too few flows for it, or the processors limited a run",
    "not simulated": "the simulator cannot do it",
    SIMULATED_ONLY: "no lab on two cores can run it",
    NOT_RUN: "no run of it yet",
}
_NAMES: Final = re.compile(r"`([^`]+)`")


@dataclass(frozen=True, slots=True)
class Written:
    """A row as a document has it: its cells for simulation and for switches."""

    simulated: str
    on_switches: str

    @property
    def word(self) -> str:
        """Return what the simulation came to."""
        return _word(self.simulated)


@dataclass(frozen=True, slots=True)
class Cells:
    """A row as it is written, a text for each column; nothing in them separates columns or lines."""

    figure: str
    text: str
    compared: str
    simulated: str
    on_switches: str
    why: str


@dataclass(frozen=True, slots=True)
class Document:
    """What a document says. earlier: presets whose rows it marks as those of an earlier run."""

    rows: Mapping[tuple[str, str, str], Written]
    earlier: frozenset[str] = frozenset()

    def row_of(self, preset: str, claim: Claim) -> Written | None:
        """Return the row of a claim that has not been changed since; None: there is none."""
        return self.rows.get(key_of(preset, claim))


@dataclass(frozen=True, slots=True)
class Entry:
    """A row to write: simulated now, or as a document had it but for what was found on switches since.

    earlier: of one that is simulated now, what the document had, which still holds for switches.
    """

    row: Row
    written: Written | None = None
    earlier: Written | None = None

    @property
    def word(self) -> Summary | str:
        """Return what the simulation came to."""
        if self.written is not None:
            return self.written.word
        return summary(self.row.simulated, self.row.problem)


def read_document(text: str) -> Document:
    """Return what `markdown` has written."""
    rows: dict[tuple[str, str, str], Written] = {}
    earlier: set[str] = set()
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
        if len(cells) >= 5 and line.startswith("| ") and cells[3].startswith("*"):
            rows[cells[0], cells[1], cells[2]] = Written(cells[3], cells[4])
        elif line.endswith(_EARLIER):
            earlier |= set(_NAMES.findall(line))
    return Document(rows, frozenset(earlier))


def entries_of(
    name: str, claims: Iterable[Claim], fresh: Sequence[Row] | None, document: Document
) -> list[Entry]:
    """Return what to write of a preset: its *fresh* rows, or (None) those of its claims that the document has."""
    if fresh is not None:
        return [Entry(row, earlier=document.row_of(name, row.claim)) for row in fresh]
    return [
        Entry(Row(paper, name, claim, ()), written)
        for claim, paper in claims_of_papers(claims)
        if (written := document.row_of(name, claim)) is not None
    ]


def markdown(
    entries: Iterable[Entry],
    notes: Notes,
    *,
    quick: bool,
    earlier: Iterable[str] = (),
    missing: Iterable[str] = (),
) -> str:
    """Return docs/evidence.md. earlier: presets whose rows are of an earlier run; missing: those without rows."""
    entries = list(entries)
    lines = [
        "# Evidence: the papers' figures and ours",
        "",
        f"Written by `./capstan evidence{' --quick' if quick else ''}`. A row is a claim of a paper: *in simulation* "
        "with the preset's own settings and seed (its description says what was scaled), with more repeats where a "
        f"scheme has fewer than {FLOWS_FOR_P99} flows, up to {MOST_REPEATS}; *on switches* what "
        "`./capstan evidence --on-switches` (or `run`) found in a lab, at lower rates where two cores need that. "
        "Each figure is the ratio of the two schemes (of one alone: its share) with its 95 % interval, at every point "
        "of a sweep; a tie is neither sooner nor later. Profile `ns2` "
        "is ns-2's NewReno in simulation, on switches Linux's Reno without RACK ([TCP](simulator.md#tcp)).",
        *(["", notes.on_switches] if notes.on_switches else []),
        "",
        *(f"- *{word}*: {meaning}" for word, meaning in _MEANINGS.items()),
        "",
        *_counts(entries),
    ]
    if earlier := sorted(earlier):
        lines += ["", f"Rows of {_listed(earlier)}{_EARLIER}"]
    if missing := sorted(missing):
        lines += ["", f"Not simulated yet, or not all of its claims: {_listed(missing)}."]
    for paper, title in PAPERS.items():
        mine = [entry for entry in entries if entry.row.paper == paper]
        others = [figure for figure in notes.elsewhere if figure.paper == paper]
        if mine or others:
            lines += ["", f"## {title}"]
        if mine:
            lines += [
                "",
                "| figure, preset | the paper says | compared | in simulation | on switches | why |",
                "|---|---|---|---|---|---|",
                *(_line(entry, notes) for entry in mine),
            ]
        if others:
            lines += [
                "",
                "Not compared by a preset:",
                "",
                "| figure | the paper says | where it is, or why it is not |",
                "|---|---|---|",
                *(f"| {figure.figure} | {figure.says} | {figure.where} |" for figure in others),
            ]
    return "\n".join(lines) + "\n"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _counts(entries: Sequence[Entry]) -> list[str]:
    """Return a table of how many claims came to what."""
    counted = {
        "in simulation": Counter(entry.word for entry in entries),
        "on switches": Counter(_word(_lab_cell(entry)) for entry in entries),
    }
    words = [word for word in _MEANINGS if any(of_words[word] for of_words in counted.values())]
    return [
        f"| of {len(entries)} claims | {' | '.join(words)} |",
        f"|---|{'---|' * len(words)}",
        *(
            f"| {where} | {' | '.join(str(of_words[word]) for word in words)} |"
            for where, of_words in counted.items()
        ),
    ]


def cells_of(entry: Entry, notes: Notes) -> Cells:
    """Return a row as the document has it."""
    row = entry.row
    simulated = entry.written.simulated if entry.written else _cell(row.simulated, row.problem)
    why = row.problem or (notes.why(row.preset, row.claim) if needs_reason(entry) else "")
    return Cells(*key_of(row.preset, row.claim), simulated, _lab_cell(entry), _plain(why))


def needs_reason(entry: Entry) -> bool:
    """Return whether something came out otherwise than the paper says: in simulation, or where it ran on switches."""
    on_switches = _word(_lab_cell(entry))
    return entry.word != "holds" or on_switches not in ("holds", NOT_RUN, SIMULATED_ONLY, "no figure")


def _line(entry: Entry, notes: Notes) -> str:
    return "| " + " | ".join(astuple(cells_of(entry, notes))) + " |"


def _lab_cell(entry: Entry) -> str:
    """Return what the newest run on switches came to, or the one that the document had, or why there is none."""
    row, written = entry.row, entry.written or entry.earlier
    if row.on_switches:
        return _cell(row.on_switches, "") + (_plain(f" ({row.lab})") if row.lab else "")
    if written is not None and _word(written.on_switches) not in (NOT_RUN, SIMULATED_ONLY):
        return written.on_switches
    return _plain(f"*{SIMULATED_ONLY}*: {row.lab}") if row.lab else f"*{NOT_RUN}*"


def _word(cell: str) -> str:
    return cell.removeprefix("*").partition("*")[0]


def key_of(preset: str, claim: Claim) -> tuple[str, str, str]:
    """Return the first cells of a claim's row: figure and preset, what the paper says, what is compared."""
    text = _plain(claim.text.strip())
    return _plain(f"{claim.figure}, `{preset}`"), text, _plain(claimed(claim))


def _plain(text: str) -> str:
    return text.replace("|", "/").replace("\n", " ")


def _cell(findings: Sequence[At], problem: str) -> str:
    word = summary(findings, problem)
    figures = "; ".join(_figure(point) for point in findings if point.finding["ratio"] is not None)
    return _plain(f"*{word}*" + (f": {figures}" if figures else ""))


def _figure(point: At) -> str:
    return (f"{point.point}: " if point.point else "") + estimate_text(point.finding)
