import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from controller.schemes.loader import scheme_names
from engine.estimate import simulated_s
from experiments.spec.check import SpecError, SpecMissingError, check, find_spec, load, preset_names
from experiments.spec.schema import PUBLISHED, published_text, schema
from experiments.spec.serialized import spec_text, spec_to_dict
from experiments.spec.spec import Comparison, label_of, spec_from_dict
from experiments.spec.sweep import points
from plain.overrides import merge
from plain.reading import build

SCHEMES = ["ecmp", "rps", "caps", "caps-spray", "rps-inorder"]
HUGE = "9" * 400
"""A whole number that no float holds."""
GOOD = """\
name: mine
title: A test
fabric:
  leaves: 2
  spines: 4
  link: {rate_mbps: 10}
schemes: [ecmp, {name: caps, label: caps-1, overrides: {short.coding.max_k: 8}}]
workload:
  flows:
    count: 10
    sizes: {kind: fixed, bytes: 20000}
    arrivals: {rate_per_s: 5}
"""


def problems(text: str) -> list[tuple[int, str, str]]:
    return [(item.line, item.path, item.message) for item in check(text, "mine.yaml", SCHEMES)]


def test_a_good_spec_has_no_problem_and_can_be_read() -> None:
    assert problems(GOOD) == []
    spec = load(GOOD, "mine.yaml", SCHEMES)
    assert spec.baseline == "ecmp"
    assert spec.packet_time_s == pytest.approx(1.2e-3)
    assert spec.capacity_bps() == 40e6
    assert [choice.label for choice in spec.schemes] == ["ecmp", "caps-1"]
    assert spec_from_dict(spec_to_dict(spec)) == spec
    assert load(yaml.safe_dump(json.loads(json.dumps(spec_to_dict(spec)))), "x", SCHEMES) == spec


def bursts(flows: str, arrivals: str, lead_in_s: float = 0.0) -> str:
    """Return a spec with bursts of a tenth of the time. flows: how many there are, or for how long."""
    text = GOOD.replace("count: 10", f"{flows}\n    lead_in_s: {lead_in_s}").replace("20000", "200")
    return text.replace("{rate_per_s: 5}", f"{{kind: burst, on_s: 0.1, off_s: 0.9, {arrivals}}}")


def test_flows_of_bursts_are_counted_in_on_periods_alone() -> None:
    many = bursts("duration_s: 1000", "rate_per_s: 5000").replace(
        "spines: 4", "spines: 4\n  hosts_per_leaf: 50"
    )
    assert problems(many) == [], "500 000, not 5 000 000"
    [few] = problems(bursts("duration_s: 1", "rate_per_s: 5"))
    assert few[1:] == ("workload.flows.duration_s", "1.0 s at 5 flows/s is less than one flow; lengthen it")
    assert problems(bursts("duration_s: 3", "rate_per_s: 50", lead_in_s=2.0)) == []
    spec = load(bursts("duration_s: 100", "rate_per_s: 50"), "x", SCHEMES)
    counted = load(bursts("count: 500", "rate_per_s: 50"), "x", SCHEMES)
    assert simulated_s(spec) == pytest.approx(simulated_s(counted))


def test_a_load_of_1_is_carried_whatever_is_lost_in_rounding() -> None:
    full = GOOD.replace("spines: 4", "spines: 2").replace("rate_mbps: 10", "rate_mbps: 4")
    full = full.replace("bytes: 20000", "bytes: 967").replace("rate_per_s: 5", "load: 1")
    capacity, rate = 8e6, 8e6 / (8 * 967.0)
    assert rate * 967.0 * 8 > capacity, "in floating point"
    assert problems(full) == []
    [more] = problems(full.replace("load: 1", "load: 1.001"))
    assert more[1] == "workload.flows.arrivals"


def test_the_published_schema_is_the_one_in_use() -> None:
    assert PUBLISHED.read_text() == published_text(), "run: python -m experiments.spec.schema > " + str(
        PUBLISHED
    )
    jsonschema.Draft202012Validator.check_schema(schema())


@pytest.mark.slow
@pytest.mark.parametrize("name", preset_names())
def test_presets_are_right_and_their_plans_can_be_made(name: str) -> None:
    path = find_spec(name)
    spec = load(path.read_text(), str(path), scheme_names())
    assert spec.name == name
    for point in points(spec):
        plans = [point.spec.plan(repeat) for repeat in range(spec.repeats)]
        assert len({plan.digest() for plan in plans}) == spec.repeats
        assert all(plan.sized for plan in plans)


