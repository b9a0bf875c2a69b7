"""What people have written about the papers' figures: where those are that no preset compares, and why ours differ."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from capstan_client.errors import CapstanError
from experiments.spec.spec import Claim
from plain.reading import PlainError, build
from simulation.evidence import Paper

NOTES: Final = Path(__file__).parent / "evidence.json"


class EvidenceError(CapstanError, ValueError):
    """The notes on the papers' figures cannot be used; the text says what is wrong."""


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """A figure that no preset's claims speak of."""

    paper: Paper
    figure: str
    says: str
    where: str


@dataclass(frozen=True, slots=True)
class Reason:
    """Why our figures for claims of a preset are what they are. Fields left out hold for all of its claims."""

    preset: str
    why: str
    figure: str = ""
    scheme: str = ""
    against: str = ""
    measure: str = ""

    def narrowness(self, preset: str, claim: Claim) -> int | None:
        """Return how many of its fields name the claim; None: it is about others."""
        compare = claim.compare
        pattern = (self.figure, self.scheme, self.against, self.measure)
        compared = ("", "", "") if compare is None else (compare.scheme, compare.against, compare.measure)
        given = [
            (mine, theirs) for mine, theirs in zip(pattern, (claim.figure, *compared), strict=True) if mine
        ]
        if preset != self.preset or any(mine != theirs for mine, theirs in given):
            return None
        return len(given)


@dataclass(frozen=True, slots=True)
class Notes:
    """All notes; a claim without a reason leaves the column empty. on_switches: of what was measured there."""

    elsewhere: tuple[Elsewhere, ...] = ()
    reasons: tuple[Reason, ...] = ()
    on_switches: str = ""

    def reason(self, preset: str, claim: Claim) -> Reason | None:
        """Return the reason that names a claim most narrowly (of equals the first); None: none does."""
        best, chosen = -1, None
        for reason in self.reasons:
            narrowness = reason.narrowness(preset, claim)
            if narrowness is not None and narrowness > best:
                best, chosen = narrowness, reason
        return chosen

    def why(self, preset: str, claim: Claim) -> str:
        """Return why ours are what they are, or nothing."""
        reason = self.reason(preset, claim)
        return "" if reason is None else reason.why


def read_notes(path: Path = NOTES) -> Notes:
    """Return what a file of notes says.

    Raises:
        EvidenceError: it is not JSON, or says what it may not.
    """
    try:
        return build(Notes, json.loads(path.read_text(encoding="utf-8")), "notes")
    except (PlainError, ValueError) as error:
        raise EvidenceError(f"{path}: {error}") from None
