"""What the papers claim, beside what came of it here: a row a claim, in simulation and on switches."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

from capstan_client.errors import CapstanError
from experiments.results.claims import compared, find, find_across, labels, rejudged
from experiments.results.document import json_text
from experiments.results.statistics import FLOWS_FOR_P99
from experiments.results.sweep_results import sweep_notices
from experiments.spec.fitting import SIZED_FOR, FitError, fit, without_sizes
from experiments.spec.load import REFERENCE
from experiments.spec.serialized import spec_to_dict
from experiments.spec.spec import Claim, Spec
from experiments.spec.sweep import for_schemes, is_across, points, show, with_own_claims, words
from simulation.experiment import simulate_document
from simulation.fabrics import SettingsError
from simulation.no_lab import no_lab

Paper = Literal["caps", "htpc", "tpfs", "tr", "capton"]
PAPERS: Final[Mapping[Paper, str]] = {
    "caps": "CAPS",
    "htpc": "HTPC",
    "tpfs": "TPFS",
    "tr": "TR",
    "capton": "CAPTON",
}
"""By the word that a claim's source begins with."""
LAB_CORES: Final = 2.0
"""Of the machine that all presets for switches have to fit."""
QUICK_REPEATS: Final = 2
MOST_REPEATS: Final = 20
"""More than a spec asks for are simulated until a scheme has flows enough for a p99, but never more than these."""

_OF_A_RUN: Final = frozenset({"title", "description", "schemes", "baseline", "repeats", "claims"})
"""Fields of a spec that a run of it on switches may have otherwise: `--scheme` and `--repeats` change them."""

Summary = Literal["holds", "more", "in part", "not", "open", "not simulated", "not run", "no figure"]
Word = Literal[Summary, "simulated only"]
"""What a claim comes to: on switches there are claims that no lab can judge, too."""


class KeptResultError(CapstanError, ValueError):
    """A file that a run is to have kept its result in holds none; the text names it."""


@dataclass(frozen=True, slots=True)
class At:
    """Our figure at one point of a sweep; point: its words, empty where there is no sweep."""

    point: str
    finding: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Row:
    """A claim: ours in simulation, point by point (empty: `problem` says why not), and on switches.

    lab: how the run on switches differs from the preset; where there was none, why there cannot be any (empty: there
    can).
    """

    paper: Paper
    preset: str
    claim: Claim
    simulated: tuple[At, ...]
    on_switches: tuple[At, ...] = ()
    problem: str = ""
    lab: str = ""


def paper_of(claim: Claim) -> Paper | None:
    """Return the paper that a claim is from; None: none of ours."""
    return next((paper for paper, word in PAPERS.items() if claim.source.startswith(f"{word}:")), None)


def claims_of_papers(claims: Iterable[Claim]) -> list[tuple[Claim, Paper]]:
    """Return the claims that are compared, each with its paper."""
    return [(claim, paper) for claim in claims if claim.compare and (paper := paper_of(claim))]


def wanted(spec: Spec, *, quick: bool) -> Spec:
    """Return a spec with those of its schemes alone that its claims compare, and repeats enough to judge them by.

    A spec's own repeats are what a lab has time for. quick: with fewer.
    """
    repeats = min(spec.repeats, QUICK_REPEATS) if quick else max(spec.repeats, _enough(spec))
    return _compared_alone(spec, spec.claims, repeats)


def _enough(spec: Spec) -> int:
    """Return the repeats that give a p99 at every point, where claims have it: of short flows; else of all."""
    if not any(claim.compare and claim.compare.measure == "short-p99" for claim in spec.claims):
        return min(MOST_REPEATS, math.ceil(FLOWS_FOR_P99 / max(1.0, spec.expected_flows())))
    return max(_enough_short(point.spec) for point in points(spec))


def _enough_short(spec: Spec) -> int:
    """Return the repeats after which enough short flows for a p99 have been planned; `MOST_REPEATS` at most."""
    short = 0
    for repeat in range(MOST_REPEATS):
        short += sum(flow.traffic_class == "short" and flow.counted for flow in spec.plan(repeat).sized)
        if short >= FLOWS_FOR_P99:
            return repeat + 1
    return MOST_REPEATS


