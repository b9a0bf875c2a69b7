"""Sweeps: the grid of specs, and what `check` says of a wrong one."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cli.simulated_progress import StepDisplay
from cli.specs import load_spec
from experiments.spec.check import SpecError, check, load
from experiments.spec.serialized import spec_text, spec_to_dict
from experiments.spec.spec import Axis, Comparison, spec_from_dict, with_all_schemes
from experiments.spec.sweep import (
    SweepError,
    check_axes,
    for_schemes,
    grid,
    only,
    points,
    schemes_of_points,
    show,
    words,
)
from plain.yaml_source import read
from tests.unit.swept_spec import SCHEMES, TEXT, spec


def axis(label: str, *values: Any, fields: tuple[str, ...] = ("seed",)) -> Axis:
    return Axis(label, fields, values)


def test_progress_shows_any_title() -> None:
    with StepDisplay("flows [/s] of [red]") as display:
        assert display._status.renderable.text.plain == "simulating flows [/s] of [red]"  # type: ignore[union-attr]


@given(st.lists(st.integers(-(10**14), 10**14), min_size=2, max_size=8, unique=True))
def test_whole_numbers_that_differ_look_different(values: list[int]) -> None:
    check_axes([axis("n", *values)])
    assert [int(show(value)) for value in values] == values
    assert [show(float(value)) for value in values] == [show(value) for value in values]


def test_a_number_of_any_length_has_a_name() -> None:
    assert [show(value) for value in (10**18 + 1, True, -7)] == ["1000000000000000001", "True", "-7"]
    text = TEXT.replace("values: [1, 3]", f"values: [1, {'9' * 400}]")
    assert any("where long flows = " in problem.message for problem in check(text, "x.yaml", SCHEMES))


@pytest.mark.parametrize("pair", [(1, 1.0), (0.12345678, 0.12345679), (2, "2"), (1e300, 1.0000001e300)])
def test_points_that_tables_could_not_distinguish_are_refused(pair: tuple[Any, Any]) -> None:
    with pytest.raises(
        SweepError, match=r"two points would look the same \('.*'\): .*, or give them other names"
    ):
        check_axes([axis("n", *pair)])
    check_axes([replace(axis("n", *pair), shown=(1.0, 2.0))])


def test_a_grid_has_every_combination_once_in_order() -> None:
    found = points(spec())
    assert [point.at for point in found] == [(1, 1), (1, 2), (1, 4), (3, 1), (3, 2), (3, 4)]
    for point in found:
        long_flows, asymmetry = point.at
        assert point.spec.workload.long_flows is not None
        assert point.spec.workload.long_flows.number == long_flows
        for name in ("l1-s1", "l2-s1"):
            assert point.spec.fabric.overrides[name].rate_mbps == 4 / asymmetry
            assert point.spec.fabric.overrides[name].buffer_packets == 256
        assert point.spec.sweep == ()
        assert point.spec.packet_time_s == pytest.approx(0.003 * asymmetry)
    assert found[1].spec.title == "Tried (long flows = 1, asymmetry = 2 times)"


def test_what_an_axis_does_not_touch_is_alike_at_all_points() -> None:
    plans = [point.spec.plan(0) for point in points(spec())]
    assert len({tuple(flow.start_s for flow in plan.sized) for plan in plans}) == 1
    assert (
        len({tuple((flow.source, flow.destination, flow.size_bytes) for flow in p.sized) for p in plans}) == 1
    )


def test_a_spec_without_a_sweep_is_its_own_point() -> None:
    one = replace(spec(), sweep=())
    assert [point.spec for point in points(one)] == [one]


@given(sizes=st.lists(st.integers(1, 4), min_size=1, max_size=3))
@settings(max_examples=20, deadline=None)
def test_there_are_as_many_points_as_combinations(sizes: list[int]) -> None:
    axes = tuple(axis(f"axis {n}", *range(size), fields=(f"policy.x{n}",)) for n, size in enumerate(sizes))
    data = {"policy": {"kept": 1}, "sweep": "gone"}
    found = list(grid(data, axes))
    assert len(found) == math.prod(sizes)
    assert len({at for at, _ in found}) == len(found)
    for at, one in found:
        assert one["policy"] == {"kept": 1, **{f"x{n}": value for n, value in enumerate(at)}}
        assert "sweep" not in one
    assert data == {"policy": {"kept": 1}, "sweep": "gone"}, "the given data stay"


def test_lists_are_entered_by_index() -> None:
    [(_, one)] = grid(
        {"schemes": [{"name": "a"}, {"name": "b"}]}, [axis("x", 5, fields=("schemes.1.overrides.k",))]
    )
    assert one["schemes"] == [{"name": "a"}, {"name": "b", "overrides": {"k": 5}}]


@pytest.mark.parametrize(
    ("field", "values", "links"),
    [
        ("rate_gbps", [0.004, 0.01], [(4.0, None), (10.0, None)]),
        ("buffer_bytes", [30_000, 60_000], [(4.0, 30_000), (4.0, 60_000)]),
    ],
)
def test_an_axis_gives_what_the_spec_has_in_another_unit(
    field: str, values: list[float], links: list[tuple[float, int | None]]
) -> None:
    text = TEXT.replace("[workload.long_flows.number]", f"[fabric.link.{field}]")
    swept = load(text.replace("values: [1, 3]", f"values: {values}"), "tried.yaml", SCHEMES)
    found = [point.spec.fabric.link for point in points(swept)]
    assert [(link.rate_mbps, link.buffer_bytes) for link in found[::3]] == links
    assert check(spec_text(swept), "again.yaml", SCHEMES) == []


@pytest.mark.parametrize("ends", [("l1-s2", "s2-l1"), ("s2-l1", "l1-s2"), ("s2-l1", "s2-l1")])
def test_an_axis_over_an_override_reaches_it_whichever_end_is_named_first(ends: tuple[str, str]) -> None:
    own, swept = ends
    links = f"link: {{rate_mbps: 4}}, overrides: {{{own}: {{rate_mbps: 2, delay_ms: 7}}}}"
    text = TEXT.replace("link: {rate_mbps: 4}", links)
    text = text.replace("[workload.long_flows.number]", f"[fabric.overrides.{swept}.rate_mbps]")
    assert check(text, "tried.yaml", SCHEMES) == []
    found = [point.spec.fabric.overrides["l1-s2"] for point in points(load(text, "tried.yaml", SCHEMES))]
    assert [(link.rate_mbps, link.delay_ms) for link in found[::3]] == [(1.0, 7.0), (3.0, 7.0)]


def test_what_an_override_leaves_to_all_links_is_not_swept_without_it() -> None:
    def found(override: str, fields: str = "fabric.link.rate_mbps") -> list[tuple[str, str]]:
        links = f"link: {{rate_mbps: 4}}, overrides: {{l1-s2: {{{override}}}}}"
        text = TEXT.replace("link: {rate_mbps: 4}", links)
        text = text.replace("[workload.long_flows.number]", f"[{fields}]")
        return [(problem.path, problem.message) for problem in check(text, "tried.yaml", SCHEMES)]

    ((path, message),) = found("delay_ms: 1")
    assert path == "sweep[0].fields[0]"
    assert "does not reach the override l1-s2, which has no rate_mbps of its own" in message
    assert found("delay_ms: 1, rate_gbps: 0.004") == []
    for name in ("l1-s2", "s2-l1"):
        assert found("delay_ms: 1", f"fabric.link.rate_mbps, fabric.overrides.{name}.rate_mbps") == []
    assert found("delay_ms: 1", "fabric.access.buffer_packets") == [], "of hosts"


@pytest.mark.parametrize(
    ("axes", "said"),
    [
        ([axis("x")], "at least one value"),
        ([axis("x", 1, fields=())], "at least one field"),
        ([axis("x", 1, 1)], "look the same"),
        ([axis("x", 1), axis("x", 2)], "'x' is there already"),
        ([Axis("x", ("seed",), (1, 2), "", (1.0,))], "1 entries for 2 values"),
        ([axis("x", *range(20)), axis("y", *range(11))], "220 points are more than 200"),
    ],
)
def test_axes_that_cannot_be_are_refused(axes: list[Axis], said: str) -> None:
    with pytest.raises(SweepError, match=said):
        check_axes(axes)


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ("[workload.long_flows.number]", "[workload.long_flow.number]", 13, "did you mean 'long_flows'?"),
        ("[workload.long_flows.number]", "[title.x]", 14, "'title.x' is not a field of this spec"),
        (
            "values: [1, 3]",
            "values: [1, 0]",
            13,
            "where long flows = 0, asymmetry = 1 times: workload.long_flows.number",
        ),
        ("values: [1, 3]", "value: [1, 3]", 15, "'value' is not known"),
        ("l2-s1.rate_mbps", "l2-s9.rate_mbps", 16, "l2-s9"),
        ("shown: [1, 2, 4]", "shown: [1, 2]", 19, "has 2 entries for 3 values"),
        ("against: ecmp", "against: ecmb", 25, "did you mean 'ecmp'?"),
        ("against: ecmp", "against: ecmp, at_least: 2", 25, "is not for short-mean"),
    ],
)
def test_check_says_where_a_sweep_or_a_claim_is_wrong(old: str, new: str, line: int, said: str) -> None:
    assert old in TEXT
    found = check(TEXT.replace(old, new), "tried.yaml", SCHEMES)
    assert any(said in problem.message and problem.line == line for problem in found), found


def test_a_wrong_value_is_said_once_and_not_for_every_point() -> None:
    found = check(TEXT.replace("values: [1, 3]", "values: [0, -1]"), "tried.yaml", SCHEMES)
    assert len(found) == 2, found


def test_all_stands_for_every_scheme_that_is_not_listed() -> None:
    text = TEXT.replace("[ecmp, caps]", "[caps, all]")
    whole = with_all_schemes(load(text, "tried.yaml", SCHEMES), lambda: SCHEMES)
    assert [choice.name for choice in whole.schemes] == ["caps", "ecmp", "repflow", "rps"]
    assert whole.baseline == "caps"
    only = with_all_schemes(
        load(TEXT.replace("[ecmp, caps]", "[all]"), "tried.yaml", SCHEMES), lambda: SCHEMES
    )
    assert only.baseline == "caps"
    with pytest.raises(SpecError, match="'rps' is there already"):
        load(TEXT.replace("[ecmp, caps]", "[all, {name: ./x.yaml, label: rps}]"), "t.yaml", SCHEMES)


def test_a_spec_survives_being_written() -> None:
    for one in (spec(), *(point.spec for point in points(spec()))):
        again = spec_from_dict(read(spec_text(one), "again.yaml").data)
        assert spec_to_dict(again) == spec_to_dict(one)
        assert check(spec_text(one), "again.yaml", SCHEMES) == []


def test_a_scheme_whose_name_an_axis_sets_has_its_label_at_each_point() -> None:
    """Figures of rps stood in the row of caps."""
    swept = replace(spec(), sweep=(axis("beside", "caps", "rps", fields=("schemes.1.name",)),))
    labels = [[choice.label for choice in point.spec.schemes] for point in points(swept)]
    assert labels == [["ecmp", "caps"], ["ecmp", "rps"]]
    named = replace(swept, schemes=(swept.schemes[0], replace(swept.schemes[1], label="mine")))
    assert [point.spec.schemes[1].label for point in points(named)] == ["mine", "mine"]


def test_words_have_units() -> None:
    assert words(spec().sweep, (3, 2.5)) == "long flows = 3, asymmetry = 2.5 times"


def test_single_points_of_the_first_axis_are_taken_by_what_tables_call_them() -> None:
    kept = points(only(spec(), ["3"]))
    assert [point.at for point in kept] == [(3, 1), (3, 2), (3, 4)]
    assert kept == points(spec())[3:]
    turned = replace(spec(), sweep=spec().sweep[::-1])
    assert [point.at for point in points(only(turned, ["4", "1"]))] == [(1, 1), (1, 3), (4, 1), (4, 3)]
    with pytest.raises(SweepError, match="long flows '2' is not a point of this sweep; there are 1, 3"):
        only(spec(), ["2"])
    with pytest.raises(SweepError, match="there is no sweep"):
        only(replace(spec(), sweep=()), ["3"])


def test_fields_of_schemes_follow_the_schemes_that_run() -> None:
    load = "workload.flows.arrivals.load"
    axis = Axis("load", (load, "schemes.1.overrides.admission.load"), (0.5, 0.9))

    def fields(axis: Axis, *chosen: str) -> tuple[str, ...]:
        return for_schemes((axis,), ("capton", "hyline", "pias"), chosen)[0].fields

    assert fields(axis, "pias", "hyline") == axis.fields
    assert fields(axis, "hyline", "pias") == (load, "schemes.0.overrides.admission.load")
    assert fields(axis, "pias", "ecmp") == (load,), "and PIAS has no field of HyLine's"
    with pytest.raises(
        SweepError, match=r"sweeps load of schemes that would not run \(hyline\): run its own"
    ):
        fields(replace(axis, fields=axis.fields[1:]), "pias")
    (swept,) = load_spec("capton-fig9", ("hyline", "capton")).spec.sweep
    assert swept.fields == (load, "schemes.0.overrides.admission.load")


def test_schemes_of_all_points_are_there_once_with_all_that_changes_them() -> None:
    of_all = {"long.release.packet_times": 8}
    assert [(each.name, each.overrides) for each in schemes_of_points(spec())] == [
        ("ecmp", of_all),
        ("caps", of_all),
    ]
    field = "schemes.1.overrides.short.coding.max_k"
    swept = replace(spec(), sweep=(*spec().sweep, Axis("k", (field,), (4, 8)), axis("seed", 1, 2, 3)))
    others = [("caps", of_all | {"short.coding.max_k": most}) for most in (4, 8)]
    assert [(each.name, each.overrides) for each in schemes_of_points(swept)] == [("ecmp", of_all), *others]


def test_claims_about_points_that_are_left_out_go() -> None:
    compare = Comparison("short-mean", "caps", "ecmp", at_most=1, points=(1, 3))
    across = replace(spec().claims[0], compare=compare)
    one = replace(spec(), sweep=spec().sweep[:1], claims=(*spec().claims, across))
    assert only(one, ["1", "3"]).claims == one.claims
    assert only(one, ["3"]).claims == spec().claims
    assert check(spec_text(only(one, ["3"])), "again.yaml", SCHEMES) == []
