"""Sweeps: the grid of specs, the document over all points, and what `check` says of a wrong one."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cli.simulated_progress import StepDisplay
from cli.specs import load_spec
from experiments.results.cpu_use import CpuUse
from experiments.results.document import Run, json_text, result_document, text_of
from experiments.results.outcome import join
from experiments.results.sweep_results import point_table, sweep_document, sweep_tables, write_sweep
from experiments.results.tables import milliseconds, new_table
from experiments.spec.check import SpecError, check, load
from experiments.spec.serialized import spec_text, spec_to_dict
from experiments.spec.spec import Axis, Comparison, Spec, spec_from_dict, with_all_schemes
from experiments.spec.sweep import SweepError, check_axes, for_schemes, grid, only, points, show, words
from plain.yaml_source import read
from tests.unit.sent_flows import sent

SCHEMES = ["caps", "ecmp", "repflow", "rps"]
TEXT = """\
name: tried
title: Tried
fabric: {leaves: 2, spines: 4, link: {rate_mbps: 4}, access: {rate_mbps: 10}}
schemes: [ecmp, caps]
policy: {long.release.packet_times: 8}
workload:
  flows:
    count: 6
    sizes: {kind: uniform, low_bytes: 10000, high_bytes: 50000}
    arrivals: {rate_per_s: 12}
  long_flows: {number: 1}
sweep:
  - label: long flows
    fields: [workload.long_flows.number]
    values: [1, 3]
  - label: asymmetry
    fields: [fabric.overrides.l1-s1.rate_mbps, fabric.overrides.l2-s1.rate_mbps]
    values: [4, 2, 1]
    shown: [1, 2, 4]
    unit: times
claims:
  - text: CAPS is better.
    source: a paper
    figure: Fig. 1
    compare: {measure: short-mean, scheme: caps, against: ecmp, at_most: 1}
  - text: It is fine.
    compare: {measure: long-mean, scheme: caps, against: ecmp, at_most: 1}