def wanted_on_switches(spec: Spec, *, quick: bool) -> Spec | None:
    """Return the same for a lab, of the claims that it can judge, with the spec's own repeats; None: of none."""
    claims = [claim for claim, _ in claims_of_papers(spec.claims) if not no_lab_for(spec, claim)]
    if not claims:
        return None
    return _compared_alone(spec, claims, min(spec.repeats, QUICK_REPEATS) if quick else spec.repeats)


def no_lab_for(spec: Spec, claim: Claim) -> str:
    """Return why no lab on two cores can judge a claim of this spec; empty: one can."""
    pair = _compared_alone(spec, [claim], spec.repeats)
    try:
        problem = no_lab(pair)
        if problem is None:
            fit(pair, LAB_CORES, REFERENCE)
    except FitError as error:
        problem = f"{error}"
    return (problem or "").partition(": use ")[0]


def _compared_alone(spec: Spec, claims: Iterable[Claim], repeats: int) -> Spec:
    """Return a spec with those of its schemes alone that these claims compare."""
    named = {label for claim in claims if claim.compare for label in labels(claim.compare)}
    compared = tuple(choice for choice in spec.schemes if choice.label in named)
    baseline = spec.baseline if spec.baseline in named else compared[0].label
    own, chosen = ([choice.label for choice in schemes] for schemes in (spec.schemes, compared))
    sweep = for_schemes(spec.sweep, own, chosen)
    return with_own_claims(replace(spec, schemes=compared, baseline=baseline, repeats=repeats, sweep=sweep))


def simulate_claims(
    name: str,
    spec: Spec,
    on_point: Callable[[str], None] = lambda point: None,
    on_document: Callable[[str, dict[str, Any]], None] = lambda point, document: None,
) -> list[Row]:
    """Return a row for each claim of a spec that has a comparison, simulated at every point.

    on_point is called with a point's words before it is simulated, on_document with them and the result after it.
    """
    claims = claims_of_papers(spec.claims)
    findings: list[list[At]] = [[] for _ in claims]
    by_tick: dict[str, Mapping[str, Any]] = {}
    try:
        for point in points(spec):
            text = words(spec.sweep, point.at)
            on_point(text)
            document, _ = simulate_document(point.spec)
            on_document(text, document)
            if point.at:
                by_tick[show(point.at[0])] = document["schemes"]
            for place, (claim, _) in zip(findings, claims, strict=True):
                assert claim.compare is not None
                if not is_across(claim):
                    place.append(At(text, find(claim.compare, document["schemes"]).to_dict()))
    except SettingsError as error:
        return [Row(paper, name, claim, (), problem=str(error)) for claim, paper in claims]
    for place, (claim, _) in zip(findings, claims, strict=True):
        if claim.compare is not None and is_across(claim):
            place.append(At("", find_across(claim.compare, by_tick, spec.seed).to_dict()))
    return [
        Row(paper, name, claim, tuple(outcomes))
        for (claim, paper), outcomes in zip(claims, findings, strict=True)
    ]


def write_rows(rows: Sequence[Row], name: str, spec: Spec, directory: Path) -> None:
    """Keep what a preset's claims came to, for `kept_rows`."""
    directory.mkdir(parents=True, exist_ok=True)
    documents = [
        {"problem": row.problem, "at": [[point.point, point.finding] for point in row.simulated]}
        for row in rows
    ]
    text = json.dumps({"spec": spec_to_dict(spec), "rows": documents})
    draft = directory / f"{name}.new"
    draft.write_text(text, encoding="utf-8")
    draft.replace(directory / f"{name}.json")


