"""Ratios that reasons quote: whether they are still those of the rows that the reasons stand behind.

A number with two decimals and without a unit, or in %, is a ratio of ours. It is that of a row that the reason is
about, or of another row about the same two schemes, of its preset or of one that it names; in simulation or on
switches, or a bound of the interval. Ratios of other runs stand behind the command that makes them, or the link to
where they are: what follows either is not looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from experiments.spec.spec import Claim
from simulation.evidence import claims_of_papers
from simulation.evidence_document import key_of
from simulation.evidence_notes import Notes
from simulation.evidence_rows import EvidenceRow

_ELSEWHERE: Final = re.compile(r"`\./capstan |\]\(")
_NAMES: Final = re.compile(r"`([a-z0-9-]+)`")
_RATIO: Final = re.compile(r"(?<![\w.])\d+\.\d\d(?!\d|\.\d)(?! (?:ms|us|s|[kMG]?B|[kMG]bit/s|packets?)\b)")


@dataclass(frozen=True, slots=True)
class Stale:
    """A reason with ratios that no row has which it is about. rows: what those have, in words."""

    preset: str
    why: str
    ratios: tuple[str, ...]
    rows: tuple[str, ...]

    def __str__(self) -> str:
        """Return it as a line for people."""
        return f"{self.preset}: no row has {', '.join(self.ratios)}: {self.why} ({'; '.join(self.rows)})"


def quoted(why: str) -> list[str]:
    """Return the ratios that a reason quotes of its own rows, as it writes them."""
    return _RATIO.findall(_ELSEWHERE.split(why, maxsplit=1)[0])


def stale_quotes(
    notes: Notes, claims: Mapping[str, Sequence[Claim]], rows: Iterable[EvidenceRow]
) -> Iterator[Stale]:
    """Yield the reasons that quote ratios which are no longer ours. claims: of all presets, by their names."""
    by_key = {row.key: row for row in rows}
    known = {
        preset: [
            (claim, by_key[key_of(preset, claim)])
            for claim, _ in claims_of_papers(of_preset)
            if key_of(preset, claim) in by_key
        ]
        for preset, of_preset in claims.items()
    }
    for reason in notes.reasons:
        about = [
            pair for pair in known.get(reason.preset, ()) if notes.reason(reason.preset, pair[0]) is reason
        ]
        if not about:
            continue
        schemes = {_schemes(claim) for claim, _ in about}
        presets = {reason.preset, *_NAMES.findall(reason.why)} & known.keys()
        alike = [row for preset in presets for claim, row in known[preset] if _schemes(claim) in schemes]
        ours = _figures([row for _, row in about] + alike)
        missing = tuple(ratio for ratio in quoted(reason.why) if ratio not in ours)
        if missing:
            yield Stale(reason.preset, reason.why, missing, tuple(_words(row) for _, row in about))


def _schemes(claim: Claim) -> frozenset[str | None]:
    compare = claim.compare
    return frozenset() if compare is None else frozenset((compare.scheme, compare.against))


def _figures(rows: Iterable[EvidenceRow]) -> set[str]:
    """Return ratios and bounds of rows as reasons write them."""
    figures = (
        figure for row in rows for outcome in (row.simulated, row.on_switches) for figure in outcome.figures
    )
    values = (value for figure in figures for value in (figure.ratio, figure.low, figure.high))
    return {f"{value:.2f}" for value in values if value is not None}


def _words(row: EvidenceRow) -> str:
    ratios = ", ".join(f"{figure.ratio:.2f}" for figure in row.simulated.figures)
    return f"{row.compared.partition(', claimed')[0]}: {ratios}"
