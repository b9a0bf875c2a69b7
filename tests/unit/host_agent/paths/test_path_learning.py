"""Policies that learn from what came back: REPS's ring of entropy values, PLB's rounds, each rule by itself."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from host_agent.paths import CompiledPathPolicy
from host_agent.paths.base import Report, Route
from protocol.underlay import TrafficClass
from tests.unit.compiled_paths import compiled


@dataclass(frozen=True)
class Inner:
    id: int
    hash: int


FLOW = Inner(1, 0xBEEF1234)
WAY = Route("b", TrafficClass.SHORT)
EXPLORE = 20
RING = 8
"""Of REPS: values that a flow keeps."""
LEAST_TIMEOUT_S = 0.2
"""Of PLB."""


def reps(seed: int = 1) -> CompiledPathPolicy:
    return compiled("reps", seed, congested_s=0.05, explore_packets=EXPLORE, freeze_s=1.0)


def plb(rounds: int = 4, idle_rounds: int = 2) -> CompiledPathPolicy:
    return compiled(
        "plb",
        congested_s=0.05,
        congested_share=0.5,
        rounds=rounds,
        idle_rounds=idle_rounds,
        suspend_s=5.0,
    )


def report(entropy: int, delay: float = 0.0, sent: float = 0.0, flow: int = 1) -> Report:
    return Report(flow, "b", entropy, 3, delay, sent)


def explored(policy: CompiledPathPolicy) -> list[int]:
    """Return the entropy values of the flow's first packets, all drawn at random."""
    return policy.entropies(FLOW, WAY, 1000, EXPLORE, 1000, 0.0)


@given(good=st.lists(st.booleans(), min_size=EXPLORE, max_size=EXPLORE), seed=st.integers(0, 2**32 - 1))
def test_reps_uses_each_value_that_came_back_unharmed_once_and_oldest_first(
    good: list[bool], seed: int
) -> None:
    policy = reps(seed)
    first = explored(policy)
    for value, unharmed in zip(first, good, strict=True):
        policy.reported(report(value, 0.0 if unharmed else 0.06), 0.1)
    kept = [value for value, unharmed in zip(first, good, strict=True) if unharmed][-RING:]
    again = policy.entropies(FLOW, WAY, 1000, RING + 4, 1000, 0.2)
    assert again[: len(kept)] == kept
    fresh = reps(seed)
    explored(fresh)
    drawn = fresh.entropies(FLOW, WAY, 1000, RING + 4, 1000, 0.2)
    assert again[len(kept) :] == drawn[: RING + 4 - len(kept)], "used up: what follows is drawn"


def test_reps_knows_nothing_of_other_flows() -> None:
    policy = reps()
    first = explored(policy)
    policy.reported(report(first[0], flow=2), 0.1)
    assert policy.entropy(FLOW, WAY, 1000, 0.2) not in first


def test_reps_freezes_to_what_is_known_good_and_thaws_by_exploring() -> None:
    policy = reps()
    first = explored(policy)
    good = first[:3]
    for value in good:
        policy.reported(report(value), 0.1)
    policy.lost(1, "b", first[9], 0.2)
    frozen = policy.entropies(FLOW, WAY, 1000, 30, 1000, 0.3)
    assert set(frozen) == set(good), "nothing new is drawn, and all that is known good is used"
    assert min(frozen.count(value) for value in good) >= 9
    policy.reported(report(good[0]), 1.5)
    thawed = policy.entropies(FLOW, WAY, 1000, EXPLORE, 1000, 1.6)
    assert not set(thawed) & set(good)


def test_reps_does_not_freeze_while_it_explores_or_knows_nothing() -> None:
    policy = reps()
    policy.entropy(FLOW, WAY, 1000, 0.0)
    policy.lost(1, "b", 20000, 0.1)
    assert len(set(policy.entropies(FLOW, WAY, 1000, 200, 1000, 0.2))) > 190


