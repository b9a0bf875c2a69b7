"""TPFS finds the applications behind published flow-size tables, and is not led astray by one host."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from controller.queues.pias import PUBLISHED
from controller.tpfs.clustering import UNKNOWN
from controller.tpfs.distributions import describe, distances, points
from controller.tpfs.features import FEATURES, combinations, fair_share, fair_weights
from controller.tpfs.records import RECORD
from controller.tpfs.selection import Candidate, choose, over_hosts, spreads
from controller.tpfs.types import flow_types
from tests.unit.application_records import FOUR, addresses, records_of

DEFAULT = PUBLISHED["websearch"][0.8]


def type_of_flows(candidate: Candidate, flows: int) -> NDArray[np.int64]:
    """Return the type of each of the *flows* records that *candidate* was made from, or `UNKNOWN`, shape (flows,)."""
    result = np.full(flows, UNKNOWN, dtype=np.int64)
    result[candidate.values.flows] = candidate.clusters.of_value[candidate.values.value]
    return result


def agreement(truth: NDArray[np.int64], found: NDArray[np.int64]) -> float:
    """Return the adjusted Rand index of two groupings: 1 where they are the same, some 0 where one says nothing."""
    # Here, for it takes a second, which only the process needs that runs these tests.
    from sklearn.metrics import adjusted_rand_score

    return float(adjusted_rand_score(truth, found))


@pytest.mark.parametrize("replies", [False, True])
@pytest.mark.parametrize("tables", [FOUR, FOUR[:2]])
def test_the_port_names_the_application(tables: tuple[str, ...], replies: bool) -> None:
    for seed in range(20):
        records, truth = records_of(tables, 2000, np.random.default_rng(seed), replies=replies)
        choice = choose(records, DEFAULT[-1])
        assert choice is not None
        assert choice.best.combination == (("source_port",) if replies else ("destination_port",))
        assert choice.best.clusters.count == len(tables)
        assert agreement(truth, type_of_flows(choice.best, len(records))) >= 0.95


def test_one_application_is_one_type_whatever_it_is_asked_by() -> None:
    records, _ = records_of(["websearch"] * 4, 4000, np.random.default_rng(1))
    found = flow_types(records, addresses(), DEFAULT, load=0.6)
    assert found is not None
    assert len(found.types) == 1


def test_an_application_that_changes_its_port_is_unknown_and_learnt_in_the_next_interval() -> None:
    rng = np.random.default_rng(5)
    records, _ = records_of(FOUR, 2000, rng)
    moved, application = records_of(FOUR, 400, rng, first_port=6000)
    moved = moved[application == 1]
    before = flow_types(records, addresses(), DEFAULT, load=0.6)
    assert before is not None
    assert not [one for one in before.types if ("6001",) in one.values]
    after = flow_types(np.concatenate((records, moved)), addresses(), DEFAULT, load=0.6)
    assert after is not None
    (its,) = [one for one in after.types if ("6001",) in one.values]
    assert ("5001",) in its.values
    assert len(after.types) == 4


@pytest.mark.parametrize("flows", [1200, 3000])
def test_answers_of_a_byte_do_not_hide_what_requests_are(flows: int) -> None:
    """Every second flow is the answer to one of the others, as any real connection has; four of five requests are of
    one application, as they are where applications have the same load."""
    rng = np.random.default_rng(5)
    requests, application = records_of(FOUR, flows, rng)
    most = rng.random(flows) < 0.75
    of_hadoop = records_of(FOUR[3:], flows, rng, first_port=5003)[0]
    requests[most], application[most] = of_hadoop[most], 3
    answers = requests.copy()
    for mine, others in (("source", "destination"), ("source_port", "destination_port")):
        answers[mine], answers[others] = requests[others], requests[mine]
    answers["host"], answers["bytes"] = answers["source"], 1
    choice = choose(np.concatenate((requests, answers)), DEFAULT[-1])
    assert choice is not None
    assert choice.best.combination == ("destination_port",)
    assert choice.best.spread < 0.95 * min(
        one.spread for one in choice.candidates if "destination_port" not in one.combination
    )
    found = type_of_flows(choice.best, 2 * flows)[:flows]
    known = found != UNKNOWN
    assert agreement(application[known], found[known]) >= 0.95
    assert np.mean(known) > 0.99


@pytest.mark.slow
@given(st.lists(st.tuples(st.integers(1, 10**6), st.integers(0, 2)), min_size=60, max_size=300), st.data())
@settings(max_examples=30, deadline=None)
def test_the_spread_never_grows_with_what_is_distinguished(
    flows: list[tuple[int, int]], data: st.DataObject
) -> None:
    """Of two ways to group flows of one host, the finer one has no larger S."""
    sizes = np.array([size for size, _ in flows], dtype=float)
    coarse = np.array([group for _, group in flows], dtype=np.int64)
    fine = coarse * 2 + (sizes > data.draw(st.integers(1, 10**6)))
    at = points(sizes)
    below = np.minimum(np.searchsorted(at, sizes), len(at) - 1).astype(np.int64)
    host, load = np.zeros(len(sizes), dtype=np.int64), np.minimum(sizes, 50_000.0)

    def spread(group: NDArray[np.int64]) -> float:
        return over_hosts(
            spreads(group, below, host=host, load=load, groups=6, width=len(at))[group], host, load
        )

    assert spread(fine.astype(np.int64)) <= spread(coarse) + 1e-9


def test_values_of_few_flows_are_unknown() -> None:
    records, _ = records_of(FOUR, 2000, np.random.default_rng(2))
    records["destination_port"][:10] = 9999
    choice = choose(records)
    assert choice is not None
    assert choice.best.combination == ("destination_port",)
    assert set(type_of_flows(choice.best, len(records))[:10]) == {UNKNOWN}
    assert choice.best.unknown_share == pytest.approx(10 / 2000)


def test_what_is_not_predicted_has_the_spread_of_all_flows() -> None:
    """Flows of no type are alike here; as a type they would have no spread."""
    records = np.zeros(300, RECORD)
    records["bytes"] = np.repeat([1000, 100_000], [200, 100])
    records["destination_port"] = np.concatenate((np.full(200, 5000), np.arange(6000, 6100)))
    choice = choose(records)
    assert choice is not None
    (one,) = [one for one in choice.candidates if one.combination == ("destination_port",)]
    share = np.where(choice.points < 100_000, 200 / 300, 1.0)
    everything = float(np.mean(np.sqrt(share * (1 - share))))
    assert one.unknown_share == pytest.approx(100 / 300)
    assert one.spread == pytest.approx(everything * 100 / 300)


@pytest.mark.parametrize("port", [5001, None])
def test_a_host_that_lies_cannot_move_the_others_flows(port: int | None) -> None:
    """One of eleven hosts reports fifty times as many flows as all others together, on one port or on all of them."""
    rng = np.random.default_rng(3)
    honest, truth = records_of(FOUR, 2000, rng)
    lies, _ = records_of(FOUR, 100_000, rng)
    lies["host"] = lies["source"] = 10
    lies["bytes"] = rng.choice([1, 10**9], len(lies))
    if port is not None:
        lies["destination_port"] = port
    both = np.concatenate((lies, honest))
    kept = both[fair_share(both["host"].astype(np.int64))]
    assert np.count_nonzero(kept["host"] == 10) <= 2 * 2000 / 10 * 1.2
    choice = choose(kept, DEFAULT[-1])
    assert choice is not None
    assert choice.best.combination == ("destination_port",)
    theirs = kept["host"] != 10
    found = type_of_flows(choice.best, len(kept))[theirs]
    assert agreement(truth, found) >= 0.95
    weight = choice.best.weight[kept["host"][choice.best.values.flows] == 10].sum()
    assert weight / choice.best.weight.sum() <= 2.5 / 11


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), flows=st.integers(1, 300), least=st.integers(1, 20))
def test_combinations_are_all_subsets_and_their_values_those_of_enough_flows(
    seed: int, flows: int, least: int
) -> None:
    rng = np.random.default_rng(seed)
    records = np.zeros(flows, RECORD)
    for name in FEATURES:
        records[name] = rng.integers(0, 4, flows)
    found = {one.combination: one for one in combinations(records, least)}
    assert set(found) == {
        subset for size in (1, 2, 3, 4) for subset in itertools.combinations(FEATURES, size)
    }
    for combination, values in found.items():
        rows = [tuple(int(record[name]) for name in combination) for record in records]
        enough = {row for row in rows if rows.count(row) >= least}
        assert set(values.flows.tolist()) == {index for index, row in enumerate(rows) if row in enough}
        assert [rows[index] for index in values.example] == [
            rows[values.flows[np.flatnonzero(values.value == value)[0]]] for value in range(values.count)
        ]
        assert {rows[index] for index in values.example} == enough
        assert all(
            rows[index] == rows[values.example[value]]
            for index, value in zip(values.flows, values.value, strict=True)
        )


def test_in_a_value_no_host_weighs_more_than_twice_the_median_one() -> None:
    records = np.zeros(1000, RECORD)
    records["host"] = [0] * 900 + [1] * 60 + [2] * 40
    records["destination_port"] = 80
    (values,) = [one for one in combinations(records, 1) if one.combination == ("destination_port",)]
    weight = fair_weights(values, records["host"].astype(np.int64))
    assert [weight[records["host"] == host].sum() for host in range(3)] == pytest.approx([120, 60, 40])


def test_distances_and_their_noise_are_what_they_are_defined_as() -> None:
    rng = np.random.default_rng(0)
    sizes = rng.lognormal(8, 2, 600)
    at = points(sizes)
    below = np.searchsorted(at, sizes)
    value = np.repeat([0, 1, 2], 200)
    described = describe(value, below, np.ones(600), count=3, width=len(at))
    apart, noise = distances(described, described)
    for one, other in itertools.product(range(3), repeat=2):
        first, second = ([np.mean(sizes[value == v] <= s * (1 + 1e-12)) for s in at] for v in (one, other))
        assert apart[one, other] == pytest.approx(
            np.sqrt(np.mean((np.array(first) - np.array(second)) ** 2)), abs=1e-7
        )
        both = (np.array(first) + np.array(second)) / 2
        assert noise[one, other] == pytest.approx(np.sqrt(np.mean(both * (1 - both)) * 2 / 200))


def test_noise_is_the_root_mean_square_distance_of_samples_of_one_distribution() -> None:
    rng = np.random.default_rng(4)
    sizes = rng.lognormal(8, 2, 100_000)
    at = points(sizes)
    below = np.minimum(np.searchsorted(at, sizes), len(at) - 1)
    described = describe(
        np.repeat(np.arange(1000), 100), below, np.ones(len(sizes)), count=1000, width=len(at)
    )
    apart, noise = distances(described, described)
    others = ~np.eye(1000, dtype=bool)
    assert np.sqrt(np.mean(apart[others] ** 2)) == pytest.approx(
        np.sqrt(np.mean(noise[others] ** 2)), rel=0.05
    )


def test_what_is_found_is_explained() -> None:
    records, _ = records_of(FOUR, 2000, np.random.default_rng(0))
    found = flow_types(records, addresses(), DEFAULT, load=0.6)
    assert found is not None
    assert "destination port" in found.explanation
    assert len(found.explanation.splitlines()) == 5
    assert all(f"500{number}" in found.explanation for number in range(4))
    assert found.slowdown_ratio <= 1
    assert len(found.tried) == 15


def test_the_first_threshold_that_is_named_is_one_that_was_lowered() -> None:
    records = np.zeros(180, RECORD)
    records["bytes"] = np.repeat([10_000, 50_000, 5_000_000], 60)
    found = flow_types(records, ["10.128.1.1"], (10_000, 100_000, 1_000_000), load=0.6, delta=0.0)
    assert found is not None
    first, second, _ = found.types[0].thresholds_bytes
    assert first == 10_000
    assert 50_000 <= second < 100_000
    assert f"2 of 3 thresholds lowered, the first to {second / 1000:.3g} kB" in found.explanation


def test_nothing_is_found_in_nothing() -> None:
    assert flow_types(np.zeros(0, RECORD), [], DEFAULT, load=0.6) is None
    records, _ = records_of(FOUR, 5, np.random.default_rng(0))
    found = flow_types(records, addresses(), DEFAULT, load=0.6)
    assert found is not None
    assert (found.types, found.features) == ((), ())
