"""Ratios that reasons quote are those of the rows: of the file, and what the rule lets pass and what not."""

from __future__ import annotations

import functools
import re
from dataclasses import replace

import pytest

from cli.specs import load_spec
from experiments.spec.check import preset_names
from experiments.spec.spec import Claim
from simulation.evidence_document import key_of
from simulation.evidence_notes import Notes, Reason, read_notes
from simulation.evidence_quotes import quoted, stale_quotes
from simulation.evidence_rows import EvidenceRow, Figure, Outcome, read_rows

PRESET = "caps-fig12"


@functools.cache
def claims() -> dict[str, tuple[Claim, ...]]:
    return {name: load_spec(name).spec.claims for name in preset_names()}


@pytest.mark.slow
def test_reasons_quote_the_rows_as_they_are() -> None:
    stale = [str(entry) for entry in stale_quotes(read_notes(), claims(), read_rows())]
    assert not stale, (
        "mend these in simulation/evidence.json, then ./capstan evidence --merge:\n" + "\n".join(stale)
    )


def test_ratios_of_figures_that_no_claim_compares_are_those_of_the_presets_that_are_named() -> None:
    of_all = read_rows()
    for elsewhere in read_notes().elsewhere:
        named = re.findall(r"`([a-z0-9-]+)`", elsewhere.where)
        about = [row for row in of_all if any(f"`{preset}`" in row.figure for preset in named)]
        figures = [figure for row in about for figure in (*row.simulated.figures, *row.on_switches.figures)]
        assert set(quoted(elsewhere.where)) <= {f"{figure.ratio:.2f}" for figure in figures}, elsewhere.where


def test_most_ratios_of_the_file_are_looked_at() -> None:
    """Else the rule would pass by looking away."""
    assert sum(len(quoted(reason.why)) for reason in read_notes().reasons) > 250


@pytest.mark.parametrize(
    ("why", "ratios"),
    [
        ("Alike (0.99 [0.97, 1.01]): a burst is over", ["0.99", "0.97", "1.01"]),
        ("0.25 to 0.44, in three runs of 1.09 MB and 12.34 ms, 3.98 Mbit/s", ["0.25", "0.44"]),
        ("0.83 % [0.10, 1.69], the paper 0.004 %, 1.5 times", ["0.83", "0.10", "1.69"]),
        ("0.62; with Linux's TCP (`./capstan simulate caps-fig11`) 0.71", ["0.62"]),
        ("0.62 ([coding](coding.md#cost)); 0.71", ["0.62"]),
        ("Ends at 1.04: single flows decide it", ["1.04"]),
        ("version 1.2.34 and 10.128.1.1", []),
    ],
)
def test_what_counts_as_a_ratio_of_ours(why: str, ratios: list[str]) -> None:
    assert quoted(why) == ratios


def rows(ratio: float) -> tuple[EvidenceRow, ...]:
    found = Outcome("holds", (Figure("", ratio, ratio - 0.1, ratio + 0.1),))
    return tuple(
        EvidenceRow(*key_of(PRESET, claim), simulated=found, on_switches=Outcome("not run"), why="")
        for claim in load_spec(PRESET).spec.claims
    )


@pytest.mark.parametrize(("ratio", "stale"), [(0.62, 0), (0.61, 1), (0.52, 0), (0.72, 0)])
def test_a_ratio_that_no_row_has_is_found(ratio: float, stale: int) -> None:
    notes = Notes(reasons=(Reason(PRESET, "Less than the paper says (0.62)"),))
    found = list(stale_quotes(notes, claims(), rows(ratio)))
    assert len(found) == stale
    assert all(entry.ratios == ("0.62",) and PRESET in str(entry) for entry in found)


def test_rows_of_a_preset_that_is_named_count_too() -> None:
    notes = Notes(reasons=(Reason("caps-default", f"as `{PRESET}` has it (0.62)"),))
    other = tuple(row for row in read_rows() if "`caps-default`" in row.figure)
    assert not list(stale_quotes(notes, claims(), (*rows(0.62), *other)))
    unnamed = replace(notes, reasons=(Reason("caps-default", "elsewhere it is 0.62"),))
    assert not any(f"{figure.ratio:.2f}" == "0.62" for row in other for figure in row.simulated.figures)
    assert list(stale_quotes(unnamed, claims(), (*rows(0.62), *other)))