"""


def spec() -> Spec:
    return load(TEXT, "tried.yaml", SCHEMES)


def axis(label: str, *values: Any, fields: tuple[str, ...] = ("seed",)) -> Axis:
    return Axis(label, fields, values)


def test_tables_show_titles_and_units_in_brackets_as_they_are_written() -> None:
    table = new_table("Delay [ms]", ["1\n[kB]", "[red]2"], first="scheme \\ load [ms]")
    table.add_row("caps", "1", "2")
    shown = text_of(table)
    assert all(text in shown for text in ("Delay [ms]", "[kB]", "[red]2", "scheme \\ load [ms]"))


@pytest.mark.parametrize(
    ("value_ms", "shown"),
    [(0.0123, "0.012"), (0.08, "0.080"), (0.97, "0.970"), (1.0, "1.0"), (99.94, "99.9"), (287.4, "287")],
)
def test_times_have_digits_enough_to_be_compared(value_ms: float, shown: str) -> None:
    assert milliseconds(value_ms) == shown


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
    whole = with_all_schemes(load(text, "tried.yaml", SCHEMES), SCHEMES)
    assert [choice.name for choice in whole.schemes] == ["caps", "ecmp", "repflow", "rps"]
    assert whole.baseline == "caps"
    only = with_all_schemes(load(TEXT.replace("[ecmp, caps]", "[all]"), "tried.yaml", SCHEMES), SCHEMES)
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


# -- results -----------------------------------------------------------------------------------------


def point_document(one: Spec, factor: float, limited: bool = False) -> dict[str, Any]:
    """Return the result of one point; caps is *factor* times as slow as ecmp."""
    runs = []
    for repeat in range(one.repeats):
        plan = one.plan(repeat)
        for choice in one.schemes:
            slow = factor if choice.label == "caps" else 1.0
            measured = sent(plan, lambda flow, slow=slow: (0.05 + 0.001 * flow.id) * slow)  # type: ignore[misc]
            cpu = CpuUse(0.02 if limited else 0.5, 0.4, None, 0.1, limited and choice.label == "caps")
            flows = tuple(replace(flow, packets=30, reordered=3) for flow in join(plan, measured, [], []))
            runs.append(Run(choice.label, choice.name, repeat, plan.digest(), 5.0, flows, cpu))
    return result_document(
        one,
        runs,
        started=datetime.now(UTC),
        duration_s=20.0,
        notices=["no netem here"],
        versions={"numpy": "2"},
    )


def whole(**more: Any) -> dict[str, Any]:
    found = points(spec())
    return sweep_document(
        spec(),
        [
            (point.at, Path(f"point-{index}"), point_document(point.spec, 0.5, **more))
            for index, point in enumerate(found, 1)
        ],
    )


def test_the_document_has_every_point_with_its_figures(tmp_path: Path) -> None:
    document = whole()
    write_sweep(tmp_path, document, TEXT)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"result.json", "points.csv", "tables.txt", "spec.yaml"}
    rows = list(csv.DictReader(io.StringIO((tmp_path / "points.csv").read_text())))
    assert len(rows) == 6 * 2
    first = rows[0]
    assert (first["long flows"], first["asymmetry"], first["scheme"]) == ("1", "1", "ecmp")
    figures = document["points"][0]["schemes"]["ecmp"]
    assert float(first["short_afct_ms"]) == pytest.approx(figures["short"]["afct_ms"], rel=1e-5)
    assert (
        float(first["short_afct_ms_low"])
        <= float(first["short_afct_ms"])
        <= float(first["short_afct_ms_high"])
    )
    assert float(first["long_goodput_mbps"]) == pytest.approx(4)
    assert first["short_p99_ms"] == first["long_goodput_mbps_low"] == "", "too few flows, and one repeat"
    assert [point["at"] for point in document["points"]] == [[1, 1], [1, 2], [1, 4], [3, 1], [3, 2], [3, 4]]
    assert document["points"][3]["schemes"]["ecmp"]["long"]["goodput_mbps"] == pytest.approx(12)
    assert '"kind": "sweep"' in json_text(document)
    assert document["cpu_limited"] is False


@pytest.mark.slow
def test_claims_stand_beside_what_each_point_showed() -> None:
    first, second = whole()["claims"]
    assert [found["verdict"] for found in first["ours"]] == ["seen"] * 6
    assert first["ours"][0]["ratio"] == pytest.approx(0.5)
    assert {found["verdict"] for found in second["ours"]} == {"no figure"}
    text = text_of(sweep_tables(whole()))
    assert "Claim (a paper, Fig. 1; qualitative): CAPS is better." in text
    assert "long flows = 3, asymmetry = 4 times: 0.50 [0.50, 0.50] seen" in text


def test_tables_have_a_column_for_each_point_units_and_reasons() -> None:
    text = text_of(sweep_tables(whole()))
    for part in (
        "Mean completion time of short flows, ms",
        "Goodput of long flows, sum in Mbit/s",
        "asymmetry, times",
        "10.00",
        "p99 is not shown for fewer than 1000 short flows",
        "no netem here",
    ):
        assert part in text, part
    assert "p99 of the completion time" not in text


def test_a_sweep_may_set_which_schemes_run(tmp_path: Path) -> None:
    """Its tables are written when all has run, and raised KeyError: all was lost."""
    document = whole()
    last = document["points"][-1]["schemes"]
    last["rps"] = last.pop("ecmp")
    write_sweep(tmp_path, document, TEXT)
    rows = [line.split() for line in (tmp_path / "tables.txt").read_text().splitlines()]
    assert ["rps", *["-"] * 5] in [row[:6] for row in rows]
    assert any(row[:1] == ["ecmp"] and row[-1] == "-" for row in rows)


def test_tables_say_for_how_much_of_the_time_leaves_were_on() -> None:
    document = whole()
    assert "Leaves ON" not in text_of(sweep_tables(document)), "no leaf ever was"
    for share, point in enumerate(document["points"], 41):
        point["schemes"]["caps"]["on_share"] = share / 100
    table = text_of(sweep_tables(document)).partition("Leaves ON, % of the time")[2]
    (row,) = [line for line in table.splitlines() if line.split()[:1] == ["caps"]][:1]
    assert row.split() == ["caps", "41", "42", "43", "44", "45", "46"]


def test_a_limited_point_is_marked_and_shows_no_claim() -> None:
    document = whole(limited=True)
    assert document["cpu_limited"] is True
    text = text_of(sweep_tables(document))
    assert "CPU LIMITED" in text
    assert "caps*" in text
    assert "ecmp*" not in text
    assert {found["verdict"] for found in document["claims"][0]["ours"]} == {"no figure"}


def test_a_disturbed_point_is_marked_among_the_points() -> None:
    document = whole()
    document["points"][1]["schemes"]["caps"]["disturbed"] = True
    del document["points"][2]["schemes"]["caps"]["disturbed"]  # as of before there was such a mark
    rows = list(csv.DictReader(io.StringIO(point_table(document))))
    assert [row["disturbed"] for row in rows] == ["0", "0", "0", "1", *["0"] * 8]


def test_points_of_another_version_or_machine_than_the_first_are_said() -> None:
    results = [
        (point.at, Path(f"point-{index}"), point_document(point.spec, 0.5))
        for index, point in enumerate(points(spec()), 1)
    ]
    assert sweep_document(spec(), results)["notices"] == []
    cores = results[0][2]["machine"]["cores"]
    for _, _, document in results[4:]:
        document["versions"] = {"numpy": "3"}
        document["machine"] |= {"cores": cores + 1}
    document = sweep_document(spec(), results)
    (notice,) = document["notices"]
    assert notice.startswith(
        "2 of 6 points (the first of them: long flows = 3, asymmetry = 2 times) had numpy 3 in place of 2, "
        f"cores {cores + 1} in place of {cores}: "
    )
    assert "Note: 2 of 6 points" in text_of(sweep_tables(document))
    for _, _, point in results:
        point["kind"] = "simulation"
    (notice,) = sweep_document(spec(), results)["notices"]
    assert "numpy 3 in place of 2: " in notice, "no simulation depends on the machine"


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


def test_claims_about_points_that_are_left_out_go() -> None:
    compare = Comparison("short-mean", "caps", "ecmp", at_most=1, points=(1, 3))
    across = replace(spec().claims[0], compare=compare)
    one = replace(spec(), sweep=spec().sweep[:1], claims=(*spec().claims, across))
    assert only(one, ["1", "3"]).claims == one.claims
    assert only(one, ["3"]).claims == spec().claims
    assert check(spec_text(only(one, ["3"])), "again.yaml", SCHEMES) == []


def test_times_over_the_baseline_have_a_table_of_their_own() -> None:
    text = text_of(sweep_tables(whole()))
    assert "Mean completion time of short flows, / ecmp [95 % CI]" in text


def test_flows_that_failed_are_said_of_both_classes() -> None:
    document = whole()
    scheme = document["points"][0]["schemes"]["ecmp"]
    scheme["short"]["failed"] = 2
    scheme["long"] |= {"failed": 3, "failed_background_flows": 1}
    text = " ".join(text_of(sweep_tables(document)).split())
    where = "ecmp at long flows = 1, asymmetry = 1 times"
    assert f"Short flows that failed, and are in no mean: {where}: 2." in text
    assert f"Long flows that failed, and are in no mean: {where}: 3." in text
    assert f"Long flows without end that failed; sums count what they had sent: {where}: 1." in text