@pytest.mark.parametrize(
    ("old", "new", "line", "path", "message"),
    [
        ("spines: 4", "spins: 4", 5, "fabric.spins", "did you mean 'spines'"),
        ("spines: 4", "spines: 0", 5, "fabric.spines", "at least 1"),
        ("rate_mbps: 10", "rate_mbps: 1e1", 6, "fabric.link.rate_mbps", "write 10"),
        ("rate_mbps: 10", "rate_mbps: -1", 6, "fabric.link.rate_mbps", "must be above 0"),
        ("rate_mbps: 10", "rate_mbps: null", 6, "fabric.link", "needs a rate_mbps"),
        (
            "{rate_mbps: 10}",
            "{buffer_packets: 64}\n  overrides: {l2-s1: {rate_mbps: 4}}",
            6,
            "fabric.link",
            "l1-s1 has none",
        ),
        (
            "{rate_mbps: 10}",
            "{rate_mbps: 10}\n  overrides: {s1-l2: {rate_mbps: null}}",
            7,
            "fabric.overrides",
            "l2-s1 has none",
        ),
        ("rate_mbps: 10", "rate_mbps: .nan", 6, "fabric.link.rate_mbps", "not a finite number"),
        ("  leaves: 2", "  down: [l1-s9]", 4, "fabric.down", "did you mean"),
        ("[ecmp,", "[ecpm,", 7, "schemes[0]", "did you mean 'ecmp'"),
        ("[ecmp,", "[ecmp, ecmp,", 7, "schemes[1]", "give a label"),
        ("overrides:", "override:", 7, "schemes[1].override", "did you mean 'overrides'"),
        ("[ecmp,", "[own/ecmp.yaml,", 7, "schemes[0]", "no file 'own/ecmp.yaml'"),
        ("[ecmp,", "[7,", 7, "schemes[0]", "a scheme's name"),
        ("label: caps-1", "label: Caps 1", 7, "schemes[1].label", "small letters"),
        ("title: A test", "title: A test\nbaseline: caps", 3, "baseline", "did you mean 'caps-1'"),
        ("title: A test", "title: A test\nrepeats: 2.5", 3, "repeats", "a whole number"),
        ("title: A test", "title: A test\ntitle: B", 3, "title", "given twice"),
        ("title: A test\n", "", 1, "", "'title' is missing"),
        ("    count: 10\n", "", 10, "workload.flows", "exactly one of count and duration_s"),
        ("count: 10", "count: 1e2", 10, "workload.flows.count", "write 100"),
        ("count: 10", "duration_s: 10000000", 10, "workload.flows", "more repeats"),
        ("count: 10", "duration_s: 0.01", 10, "workload.flows.duration_s", "less than one flow"),
        ("kind: fixed", "kind: fix", 11, "workload.flows.sizes.kind", "did you mean 'fixed'"),
        ("bytes: 20000", "low_bytes: 2", 11, "workload.flows.sizes", "low_bytes does not belong"),
        ("bytes: 20000", f"bytes: {HUGE}", 11, "workload.flows.sizes", "beyond what a float holds"),
        ("rate_per_s: 5", f"rate_per_s: {HUGE}", 12, "workload.flows.arrivals.rate_per_s", "beyond what a"),
        (
            "rate_per_s: 5",
            "rate_per_s: 1000",
            12,
            "workload.flows.arrivals",
            "Mbit/s that the fabric carries",
        ),
        ("rate_per_s: 5", "load: 1.5", 12, "workload.flows.arrivals", "Mbit/s that the fabric carries"),
        ("rate_per_s: 5", "kind: burst, load: 0.1", 12, "workload.flows.arrivals", "need on_s and off_s"),
        ("leaves: 2", "leaves: 1", 10, "workload.flows", "at least two leaves"),
    ],
)
def test_every_mistake_is_said_where_it_stands(
    old: str, new: str, line: int, path: str, message: str
) -> None:
    assert old in GOOD
    found = problems(GOOD.replace(old, new, 1))
    assert any(at[0] == line and at[1].startswith(path) and message in at[2] for at in found), found
    assert len(found) == 1, found


