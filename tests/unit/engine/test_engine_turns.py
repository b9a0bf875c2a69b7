"""Whose turn it is among labs and simulations, for any queue."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine.executors import Order
from engine.turns import Kind, cores_each, turn

KINDS: st.SearchStrategy[Kind] = st.sampled_from(["lab", "simulation"])
SLOTS = st.fixed_dictionaries({"lab": st.integers(0, 4), "simulation": st.integers(0, 64)})


@given(st.lists(KINDS, max_size=8), st.sets(KINDS), SLOTS)
def test_nothing_begins_beside_the_other_kind_or_without_a_slot(
    backlog: list[Kind], active: set[Kind], slots: dict[Kind, int]
) -> None:
    kind = turn(backlog, active, slots)
    if kind is not None:
        assert active <= {kind}
        assert slots[kind] > 0
        assert kind in backlog


@given(st.lists(KINDS, min_size=1, max_size=8), SLOTS)
def test_the_first_that_can_run_is_next_once_nothing_is_at_work(
    backlog: list[Kind], slots: dict[Kind, int]
) -> None:
    runnable = [kind for kind in backlog if slots[kind]]
    assert turn(backlog, (), slots) == (runnable[0] if runnable else None)


def test_what_came_later_waits_for_the_end_of_what_is_at_work() -> None:
    slots: dict[Kind, int] = {"lab": 1, "simulation": 4}
    assert turn(["simulation", "lab"], {"simulation"}, slots) == "simulation"
    assert turn(["lab", "simulation"], {"simulation"}, slots) is None


@given(st.integers(1, 256), st.integers(1, 256), st.integers(1, 256))
def test_workers_have_all_cores_between_them_and_no_more(slots: int, waiting: int, most: int) -> None:
    cores = cores_each(slots, waiting, most)
    assert cores <= most
    assert cores_each(slots, 1, slots) == slots, "of a machine with a single simulation"
    workers = min(waiting, slots // cores)
    assert workers >= 1
    assert workers * cores <= slots
    assert waiting < slots or workers == slots


def test_a_worker_that_simulates_is_started_without_a_lab_and_without_the_token() -> None:
    order = Order("w", "http://127.0.0.1:1", "secret", labs=2, simulations=True, cores=3)
    assert "--simulations" in order.arguments()
    assert not {"--labs", "secret"} & set(order.arguments())
    assert "--labs-only" in Order("w", "http://127.0.0.1:1").arguments()
