"""Experiments made to fit a machine: what they ask of it, and that the picture stays the same."""

from __future__ import annotations

import dataclasses
import functools
import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cli.sizing import expected, others_words, words
from controller.schemes.loader import scheme_names
from experiments.spec.check import find_spec, preset_names
from experiments.spec.fitting import (
    LEAST_PATHS,
    LEAST_SCALE,
    Fit,
    FitError,
    busiest,
    fewer_paths,
    fit,
    scaled,
    slower,
)
from experiments.spec.load import (
    CARRIED_SHARE,
    LONE_US,
    REFERENCE,
    SAME_MACHINE,
    costs_where,
    load_of,
)
from experiments.spec.serialized import spec_text
from experiments.spec.spec import Axis, Spec, spec_from_dict, with_all_schemes
from experiments.spec.sweep import points
from plain.bounds import first_beyond
from plain.yaml_source import read
from topologies.links import Link
from topologies.other_programs import Busy


@functools.cache
def preset(name: str) -> Spec:
    path = find_spec(name)
    data = read(path.read_text(encoding="utf-8"), str(path)).data
    return with_all_schemes(spec_from_dict(data), scheme_names)


names = st.sampled_from(preset_names())
scales = st.floats(0.1, 0.95)


@pytest.mark.slow
@given(names, scales)
def test_slower_links_take_as_many_fewer_packets_a_second_and_the_same_packets_in_all(
    name: str, scale: float
) -> None:
    spec = preset(name)
    light = slower(spec, scale)
    for before, after in zip(points(spec), points(light), strict=True):
        assert load_of(after.spec).packets_per_s == pytest.approx(scale * load_of(before.spec).packets_per_s)
        assert after.at == before.at, "tables call the points as before"
        assert after.spec.packet_time_s == pytest.approx(before.spec.packet_time_s / scale)


@pytest.mark.slow
@given(names, scales)
def test_slower_links_get_the_same_flows_at_the_same_packet_times(name: str, scale: float) -> None:
    first = points(preset(name))[0].spec
    light = slower(first, scale)
    before, after = first.plan(0), light.plan(0)
    # As many flows within a time that was rounded a little may be one fewer: the last.
    assert abs(len(before.flows) - len(after.flows)) <= 1
    for one, other in zip(before.flows, after.flows, strict=False):
        assert (one.source, one.destination, one.size_bytes, one.source_port) == (
            other.source,
            other.destination,
            other.size_bytes,
            other.source_port,
        )
        assert other.start_s * scale == pytest.approx(one.start_s, abs=1e-5)


@pytest.mark.slow
@given(names, st.integers(1, 64), st.floats(0.5, 4), st.booleans())
def test_what_is_fitted_is_carried_and_what_is_carried_is_left_as_it_is(
    name: str, cores: int, slowness: float, paths_first: bool
) -> None:
    spec, costs = preset(name), REFERENCE.times(slowness)
    asked = busiest(spec, costs)
    room = CARRIED_SHARE * cores - asked.idle_cores
    # hundredths of the links' rates
    if math.floor(room / (asked.cores - asked.idle_cores) * 100) / 100 < LEAST_SCALE:
        assume(not paths_first)
        with pytest.raises(FitError, match="cores"):
            fit(spec, cores, costs)
        return
    fitted = fit(spec, cores, costs, paths_first=paths_first)
    assert fitted.load.share(cores) <= CARRIED_SHARE + 1e-9
    assert fitted.load == busiest(fitted.spec, costs)
    if asked.share(cores) <= CARRIED_SHARE / (SAME_MACHINE if paths_first else 1):
        assert fitted == Fit(spec, asked)
    elif asked.share(cores) > CARRIED_SHARE:
        assert fitted.changes


@given(st.floats(0.1, 2), st.integers(1, 8))
def test_a_demo_that_leaves_paths_out_is_carried_by_a_machine_a_quarter_slower(
    slowness: float, cores: int
) -> None:
    costs = REFERENCE.times(slowness)
    fitted = fit(preset("demo"), cores, costs, paths_first=True)
    if fitted.spec.fabric.spines > LEAST_PATHS:
        assert busiest(fitted.spec, costs.times(SAME_MACHINE)).share(cores) <= CARRIED_SHARE + 1e-9


@given(st.integers(LEAST_PATHS, 16))
def test_with_fewer_paths_the_long_flows_can_still_fill_all(paths: int) -> None:
    demo = preset("demo")
    pressure = fewer_paths(demo, paths).long_flow_pressure()
    assert pressure is not None
    assert pressure >= (demo.long_flow_pressure() or 0)


def test_paths_that_are_not_alike_stay() -> None:
    demo = preset("demo")
    one_down = dataclasses.replace(demo, fabric=dataclasses.replace(demo.fabric, down=("l1-s3",)))
    assert fit(one_down, 2, REFERENCE, paths_first=True).spec.fabric.spines == 16
    with pytest.raises(FitError, match="not alike"):
        fewer_paths(one_down, 8)


@given(names, st.floats(0.02, 1))
def test_a_scale_is_kept(name: str, scale: float) -> None:
    spec = preset(name)
    asked, got = busiest(spec, REFERENCE), scaled(spec, scale, REFERENCE).load
    assert got.packets_per_s == pytest.approx(scale * asked.packets_per_s)