@settings(max_examples=20)
@given(paths=st.integers(4, 16), dead=st.integers(0, 3), seed=st.integers(0, 999))
def test_reps_leaves_a_black_hole(paths: int, dead: int, seed: int) -> None:
    """Values hash to paths; one path returns nothing. Of a window of 8 packets hardly any take it after a while."""
    policy = reps(seed)
    window: list[int] = [policy.entropy(FLOW, WAY, 1000, 0.0) for _ in range(8)]
    sent = []
    for turn in range(400):
        now = turn * 0.01
        value = window.pop(0)
        if value % paths == dead:
            if turn > 50:
                policy.lost(1, "b", value, now)
        else:
            policy.reported(report(value, 0.0, now - 0.005), now)
        window.append(policy.entropy(FLOW, WAY, 1000, now))
        sent.append(window[-1])
    into = sum(value % paths == dead for value in sent[100:]) / 300
    assert into < 0.5 / paths, "sprayed, it would be one in each number of paths"


def drive(
    policy: CompiledPathPolicy, rounds: int, delay: float, began: float = 0.0, idle: bool = False
) -> list[int]:
    """Send a packet each 10 ms, always two on their way (idle: one); return the values used.

    Each round trip takes 20 ms (idle: 5 ms).
    """
    used = []
    waiting: list[tuple[int, float]] = []
    for turn in range(rounds):
        now = began + turn * 0.01
        used.append(policy.entropy(FLOW, WAY, 1000, now))
        waiting.append((used[-1], now))
        if idle:
            value, left = waiting.pop()
            policy.reported(report(value, delay, left), now + 0.005)
        elif len(waiting) > 2:
            value, left = waiting.pop(0)
            policy.reported(report(value, delay, left), now)
    return used


def test_plb_stays_while_its_path_is_free() -> None:
    assert len(set(drive(plb(), 200, 0.01))) == 1


def test_plb_leaves_a_path_that_was_congested_for_so_many_rounds() -> None:
    used = drive(plb(rounds=4), 40, 0.08)
    changes = [place for place in range(1, len(used)) if used[place] != used[place - 1]]
    assert changes
    assert changes[0] >= 4 * 2, "four rounds of 20 ms, a packet each 10 ms"
    assert changes[0] <= 4 * 3 + 3
    assert all(other - one >= 8 for one, other in pairwise(changes))


def test_plb_leaves_sooner_when_nothing_is_on_its_way() -> None:
    used = drive(plb(rounds=12, idle_rounds=2), 10, 0.08, idle=True)
    first_change = next(place for place in range(1, 10) if used[place] != used[0])
    assert first_change == 2
    busy = drive(plb(rounds=12, idle_rounds=2), 10, 0.08)
    assert len(set(busy)) == 1


def test_plb_forgives_a_congested_round_before_a_free_one() -> None:
    policy = plb(rounds=4, idle_rounds=4)
    used = []
    for turn in range(60):
        used += drive(policy, 1, 0.08 if turn % 4 else 0.0, began=turn * 0.1, idle=True)
    assert len(set(used)) == 1


def test_plb_leaves_a_black_hole_and_then_lets_congestion_be() -> None:
    policy = plb(rounds=2, idle_rounds=2)
    first = policy.entropy(FLOW, WAY, 1000, 0.0)
    assert policy.entropy(FLOW, WAY, 1000, LEAST_TIMEOUT_S - 0.01) == first
    second = policy.entropy(FLOW, WAY, 1000, LEAST_TIMEOUT_S + 0.01)
    assert second != first
    assert set(drive(policy, 100, 0.08, began=0.3)) == {second}, "suspended for 5 s or more"
    policy.reported(report(second, 0.0, 1.3), 1.31)  # all has arrived
    assert len(set(drive(policy, 100, 0.08, began=20.0))) > 1
    later = policy.entropy(FLOW, WAY, 1000, 40.0)
    assert policy.entropy(FLOW, WAY, 1000, 41.0) != later, "silence moves it all the same"
