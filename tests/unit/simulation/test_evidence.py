"""Rows of evidence: what claims come to at all points, and the document that says it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cli.specs import load_spec
from experiments.results.statistics import FLOWS_FOR_P99
from experiments.spec.check import preset_names
from experiments.spec.spec import Axis, Claim, Comparison
from simulation.evidence import (
    MOST_REPEATS,
    PAPERS,
    At,
    EvidenceError,
    Notes,
    Reason,
    Row,
    kept_rows,
    markdown,
    newest_run,
    paper_of,
    read_notes,
    simulate_claims,
    summary,
    wanted,
    with_switches,
    write_rows,
)
from simulation.experiment import simulate_document

CLAIM = Claim(
    "Sooner than ECMP",
    "CAPS: Coding, 2019",
    "Fig. 1",
    "qualitative",
    Comparison("short-mean", "caps", "ecmp", at_most=1),
)

CLAIM_OF_RPS = replace(CLAIM, compare=Comparison("short-mean", "rps", "ecmp", at_most=1))


def at(verdict: str, ratio: float | None = 0.5) -> At:
    return At("", {"verdict": verdict, "ratio": ratio, "interval": None, "why": ""})


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        (["seen", "seen"], "holds"),
        (["seen", "open"], "in part"),
        (["seen", "not seen"], "in part"),
        (["not seen", "open"], "not"),
        (["open"], "open"),
        (["no figure"], "no figure"),
        ([], "not run"),
    ],
)
def test_points_come_to_one_word(verdicts: list[str], expected: str) -> None:
    assert summary([at(one) for one in verdicts]) == expected
    assert summary([at(one) for one in verdicts], "cannot be") == "not simulated"


def test_every_claim_of_every_preset_is_of_one_of_the_papers_and_can_be_asked() -> None:
    for name in preset_names():
        spec = load_spec(name).spec
        if any(claim.compare for claim in spec.claims):
            assert all(paper_of(claim) in PAPERS for claim in spec.claims), name
            smaller = wanted(spec, quick=True)
            assert smaller.repeats <= 2
            labels = {choice.label for choice in smaller.schemes}
            assert smaller.baseline in labels
            for claim in spec.claims:
                assert claim.compare is None or {claim.compare.scheme, claim.compare.against} <= labels, name


def test_a_preset_is_simulated_kept_and_written(tmp_path: Path) -> None:
    spec = replace(load_spec("small", ("ecmp", "rps", "caps")).spec, claims=(CLAIM,))
    rows = simulate_claims("small", wanted(spec, quick=True))
    (row,) = rows
    document, _ = simulate_document(wanted(spec, quick=True))
    assert [one.finding for one in row.simulated] == [document["claims"][0]["ours"]]
    write_rows(rows, "small", spec, tmp_path)
    assert _plain(kept_rows("small", spec, tmp_path)) == _plain(rows)
    assert kept_rows("small", replace(spec, seed=7), tmp_path) is None, "another spec"
    assert kept_rows("other", spec, tmp_path) is None
    text = markdown(rows, Notes(reasons=(Reason("small", "Fig. 1", "few flows"),)), quick=False)
    (line,) = [line for line in text.splitlines() if line.startswith("| Fig. 1")]
    assert f"{row.simulated[0].finding['ratio']:.2f}" in line
    expected = "" if "*holds*" in line else "few flows"
    assert line.endswith(f"| *not run* | {expected} |")


def _plain(rows: list[Row] | None) -> Any:
    return json.loads(json.dumps([[[one.point, one.finding] for one in row.simulated] for row in rows or []]))


@pytest.mark.parametrize("name", ["caps-fig11", "caps-fig20", "tpfs-fig1"])
def test_short_runs_are_repeated_until_there_are_flows_for_a_p99(name: str) -> None:
    spec = load_spec(name).spec
    repeats = wanted(spec, quick=False).repeats
    assert spec.repeats <= repeats <= max(spec.repeats, MOST_REPEATS)
    assert repeats in (spec.repeats, MOST_REPEATS) or repeats * spec.expected_flows() >= FLOWS_FOR_P99
    assert (repeats - 1) * spec.expected_flows() < FLOWS_FOR_P99 or repeats == spec.repeats


def test_a_claim_over_two_points_is_a_row_with_a_single_figure() -> None:
    compare = Comparison("short-mean", "ecmp", "ecmp", at_most=10, points=(1, 2))
    axis = Axis("long flows", ("workload.long_flows.number",), (1, 2))
    spec = load_spec("small", ("ecmp", "rps")).spec
    spec = replace(spec, repeats=2, sweep=(axis,), claims=(CLAIM_OF_RPS, replace(CLAIM, compare=compare)))
    each, across = simulate_claims("small", spec)
    assert [one.point for one in each.simulated] == ["long flows = 1", "long flows = 2"]
    (only,) = across.simulated
    assert only.point == ""
    assert only.finding["ratio"] > 0
    text = markdown([each, across], Notes(), quick=False)
    assert "ecmp at 1 / ecmp at 2, mean completion time of short flows, claimed at most 10" in text


def test_what_cannot_be_simulated_is_a_row_that_says_why() -> None:
    spec = replace(load_spec("small", ("ecmp", "tpfs")).spec, keep_learnt=True)
    compare = Comparison("short-mean", "tpfs", "ecmp", at_most=1)
    (row,) = simulate_claims("small", replace(spec, claims=(replace(CLAIM, compare=compare),)))
    assert "keep_learnt" in row.problem
    assert "*not simulated*" in markdown([row], Notes(), quick=False)


def test_runs_on_switches_stand_beside_simulated_ones_and_simulations_do_not(tmp_path: Path) -> None:
    compare = {"measure": "short-mean", "scheme": "caps", "against": "ecmp", "at_most": 1}
    entry = {"text": "Sooner than ECMP", "compare": compare, "ours": at("seen", 0.4).finding}
    for folder, extra in {
        "small-20260101-000000": {},
        "small-20260102-000000": {"kind": "simulation"},
    }.items():
        (tmp_path / folder).mkdir()
        text = json.dumps({"name": "small", "claims": [entry], **extra})
        (tmp_path / folder / "result.json").write_text(text, encoding="utf-8")
    (row,) = with_switches([Row("caps", "small", CLAIM, (at("open"),))], tmp_path)
    assert [one.finding["ratio"] for one in row.on_switches] == [0.4]
    assert newest_run(tmp_path, "demo") is None


def test_notes_are_read_strictly(tmp_path: Path) -> None:
    assert read_notes().elsewhere
    wrong = tmp_path / "notes.json"
    wrong.write_text('{"elsewhere": [{"paper": "tcp"}]}', encoding="utf-8")
    with pytest.raises(EvidenceError, match="figure"):
        read_notes(wrong)