@pytest.mark.parametrize("scale", [0.0, 0.019, 1.01, float("nan")])
def test_other_scales_are_refused(scale: float) -> None:
    with pytest.raises(FitError, match=r"between 0\.02 and 1"):
        scaled(preset("demo"), scale, REFERENCE)


def test_half_of_the_demo_is_half_of_its_paths() -> None:
    half = scaled(preset("demo"), 0.5, REFERENCE, paths_first=True)
    assert half.changes == ("8 of 16 paths", "2 of 4 long flows")
    assert half.spec.packet_time_s == preset("demo").packet_time_s


@given(st.floats(1, 400), st.floats(1, 400), st.integers(1, 8))
def test_a_slower_machine_never_gets_more(lone_us: float, other_us: float, cores: int) -> None:
    asked = preset("demo")
    fast, slow = sorted((lone_us, other_us))
    costs = [costs_where(fast), costs_where(slow)]
    assert costs[0].hop_us <= costs[1].hop_us
    had, has = (fit(asked, cores, cost, paths_first=True).spec for cost in costs)
    assert LEAST_PATHS <= has.fabric.spines <= had.fabric.spines
    assert has.packet_time_s >= had.packet_time_s


@given(st.floats(1 / SAME_MACHINE + 0.001, SAME_MACHINE - 0.001))
def test_a_busy_moment_changes_nothing(factor: float) -> None:
    demo = preset("demo")
    usual = fit(demo, 2, REFERENCE, paths_first=True)
    assert fit(demo, 2, costs_where(factor * LONE_US), paths_first=True) == usual
    assert usual.changes == ("8 of 16 paths", "2 of 4 long flows")


def test_other_programs_are_named_with_what_they_take() -> None:
    line = others_words(Busy(0.84, "cc1plus"), 2)
    assert "other programs take 0.8 of 2 cores now, most of it 'cc1plus'" in line


def test_a_fitted_spec_can_be_written_down_and_read_again() -> None:
    light = fit(preset("all-schemes"), 1, REFERENCE).spec
    assert spec_from_dict(read(spec_text(light), "fitted").data) == light


def test_a_load_that_nothing_limits_says_what_to_give() -> None:
    small = preset("small")
    unshaped = dataclasses.replace(
        small.fabric, link=Link(), access=Link(), overrides={"l2-s1": Link(rate_mbps=4)}
    )
    with pytest.raises(ValueError, match="give all of them a rate_mbps"):
        busiest(dataclasses.replace(small, fabric=unshaped), REFERENCE)


def test_a_scaled_spec_stays_within_the_bounds_of_specs() -> None:
    patient = dataclasses.replace(preset("small"), timeout_s=120.0)
    light = scaled(patient, LEAST_SCALE, REFERENCE).spec
    assert light.timeout_s == 3600
    assert first_beyond(light) is None
    with pytest.raises(FitError, match=r"links at 0\.02 .* warm_up_s must be .*: make it shorter"):
        scaled(dataclasses.replace(patient, warm_up_s=20.0), LEAST_SCALE, REFERENCE)


def test_what_is_too_much_is_said_before_it_starts_with_what_fit_would_make_of_it() -> None:
    spec = preset("demo")
    heavy = Fit(spec, busiest(spec, REFERENCE))
    said = words(heavy, fit(spec, 2, REFERENCE), 2)
    assert "of 2 cores" in said[0]
    assert "will be limited by the processors" in said[1]
    assert "links at 0." in said[1]
    assert words(heavy, FitError("no room"), 2)[1].endswith("--fit does not help: no room")
    light = fit(spec, 2, REFERENCE, paths_first=True)
    assert "of 16 paths" in words(light, None, 2)[0]
    assert len(words(light, None, 2)) == 2


def test_the_time_that_a_sweep_takes_has_the_start_of_each_of_its_fabrics() -> None:
    def seconds(field: str, values: tuple[float, ...]) -> float:
        axis = Axis("axis", (field,), values)
        return expected(dataclasses.replace(preset("small"), sweep=(axis,)))[1]

    one_fabric = seconds("timeout_s", (10.0, 20.0, 30.0))
    three_fabrics = seconds("fabric.access.buffer_packets", (64, 128, 256))
    assert three_fabrics - one_fabric == pytest.approx(2 * 6.0)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("fabric.link", {"rate_mbps": 2.0}),
        ("workload.flows.arrivals", {"kind": "poisson", "rate_per_s": 9.0}),
        ("fabric", {"leaves": 2, "spines": 4, "link": {"rate_mbps": 2.0}, "access": {"rate_mbps": 5.0}}),
    ],
)
def test_a_sweep_over_whole_links_or_arrivals_is_not_scaled_in_part(field: str, value: object) -> None:
    axis = Axis("what", (field,), (value,))
    spec = dataclasses.replace(preset("demo"), sweep=(axis,))
    assert points(spec)[0].at == (value,)
    with pytest.raises(FitError, match="axis 'what' sets rates or times together with something else"):
        slower(spec, 0.5)


def test_a_sweep_over_what_has_no_rates_stays() -> None:
    axis = Axis("what", ("policy",), ({"long.release.packet_times": 8},))
    assert slower(dataclasses.replace(preset("demo"), sweep=(axis,)), 0.5).sweep == (axis,)