def kept_rows(name: str, spec: Spec, directory: Path) -> list[Row] | None:
    """Return what `write_rows` has kept of the very same spec; None: nothing."""
    try:
        document = json.loads((directory / f"{name}.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    if document["spec"] != json.loads(json.dumps(spec_to_dict(spec))):
        return None
    claims = claims_of_papers(spec.claims)
    return [
        Row(
            paper,
            name,
            claim,
            tuple(At(point, _judged(claim, ours)) for point, ours in row["at"]),
            problem=row["problem"],
        )
        for (claim, paper), row in zip(claims, document["rows"], strict=True)
    ]


def _judged(claim: Claim, finding: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a kept finding with the verdict that it has by now."""
    assert claim.compare is not None
    return rejudged(claim.compare, finding)


def with_switches(rows: Sequence[Row], spec: Spec, results: Path) -> list[Row]:
    """Return a preset's rows with what its newest result of a lab below *results* found of the same claims."""
    document = newest_run(results, spec)
    return [_on_switches(row, spec, document) for row in rows]


def _on_switches(row: Row, spec: Spec, document: Mapping[str, Any] | None) -> Row:
    if outcomes := tuple(_lab(document, row.claim)):
        return replace(row, on_switches=outcomes, lab=_sizing(document))
    return replace(row, lab=no_lab_for(spec, row.claim))


def _sizing(document: Mapping[str, Any] | None) -> str:
    """Return `links at 0.27 of their rates`, of a run or sweep that was made to fit its machine; else nothing."""
    if document is None:
        return ""
    for notice in sweep_notices(document) if "points" in document else document["notices"]:
        if notice.startswith(SIZED_FOR):
            return str(notice.partition(": ")[2].partition(", times")[0])
    return ""


def newest_run(results: Path, spec: Spec) -> Mapping[str, Any] | None:
    """Return the newest document of runs on switches of a preset as it is, of all its points; None: there is none.

    Raises:
        KeptResultError: the file of a newer result is none.
    """
    every = [words(spec.sweep, point.at) for point in points(spec)] if spec.sweep else []
    own = json.loads(json_text(spec_to_dict(spec)))
    for path in sorted(results.glob(f"{spec.name}-[0-9]*/result.json"), reverse=True):
        document = _document_in(path)
        if (
            document.get("name") == spec.name
            and [point["words"] for point in document.get("points", ())] == every
            and not document.get("simulated")
            and document.get("kind") != "simulation"
            and _is_of(document, own)
        ):
            return document
    return None


def _document_in(path: Path) -> Mapping[str, Any]:
    """Return the result that a file holds. Raises KeptResultError where it holds none."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        problem = f"cannot be read as a result: {error}"
    else:
        if isinstance(document, dict):
            return document
        problem = "is not a result"
    raise KeptResultError(problem, where=str(path), remedy="mend the file, or remove its directory")


def _is_of(document: Mapping[str, Any], own: Mapping[str, Any]) -> bool:
    """Return whether a document's spec is *own*, but for how often which of its schemes ran, and how it was sized."""
    ran = document.get("spec", own)
    specs = [{name: data[name] for name in data.keys() - _OF_A_RUN} for data in (ran, own)]
    if _sizing(document):
        specs = [without_sizes(data) for data in specs]
    return all(choice in own["schemes"] for choice in ran["schemes"]) and specs[0] == specs[1]


def _lab(document: Mapping[str, Any] | None, claim: Claim) -> Iterator[At]:
    """Yield what a document says of a claim that has not been changed since, if it has the schemes of it."""
    if document is None or claim.compare is None:
        return
    ran = (document["points"][0] if "points" in document else document)["schemes"]
    if not all(label in ran for label in labels(claim.compare)):
        return
    for entry in document["claims"]:
        compare = entry.get("compare")
        same = compare is not None and compared(compare) == claimed(claim)
        if not same or entry["text"].strip() != claim.text.strip() or not entry["ours"]:
            continue
        if isinstance(entry["ours"], Mapping):
            yield At("", _judged(claim, entry["ours"]))
        else:
            yield from (
                At(point["words"], _judged(claim, ours))
                for point, ours in zip(document["points"], entry["ours"], strict=True)
            )


def claimed(claim: Claim) -> str:
    """Return `caps / rps, mean completion time of short flows, claimed at most 1`, of a claim that is compared."""
    terms = claim.compare
    assert terms is not None
    bounds = {
        "at_most": terms.at_most,
        "at_least": terms.at_least,
        "between": terms.between,
        "points": terms.points,
    }
    return compared({"scheme": terms.scheme, "against": terms.against, "measure": terms.measure} | bounds)


def summary(findings: Sequence[At], problem: str = "") -> Summary:
    """Return what findings come to together.

    `holds` if all points show it, `more` if all do or are beyond it on the better side, `in part` if some are one of
    both; else `not` if some show the opposite, or `open`.
    """
    if problem:
        return "not simulated"
    verdicts = [point.finding["verdict"] for point in findings]
    if not verdicts:
        return "not run"
    if all(verdict == "no figure" for verdict in verdicts):
        return "no figure"
    if all(verdict == "seen" for verdict in verdicts):
        return "holds"
    if set(verdicts) <= {"seen", "more"}:
        return "more"
    if "seen" in verdicts or "more" in verdicts:
        return "in part"
    return "not" if "not seen" in verdicts else "open"
