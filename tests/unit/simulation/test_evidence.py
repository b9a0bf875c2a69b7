"""Rows of evidence: what claims come to at all points, and the document that says it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cli.specs import load_spec
from experiments.results.document import json_text
from experiments.results.statistics import FLOWS_FOR_P99
from experiments.spec.check import preset_names
from experiments.spec.fitting import slower
from experiments.spec.serialized import spec_to_dict
from experiments.spec.spec import Axis, Claim, Comparison, SchemeChoice, Spec
from experiments.spec.sweep import points
from simulation.batch import prepare
from simulation.evidence import (
    MOST_REPEATS,
    PAPERS,
    At,
    KeptResultError,
    Row,
    claims_of_papers,
    kept_rows,
    newest_run,
    paper_of,
    simulate_claims,
    summary,
    wanted,
    wanted_on_switches,
    with_switches,
    write_rows,
)
from simulation.evidence_document import Entry, entries_of, markdown, needs_reason, read_document
from simulation.evidence_notes import Elsewhere, EvidenceError, Notes, Reason, read_notes
from simulation.experiment import simulate_document
from simulation.no_lab import no_lab

CLAIM = Claim(
    "Sooner than ECMP",
    "CAPS: Coding, 2019",
    "Fig. 1",
    "qualitative",
    Comparison("short-mean", "caps", "ecmp", at_most=1),
)

CLAIM_OF_RPS = replace(CLAIM, compare=Comparison("short-mean", "rps", "ecmp", at_most=1))


def labels_of(comparison: Comparison) -> set[str]:
    return {label for label in (comparison.scheme, comparison.against) if label}


def at(verdict: str, ratio: float | None = 0.5) -> At:
    return At("", {"verdict": verdict, "ratio": ratio, "interval": None, "why": ""})


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        (["seen", "seen"], "holds"),
        (["seen", "open"], "in part"),
        (["seen", "not seen"], "in part"),
        (["seen", "more"], "more"),
        (["more", "more"], "more"),
        (["more", "not seen"], "in part"),
        (["more", "no figure"], "in part"),
        (["not seen", "open"], "not"),
        (["open"], "open"),
        (["no figure"], "no figure"),
        ([], "not run"),
    ],
)
def test_points_come_to_one_word(verdicts: list[str], expected: str) -> None:
    assert summary([at(one) for one in verdicts]) == expected
    assert summary([at(one) for one in verdicts], "cannot be") == "not simulated"


@pytest.mark.slow
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
                assert claim.compare is None or labels_of(claim.compare) <= labels, name


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
    reasons = (Reason("small", "few flows", figure="Fig. 1"),)
    text = markdown(map(Entry, rows), Notes(reasons=reasons), quick=False)
    (line,) = [line for line in text.splitlines() if line.startswith("| Fig. 1")]
    assert f"{row.simulated[0].finding['ratio']:.2f}" in line
    expected = "" if "*holds*" in line else "few flows"
    assert line.endswith(f"| *not run* | {expected} |")


def _plain(rows: list[Row] | None) -> Any:
    return json.loads(json.dumps([[[one.point, one.finding] for one in row.simulated] for row in rows or []]))


@pytest.mark.parametrize("name", ["caps-fig11", "caps-fig20", "tpfs-fig1"])
def test_short_runs_are_repeated_until_there_are_flows_for_a_p99(name: str) -> None:
    spec = load_spec(name).spec
    spec = replace(spec, claims=tuple(claim for claim in spec.claims if not _of_p99(claim)))
    repeats = wanted(spec, quick=False).repeats
    assert spec.repeats <= repeats <= max(spec.repeats, MOST_REPEATS)
    assert repeats in (spec.repeats, MOST_REPEATS) or repeats * spec.expected_flows() >= FLOWS_FOR_P99
    assert (repeats - 1) * spec.expected_flows() < FLOWS_FOR_P99 or repeats == spec.repeats


def _of_p99(claim: Claim) -> bool:
    return claim.compare is not None and claim.compare.measure == "short-p99"


def test_a_p99_of_short_flows_needs_repeats_by_short_flows() -> None:
    spec = load_spec("tr-fig11-14").spec
    repeats = wanted(spec, quick=False).repeats
    assert spec.repeats * spec.expected_flows() >= FLOWS_FOR_P99, "by all flows its own would do"
    short = [
        sum(flow.traffic_class == "short" for flow in point.spec.plan(repeat).sized)
        for point in points(spec)
        for repeat in range(repeats)
    ]
    fewest = min(sum(short[at : at + repeats]) for at in range(0, len(short), repeats))
    assert fewest >= FLOWS_FOR_P99
    assert spec.repeats < repeats < MOST_REPEATS


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
    text = markdown([Entry(each), Entry(across)], Notes(), quick=False)
    assert "ecmp at 1 / ecmp at 2, mean completion time of short flows, claimed at most 10" in text


def test_kept_findings_have_the_verdict_of_their_interval_by_now(tmp_path: Path) -> None:
    claim = replace(CLAIM, compare=Comparison("short-mean", "caps", "ecmp", between=(0.3, 0.5)))
    spec = replace(load_spec("small", ("ecmp", "caps")).spec, claims=(claim,))
    old = {"verdict": "not seen", "ratio": 0.2, "interval": [0.1, 0.25], "why": ""}
    limited = {"verdict": "no figure", "ratio": 0.2, "interval": [0.1, 0.25], "why": "caps limited"}
    write_rows([Row("caps", "small", claim, (At("", old), At("", limited)))], "small", spec, tmp_path)
    (row,) = kept_rows("small", spec, tmp_path) or ()
    assert [one.finding["verdict"] for one in row.simulated] == ["more", "no figure"]
    entry = {"text": claim.text, "compare": spec_to_dict(spec)["claims"][0]["compare"], "ours": old}
    (tmp_path / "small-20260101-000000").mkdir()
    ran: dict[str, object] = {"ecmp": {}, "caps": {}}
    text = json.dumps({"name": "small", "schemes": ran, "claims": [entry], "notices": []})
    (tmp_path / "small-20260101-000000" / "result.json").write_text(text, encoding="utf-8")
    (row,) = with_switches([row], spec, tmp_path)
    assert [one.finding["verdict"] for one in row.on_switches] == ["more"]


def test_what_cannot_be_simulated_is_a_row_that_says_why() -> None:
    spec = replace(load_spec("small", ("ecmp", "tpfs")).spec, keep_learnt=True)
    compare = Comparison("short-mean", "tpfs", "ecmp", at_most=1)
    (row,) = simulate_claims("small", replace(spec, claims=(replace(CLAIM, compare=compare),)))
    assert "keep_learnt" in row.problem
    assert "*not simulated*" in markdown([Entry(row)], Notes(), quick=False)


def test_runs_on_switches_stand_beside_simulated_ones_and_simulations_do_not(tmp_path: Path) -> None:
    compare = {"measure": "short-mean", "scheme": "caps", "against": "ecmp", "at_most": 1}
    entry = {"text": "Sooner than ECMP", "compare": compare, "ours": at("seen", 0.4).finding}
    for folder, extra in {
        "small-20260101-000000": {},
        "small-20260102-000000": {"kind": "simulation"},
    }.items():
        (tmp_path / folder).mkdir()
        sized = ["sized for 2 cores: links at 0.5 of their rates, times 2 times as long"]
        ran: dict[str, object] = {"ecmp": {}, "caps": {}}
        text = json.dumps({"name": "small", "schemes": ran, "claims": [entry], "notices": sized, **extra})
        (tmp_path / folder / "result.json").write_text(text, encoding="utf-8")
    spec = load_spec("small", ("ecmp", "caps")).spec
    (row,) = with_switches([Row("caps", "small", CLAIM, (at("open"),))], spec, tmp_path)
    assert [one.finding["ratio"] for one in row.on_switches] == [0.4]
    text = markdown([Entry(row)], Notes(), quick=False)
    assert "| *holds*: 0.40 (links at 0.5 of their rates) |" in text
    assert "| of 1 claims | holds | open |" in text
    assert "| in simulation | 0 | 1 |" in text
    assert "| on switches | 1 | 0 |" in text
    document = read_document(text)
    (kept,) = entries_of("small", (CLAIM,), None, document)
    assert markdown([kept], Notes(), quick=False) == text, "a document keeps what was found"
    (newer,) = with_switches([kept.row], spec, tmp_path)
    assert newer.on_switches == row.on_switches
    assert newest_run(tmp_path, replace(spec, name="demo")) is None


def test_a_run_without_the_scheme_that_no_lab_runs_leaves_its_claim_simulated_only(tmp_path: Path) -> None:
    spec = load_spec("small", ("ecmp", "pfabric")).spec
    claim = replace(CLAIM, compare=Comparison("short-mean", "pfabric", "ecmp", at_most=1))
    ours = {"verdict": "no figure", "ratio": None, "interval": None, "why": "pfabric is not in this result"}
    compare = {"measure": "short-mean", "scheme": "pfabric", "against": "ecmp", "at_most": 1}
    entry = {"text": claim.text, "compare": compare, "ours": ours}
    ran: dict[str, object] = {"ecmp": {}}
    text = json.dumps({"name": "small", "schemes": ran, "claims": [entry], "notices": []})
    (tmp_path / "small-20260101-000000").mkdir()
    (tmp_path / "small-20260101-000000" / "result.json").write_text(text, encoding="utf-8")
    (row,) = with_switches([Row("capton", "small", claim, (at("open"),))], spec, tmp_path)
    assert row.on_switches == ()
    assert "for simulations only" in row.lab
    assert f"| *simulated only*: {row.lab} |" in markdown([Entry(row)], Notes(), quick=False)


def test_a_sweep_on_switches_stands_beside_the_simulated_one(tmp_path: Path) -> None:
    compare = {"measure": "short-mean", "scheme": "caps", "against": "ecmp", "at_most": 1}
    ours = [at("seen", 0.4).finding, at("seen", 0.5).finding]
    sized = ["sized for 2 cores: links at 0.5 of their rates, times 2 times as long"]
    document: dict[str, Any] = {
        "name": "small",
        "points": [
            {"words": words, "notices": sized, "schemes": {"ecmp": {}, "caps": {}}}
            for words in ("load = 0.3", "load = 0.6")
        ],
        "claims": [{"text": "Sooner than ECMP", "compare": compare, "ours": ours}],
    }
    of_a_point = {
        **document,
        "points": document["points"][:1],
        "claims": [{**document["claims"][0], "ours": ours[:1]}],
    }
    for name, kept in (("small-20260101-000000", document), ("small-20260102-000000", of_a_point)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "result.json").write_text(json.dumps(kept), encoding="utf-8")
    spec = load_spec("small", ("ecmp", "caps")).spec
    spec = replace(spec, sweep=(Axis("load", ("warm_up_s",), (0.3, 0.6)),))
    (row,) = with_switches([Row("caps", "small", CLAIM, (at("open"),))], spec, tmp_path)
    assert [(one.point, one.finding["ratio"]) for one in row.on_switches] == [
        ("load = 0.3", 0.4),
        ("load = 0.6", 0.5),
    ]
    assert row.lab == "links at 0.5 of their rates"


def test_runs_of_another_spec_of_that_name_are_none_of_the_preset(tmp_path: Path) -> None:
    spec = load_spec("small", ("ecmp", "caps")).spec
    sized = ["sized for 2 cores: links at 0.5 of their rates, times 2 times as long"]

    def newest(day: int, ran: Spec, notices: list[str]) -> int:
        """Keep a run of that day, and return the day of the one that is taken."""
        labels: dict[str, Any] = {choice.label: {} for choice in ran.schemes}
        document = {"name": "small", "day": day, "schemes": labels, "claims": [], "notices": notices}
        (tmp_path / f"small-2026010{day}-000000").mkdir()
        text = json_text(document | {"spec": spec_to_dict(ran)})
        (tmp_path / f"small-2026010{day}-000000" / "result.json").write_text(text, encoding="utf-8")
        taken = newest_run(tmp_path, spec)
        assert taken is not None
        return int(taken["day"])

    assert newest(1, replace(spec, repeats=5, schemes=spec.schemes[:1]), []) == 1
    assert newest(2, slower(spec, 0.5), sized) == 2
    assert newest(3, slower(spec, 0.5), []) == 2, "another spec that has slower links of its own"
    assert newest(4, replace(spec, seed=7), sized) == 2
    overridden = SchemeChoice("caps", "caps", {"mode.hold_s": 1.0})
    assert newest(5, replace(spec, schemes=(spec.schemes[0], overridden)), []) == 2
    assert newest(6, replace(spec, policy={"mode.hold_s": 1.0}), []) == 2


@pytest.mark.parametrize("text", ['{"name": "sm', "[]"])
def test_a_kept_result_that_is_none_is_named(text: str, tmp_path: Path) -> None:
    file = tmp_path / "small-20260101-000000" / "result.json"
    file.parent.mkdir()
    file.write_text(text, encoding="utf-8")
    with pytest.raises(KeptResultError, match=r"small-20260101-000000/result\.json: .*; mend the file"):
        newest_run(tmp_path, load_spec("small").spec)


def test_notes_are_read_strictly(tmp_path: Path) -> None:
    assert read_notes().elsewhere
    wrong = tmp_path / "notes.json"
    wrong.write_text('{"elsewhere": [{"paper": "tcp"}]}', encoding="utf-8")
    with pytest.raises(EvidenceError, match="figure"):
        read_notes(wrong)


def test_the_reason_that_names_a_claim_most_narrowly_is_its_reason() -> None:
    notes = Notes(
        reasons=(
            Reason("small", "any"),
            Reason("small", "of the figure", figure="Fig. 1"),
            Reason("small", "of the pair", figure="Fig. 1", scheme="caps", against="rps"),
            Reason("small", "of the measure", measure="long-mean"),
            Reason("other", "of another preset", figure="Fig. 1", scheme="caps", against="ecmp"),
        )
    )
    assert notes.why("small", CLAIM) == "of the figure"
    assert (
        notes.why("small", replace(CLAIM, compare=Comparison("short-mean", "caps", "rps"))) == "of the pair"
    )
    assert notes.why("small", replace(CLAIM, figure="Fig. 2")) == "any"
    assert notes.why("demo", CLAIM) == ""


def test_rows_of_a_document_stay_as_they_are_where_nothing_is_simulated() -> None:
    claims = (CLAIM, CLAIM_OF_RPS, replace(CLAIM, text="Another | claim", figure="Fig. 2"))
    first = [
        Row("caps", "small", claims[0], (at("seen", 0.25),), (at("open", 0.75),)),
        Row("caps", "small", claims[1], (at("not seen", 1.5),)),
    ]
    notes = Notes((Elsewhere("tr", "Fig. 6", "A model", "`capstan model`"),), (Reason("small", "before"),))
    text = markdown(map(Entry, first), notes, quick=False, earlier=("small", "demo"), missing=("small",))
    document = read_document(text)
    assert document.earlier == {"small", "demo"}
    entries = entries_of("small", claims, None, document)
    assert [entry.row.claim for entry in entries] == list(claims[:2])
    again = markdown(entries, notes, quick=False, earlier=document.earlier, missing=("small",))
    assert again == text
    renewed = markdown(entries, Notes(notes.elsewhere, (Reason("small", "after"),)), quick=False)
    assert "| *holds*: 0.25 | *open*: 0.75 | after |" in renewed, (
        "what does not hold on switches needs a reason"
    )
    holds = Row("caps", "small", claims[0], (at("seen", 0.25),), (at("seen", 0.75),))
    reasons = Notes(reasons=(Reason("small", "after"),))
    assert "| *holds*: 0.75 |  |" in markdown([Entry(holds)], reasons, quick=False), "what holds needs none"
    assert "| *not*: 1.50 | *not run* | after |" in renewed
    assert "| of 2 claims | holds | not | open | not run |" in renewed
    assert "| in simulation | 1 | 1 | 0 | 0 |\n| on switches | 0 | 0 | 1 | 1 |" in renewed
    fresh = entries_of("small", claims, [Row("caps", "small", claims[2], (at("seen"),))], document)
    (row,) = read_document(markdown(fresh, notes, quick=False)).rows.values()
    assert row.word == "holds"
    on_switches = read_document(
        text.replace("*open*: 0.75 |", "*holds*: 0.75 |").replace("*not run*", "*holds*: 0.5")
    )
    anew = entries_of("small", claims, [Row("caps", "small", claims[1], (at("open", 1.0),))], on_switches)
    assert "| *open*: 1.00 | *holds*: 0.5 |" in markdown(anew, notes, quick=False), (
        "switches were not run anew"
    )


def test_a_claim_that_has_been_changed_has_no_row_in_a_document() -> None:
    document = read_document(
        markdown([Entry(Row("caps", "small", CLAIM, (at("seen"),)))], Notes(), quick=False)
    )
    stricter = replace(CLAIM, compare=Comparison("short-mean", "caps", "ecmp", at_most=0.5))
    assert document.row_of("small", CLAIM) is not None
    assert document.row_of("small", stricter) is None
    assert entries_of("small", (stricter,), None, document) == []


@pytest.mark.slow
def test_every_reason_is_about_a_claim_and_every_claim_of_the_document_that_does_not_hold_has_one() -> None:
    notes, document = read_notes(), read_document(Path("docs/evidence.md").read_text(encoding="utf-8"))
    claims = {name: claims_of_papers(load_spec(name).spec.claims) for name in preset_names()}
    for reason in notes.reasons:
        about = [
            claim for claim, _ in claims[reason.preset] if reason.narrowness(reason.preset, claim) is not None
        ]
        assert about, reason
    entries = [
        entry
        for name, of_preset in claims.items()
        for entry in entries_of(name, [claim for claim, _ in of_preset], None, document)
    ]
    assert len(entries) == len(document.rows), "rows of claims that no preset has"
    without = [
        f"{entry.row.preset}: {entry.row.claim.text}"
        for entry in entries
        if needs_reason(entry) and not notes.why(entry.row.preset, entry.row.claim)
    ]
    assert without == []


@pytest.mark.slow
def test_every_spec_of_a_reason_is_named_there_or_in_the_document_on_coding_and_can_be_simulated() -> None:
    texts = [*(reason.why for reason in read_notes().reasons), Path("docs/coding.md").read_text("utf-8")]
    named = {name for text in texts for name in re.findall(r"simulation/reasons/[^`\s]+", text)}
    kept = {path.as_posix() for path in Path("simulation/reasons").iterdir()}
    assert named == kept
    for path in sorted(kept):
        spec = load_spec(path).spec
        assert spec.name == Path(path).stem
        for point in points(spec):
            prepare(point.spec)


@pytest.mark.slow
def test_a_claim_that_no_lab_can_judge_says_why_and_is_not_run() -> None:
    for name, why in {
        "caps-fig17": "links would need",
        "caps-fig20": "the fabric at rest takes",
        "tr-fig9": "for simulations only",
    }.items():
        spec = load_spec(name).spec
        claims = claims_of_papers(spec.claims)
        assert wanted_on_switches(spec, quick=True) is None
        rows = with_switches([Row(paper, name, claim, ()) for claim, paper in claims], spec, Path("nowhere"))
        assert all(why in row.lab and "use " not in row.lab for row in rows)
        assert f"| *simulated only*: {rows[0].lab} |" in markdown(map(Entry, rows), Notes(), quick=False)


def test_a_lab_gets_the_schemes_whose_claims_it_can_judge() -> None:
    spec = load_spec("capton-fig9").spec
    fit_for_labs = wanted_on_switches(spec, quick=True)
    assert fit_for_labs is not None
    left_out = {choice.label for choice in spec.schemes} - {choice.label for choice in fit_for_labs.schemes}
    assert "pfabric" in left_out
    assert no_lab(fit_for_labs) is None
