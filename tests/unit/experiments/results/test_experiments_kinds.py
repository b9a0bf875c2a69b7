from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from experiments.results.claims import find
from experiments.results.document import text_of
from experiments.results.flow_kinds import add_kinds
from experiments.results.outcome import FlowOutcome
from experiments.results.statistics import summarize
from experiments.results.tables import applications_table, completion_table
from experiments.spec.check import check
from experiments.spec.spec import Comparison
from tests.unit.experiments.results.test_experiments_statistics import flow
from tests.unit.experiments.spec.test_experiments_check import GOOD, SCHEMES

LIMIT = 1_000_000


def runs(factor: float) -> list[list[FlowOutcome]]:
    """Return a run of three sizes of each of two applications; large flows, and all of "b", are slower by *factor*."""
    rng = np.random.default_rng(1)
    found = []
    for index in range(120):
        size = (20_000, 200_000, 2_000_000)[index % 3]
        application = "ab"[index % 2]
        slower = factor if size == 2_000_000 or application == "b" else 1.0
        one = flow(index, float(rng.uniform(0.1, 0.2)) * slower)
        kind = "short" if size < 100_000 else "long"
        found.append(replace(one, size_bytes=size, traffic_class=kind, application=application))
    return [found]


def summary(factor: float, limit: int | None = LIMIT) -> dict[str, dict[str, Any]]:
    outcomes = {"one": runs(1.0), "other": runs(factor)}
    schemes = summarize(outcomes, "one", 1, 200)
    add_kinds(schemes, outcomes, 1, large_limit_bytes=limit, resamples=200)
    return schemes


def test_flows_are_distinguished_by_size_and_by_application() -> None:
    schemes = summary(2.0)
    other = schemes["other"]
    assert [other[kind]["n"] for kind in ("short", "medium", "large", "long")] == [40, 40, 40, 80]
    assert other["against"]["one"]["large_afct_ratio"] == pytest.approx(2.0)
    assert other["against"]["one"]["medium_afct_ratio"] == pytest.approx(1.5, abs=0.1)
    assert {name: one["n"] for name, one in other["applications"].items()} == {"a": 20, "b": 20}
    assert other["applications"]["a"]["ratios"]["one"]["afct_ratio"] == pytest.approx(1.0)
    assert other["applications"]["b"]["ratios"]["one"]["afct_ratio"] == pytest.approx(2.0)
    own = [one.fct_s * 1e3 for one in runs(2.0)[0] if one.fct_s and (one.size_bytes or 0) >= LIMIT]
    assert other["large"]["afct_ms"] == pytest.approx(np.mean(own))


def test_without_a_limit_or_names_there_are_all_flows_at_most() -> None:
    plain = [[replace(one, application="") for one in runs(2.0)[0]]]
    schemes = summarize({"one": plain}, "one", 1, 50)
    before = set(schemes["one"])
    add_kinds(schemes, {"one": plain}, 1, large_limit_bytes=None, resamples=50)
    assert set(schemes["one"]) == before | {"all"}
    assert schemes["one"]["all"]["n"] == 120
    short = [[one for one in plain[0] if one.traffic_class == "short"]]
    schemes = summarize({"one": short}, "one", 1, 50)
    add_kinds(schemes, {"one": short}, 1, large_limit_bytes=None, resamples=50)
    assert "all" not in schemes["one"]


def test_tables_and_claims_have_them() -> None:
    schemes = {label: one | {"cpu_limited": False} for label, one in summary(2.0).items()}
    document = {"baseline": "one", "schemes": schemes}
    assert "2.00 [2.00, 2.00]" in text_of(completion_table(document, "large"))
    text = text_of(applications_table(document))
    assert "1.00 [1.00, 1.00]" in text
    assert "2.00 [2.00, 2.00]" in text
    finding = find(Comparison("large-mean", "one", "other"), schemes)
    assert finding.verdict == "seen"
    assert finding.ratio == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("flows", "path", "words"),
    [
        (
            "applications: [{name: a, sizes: {kind: fixed}}]",
            "workload.flows.applications[0].sizes",
            "need bytes",
        ),
        (
            "applications: [{name: a, sizes: {kind: fixed, bytes: 9}, port: 12000}]",
            "workload.flows.applications[0].port",
            "9899",
        ),
        (
            "applications: [{name: a, sizes: {kind: fixed, bytes: 9}, hosts: [h1, h99]}]",
            "workload.flows.applications[0].hosts",
            "no h99",
        ),
        (
            "applications: [{name: a, sizes: {kind: fixed, bytes: 9}, hosts: [h1, h2]}]",
            "workload.flows.applications[0].hosts",
            "two leaves",
        ),
        (
            "sizes: {kind: fixed, bytes: 20000}\n    lead_in_s: 100",
            "workload.flows.lead_in_s",
            "none of 10 flows",
        ),
    ],
)
def test_mistakes_are_said_where_they_stand(flows: str, path: str, words: str) -> None:
    text = GOOD.replace("sizes: {kind: fixed, bytes: 20000}", flows)
    found = check(text, "mine.yaml", SCHEMES)
    assert [one.path for one in found] == [path], found
    assert words in found[0].message