@pytest.mark.parametrize(
    ("compare", "path", "message"),
    [
        ("", "claims[0]", "has no compare"),
        ("compare: {measure: short-mean, scheme: ecmp, against: caps-1}", "claims[0].compare", "has none"),
        (
            "compare: {measure: short-mean, scheme: ecmp, against: caps-1, at_most: 1, between: [0.3, 0.5]}",
            "claims[0].compare",
            "has at_most and between",
        ),
        (
            "compare: {measure: short-mean, scheme: ecmp, against: caps-1, between: [0.5, 0.3]}",
            "claims[0].compare.between",
            "the lesser first",
        ),
        (
            "compare: {measure: short-mean, scheme: ecmp, against: caps-1, between: [0.5]}",
            "claims[0].compare.between",
            "2 items, not 1",
        ),
        (
            "compare: {measure: short-mean, scheme: ecmp, against: caps-1, between: [0.3, 0.5, 0.7]}",
            "claims[0].compare.between",
            "2 items, not 3",
        ),
        (
            "compare: {measure: long-goodput, scheme: ecmp, against: caps-1, at_most: 1}",
            "claims[0].compare.at_most",
            "goodput takes at_least",
        ),
        (
            "compare: {measure: short-mean, scheme: ecmp, against: ecmp, at_most: 1}",
            "claims[0].compare.against",
            "two points of a sweep",
        ),
        (
            "compare: {measure: short-mean, scheme: ecmp, against: ecmp, at_most: 1, points: [1, 2]}",
            "claims[0].compare.points",
            "needs a sweep over one axis",
        ),
    ],
)
def test_every_claim_has_a_comparison_with_a_number(compare: str, path: str, message: str) -> None:
    found = problems(f"{GOOD}claims:\n  - text: So it is.\n    {compare}\n")
    assert [(at[1], message in at[2]) for at in found] == [(path, True)], found
    good = "compare: {measure: short-mean, scheme: ecmp, against: caps-1, between: [0.3, 0.5]}"
    assert problems(f"{GOOD}claims:\n  - text: So it is.\n    {good}\n") == []


def test_a_claim_may_compare_two_points_of_a_sweep_that_it_has() -> None:
    sweep = "sweep:\n  - {label: flows, fields: [workload.flows.count], values: [10, 20]}\n"

    def compared(more: str, against: str = "ecmp") -> list[tuple[str, str]]:
        claim = (
            f"  - text: So it is.\n    compare: {{scheme: ecmp, against: {against}, at_most: 1, {more}}}\n"
        )
        return [(at[1], at[2]) for at in problems(f"{GOOD}{sweep}claims:\n{claim}")]

    assert compared("measure: short-mean, points: [10, 20]") == []
    assert compared("measure: short-mean, points: [10, 15]") == [
        ("claims[0].compare.points[1]", "'15' is no point of the sweep; there are 10, 20")
    ]
    ((path, message),) = compared("measure: short-p99, points: [10, 20]")
    assert path == "claims[0].compare.points"
    assert "too few flows" in message
    assert compared("measure: short-p99, points: [20, 20]", "caps-1") == []
    ((path, message),) = compared("measure: short-mean, points: [20, 20]")
    assert (path, "compared with itself" in message) == ("claims[0].compare.points", True)


@pytest.mark.parametrize(
    ("axis", "limit", "path"),
    [
        ("values: 5", "1", "sweep[0].values"),
        ("values: [10, 20], shown: 5", "1", "sweep[0].shown"),
        (f"values: [10, 20], shown: [1, {HUGE}]", "1", "sweep"),
        ("values: [10, 20]", HUGE, "claims[0].compare.at_most"),
    ],
)
def test_a_claim_about_points_and_a_sweep_that_cannot_be_read_are_said(
    axis: str, limit: str, path: str
) -> None:
    sweep = f"sweep:\n  - {{label: flows, fields: [workload.flows.count], {axis}}}\n"
    compare = f"{{scheme: ecmp, against: ecmp, measure: short-mean, at_most: {limit}, points: [10, 20]}}"
    found = problems(f"{GOOD}{sweep}claims:\n  - text: So it is.\n    compare: {compare}\n")
    assert path in [problem[1] for problem in found]


def test_points_of_a_sweep_may_be_words() -> None:
    claim = {"measure": "short-mean", "scheme": "a", "against": "b", "at_most": 1, "points": ["web", 2]}
    assert build(Comparison, claim, "claim").points == ("web", 2.0)


def test_a_claim_without_against_is_about_a_share_at_points_that_are_the_same() -> None:
    sweep = "sweep:\n  - {label: flows, fields: [workload.flows.count], values: [10, 20]}\n"

    def alone(more: str) -> list[tuple[str, str]]:
        claim = f"  - text: So it is.\n    compare: {{scheme: ecmp, {more}}}\n"
        return [(at[1], at[2]) for at in problems(f"{GOOD}{sweep}claims:\n{claim}")]

    assert alone("measure: all-retransmissions, at_most: 0") == []
    assert alone("measure: all-retransmissions, at_most: 0, points: [20, 20]") == []
    ((path, message),) = alone("measure: short-mean, at_most: 1")
    assert path == "claims[0].compare"
    assert "needs an against for short-mean" in message
    ((path, message),) = alone("measure: unscheduled, at_most: 1, points: [10, 20]")
    assert (path, "same twice" in message) == ("claims[0].compare.points", True)
    ((path, message),) = alone("against: caps-1, measure: short-mean, at_most: 0")
    assert (path, "no ratio" in message) == ("claims[0].compare.at_most", True)


def test_all_mistakes_are_said_at_once_in_the_order_of_lines() -> None:
    text = GOOD.replace("spines", "spins").replace("ecmp", "ecpm").replace("count: 10", "count: many")
    found = problems(text)
    assert [line for line, _, _ in found] == [5, 7, 10]
    with pytest.raises(SpecError) as caught:
        load(text, "mine.yaml", SCHEMES)
    assert str(caught.value).splitlines()[0].startswith("mine.yaml:5:3: fabric.spins:")


@pytest.mark.parametrize(
    "text", ["", "a: [", "[1]", "3", "a: &a [*a]", "? [1]\n: 2", "a: !!python/none x", "\t", "a: 2001-99-99"]
)
def test_what_is_no_spec_at_all_is_said(text: str) -> None:
    assert problems(text)


@pytest.mark.parametrize("text", ["x" * 100_000, "schemes: [" + "x" * 100_000 + "]", "x" * 100_000 + ": 1"])
def test_what_is_shown_of_a_spec_has_an_end(text: str) -> None:
    for _, path, message in problems(text):
        assert len(path) + len(message) < 3000


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats()
        | st.text(max_size=5)
        | st.sampled_from(["ecmp", "fixed", "l1-s1"]),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "name",
                        "title",
                        "fabric",
                        "schemes",
                        "workload",
                        "flows",
                        "sizes",
                        "kind",
                        "bytes",
                        "link",
                        "arrivals",
                        "rate_per_s",
                        "count",
                        "policy",
                        "overrides",
                        "down",
                        "label",
                        "on",
                    ]
                ),
                inner,
                max_size=6,
            )
        ),
        max_leaves=15,
    )
)
def test_no_text_makes_check_raise(data: Any) -> None:
    found = check(yaml.safe_dump(data), "f", SCHEMES)
    assert found or isinstance(data, dict)


def test_overrides_are_checked_where_they_stand() -> None:
    known = {"short.coding.max_k", "long.release.packet_times"}

    def wrong(scheme: str, overrides: Any) -> str | None:
        return None if set(merge({}, overrides)) <= known else "no such field"

    text = GOOD + "policy: {long: {release: {packet_times: 3}}}\n"
    assert check(text, "f", SCHEMES, wrong) == []
    [problem] = check(text.replace("max_k", "max_q"), "f", SCHEMES, wrong)
    assert (problem.line, problem.path) == (7, "schemes[1].overrides")
    found = check(text.replace("packet_times", "packet_tims"), "f", SCHEMES, wrong)
    assert {(problem.line, problem.path) for problem in found} == {(13, "policy")}


def test_a_schemes_own_overrides_win_over_the_policy() -> None:
    base = {"long": {"release": {"packet_times": 3}, "group": "hash"}, "short.coding?.max_k": 4}
    assert merge(base, {"long.release.packet_times": 5, "short.coding.max_k": 8}) == {
        "long.group": "hash",
        "long.release.packet_times": 5,
        "short.coding.max_k": 8,
    }
    assert merge(base, {"long.release": None})["long.release"] is None
    assert "long.release.packet_times" not in merge(base, {"long.release": None})


def test_the_label_of_a_scheme_s_file_is_one_that_a_spec_may_have(tmp_path: Path) -> None:
    file = tmp_path / "My_Scheme 2.yaml"
    file.write_text("")
    spec = load(GOOD.replace("[ecmp,", f"['{file}',"), "mine.yaml", SCHEMES)
    assert [choice.label for choice in spec.schemes] == ["my_scheme-2", "caps-1"]
    assert check(spec_text(spec), "kept.yaml", SCHEMES) == []
    assert label_of("caps-fig1.2") == "caps-fig1.2"
    assert [label_of(name) for name in ("_x", "Ä", "n" * 40)] == ["x", "scheme", "n" * 31]


def test_specs_are_found_by_name_and_by_path(tmp_path: Path) -> None:
    assert find_spec("demo").name == "demo.yaml"
    own = tmp_path / "own.yaml"
    own.write_text(GOOD)
    assert find_spec(str(own)) == own
    with pytest.raises(SpecMissingError, match="did you mean 'demo'"):
        find_spec("dmo")
    with pytest.raises(SpecMissingError, match="no file"):
        find_spec(str(tmp_path / "none.yaml"))
    with pytest.raises(SpecMissingError, match="not a regular file"):
        find_spec("/dev/null")
