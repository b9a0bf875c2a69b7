"""The mode monitor against a simulated leaf: packets, a meter, and a switch that copies while the leaf is OFF."""

from __future__ import annotations

import heapq
import itertools
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.modes.leaf_modes import LeafModes
from controller.modes.monitor import (
    LONGEST_HOLD,
    READ_LOST_S,
    RESOLUTION_S,
    SHORTEST_SAMPLING_S,
    ModeChange,
    ModeMonitor,
)
from controller.schemes import loader
from controller.schemes.scheme import ModeRule

LEAF = 0x11
PACKET_TIME_S = 0.004
RULE = ModeRule(sampling_packet_times=6.25)
T = 0.025
"""Sampling time of RULE at PACKET_TIME_S, in seconds."""


@dataclass
class Leaf:
    """Runs a monitor over packets at given times; ``latency_s`` is one way between switch and controller."""

    packets: list[float]
    latency_s: float = 0.001
    rule: ModeRule = RULE
    changes: list[ModeChange] = field(default_factory=list)
    reads: int = 0

    def run(self, until: float) -> list[ModeChange]:
        monitor = ModeMonitor(self.rule, PACKET_TIME_S)
        monitor.leaf_added(LEAF, 0.0)
        order = itertools.count()
        agenda: list[tuple[float, int, str, int]] = []

        def at(when: float, what: str, value: int = 0) -> None:
            heapq.heappush(agenda, (when, next(order), what, value))

        def changed(change: ModeChange | None, now: float) -> None:
            if change is not None:
                self.changes.append(change)
                at(now + self.latency_s, "copying" if change.mode == "off" else "quiet")

        for when in self.packets:
            at(when, "packet")
        copying, count, now = True, 0, 0.0
        while agenda or monitor.deadline() is not None:
            deadline = monitor.deadline()
            if deadline is not None and (not agenda or deadline <= agenda[0][0]):
                now = max(now, deadline)
                if now > until:
                    break
                for _ in monitor.due(now):
                    self.reads += 1
                    at(now + self.latency_s, "read")
                continue
            now, _, what, value = heapq.heappop(agenda)
            if now > until:
                break
            if what == "packet":
                count += 1
                if copying:
                    at(now + self.latency_s, "copy")
            elif what == "copy":
                changed(monitor.first_packet(LEAF, now), now)
            elif what == "read":
                at(now + self.latency_s, "sample", count)
            elif what == "sample":
                changed(monitor.sample(LEAF, value, now), now)
            else:
                copying = what == "copying"
        return self.changes


def times(gaps: list[float]) -> list[float]:
    return [1.0, *(1.0 + total for total in itertools.accumulate(gaps))]


@given(st.lists(st.floats(0.0001, T * 0.999), max_size=80), st.floats(0.0001, 0.003))
def test_a_trickle_with_gaps_below_t_never_turns_a_leaf_off(gaps: list[float], latency: float) -> None:
    packets = times(gaps)
    changes = Leaf(packets, latency).run(until=packets[-1] + latency)
    assert [change.mode for change in changes] == ["on"]
    assert changes[0].at == pytest.approx(1.0 + latency)


@given(st.lists(st.floats(0.0001, T * 0.999), max_size=40), st.floats(0.0001, 0.003))
def test_off_comes_between_t_and_t_plus_resolution_after_the_last_packet(
    gaps: list[float], latency: float
) -> None:
    packets = times(gaps)
    changes = Leaf(packets, latency).run(until=packets[-1] + 1.0)
    assert [change.mode for change in changes] == ["on", "off"]
    assert changes[-1].cause == "quiet"
    silence = changes[-1].at - packets[-1]
    assert T < silence <= T + RESOLUTION_S + 4 * latency + 1e-9


@given(st.floats(0.0001, LONGEST_HOLD * T - RESOLUTION_S), st.floats(0.0001, 0.003))
def test_any_steady_trickle_up_to_four_t_costs_at_most_five_changes(gap: float, latency: float) -> None:
    packets = times([gap] * 60)
    changes = Leaf(packets, latency).run(until=packets[-1] + latency)
    assert len(changes) <= 5


@settings(max_examples=60)
@given(st.lists(st.floats(0.0001, 10 * T), min_size=1, max_size=80), st.floats(0.0001, 0.003))
def test_no_traffic_turns_a_leaf_off_four_times_without_a_long_gap(gaps: list[float], latency: float) -> None:
    packets = times(gaps)
    changes = Leaf(packets, latency).run(until=packets[-1] + 1.0)
    offs = [change.at for change in changes if change.mode == "off"]
    slack = RESOLUTION_S + 6 * latency
    for first, last in zip(offs, offs[3:], strict=False):
        # gaps in which the leaf was OFF, from the first of four OFFs to the last one
        around = [
            later - earlier
            for earlier, later in zip(packets, [*packets[1:], float("inf")], strict=True)
            if earlier < last and later > first
        ]
        assert max(around) >= LONGEST_HOLD * T - slack


def test_flows_far_apart_are_held_no_longer_than_t() -> None:
    packets = times([LONGEST_HOLD * T + 0.05] * 10)
    changes = Leaf(packets).run(until=packets[-1] + 1.0)
    assert [change.mode for change in changes] == ["on", "off"] * len(packets)
    for packet, off in zip(packets, changes[1::2], strict=True):
        assert off.at - packet <= T + RESOLUTION_S + 0.005


def test_quiet_intervals_multiply_the_hold() -> None:
    changes = Leaf([1.0], rule=ModeRule(sampling_packet_times=6.25, quiet_intervals=3)).run(until=5.0)
    assert 3 * T < changes[-1].at - 1.0 <= 3 * T + RESOLUTION_S + 0.005


def test_without_doubling_every_gap_above_t_turns_the_leaf_off() -> None:
    """CAPS's Algorithm 1: a timer of T decides, whatever was before."""
    packets = times([2 * T] * 10)
    rule = ModeRule(sampling_packet_times=6.25, longest_hold=1)
    changes = Leaf(packets, rule=rule).run(until=packets[-1] + 1.0)
    assert [change.mode for change in changes] == ["on", "off"] * len(packets)
    held = Leaf(packets).run(until=packets[-1] + 1.0)
    assert len(held) < len(changes), "ours holds the leaf ON over such gaps"


def test_an_idle_leaf_is_not_read() -> None:
    leaf = Leaf([1.0])
    leaf.run(until=100.0)
    # while ON: at most every RESOLUTION_S for T, and once more after OFF
    assert leaf.reads <= T / RESOLUTION_S + 4
    monitor = ModeMonitor(RULE, PACKET_TIME_S)
    monitor.leaf_added(LEAF, 0.0)
    assert monitor.deadline() is None
    assert monitor.due(1e9) == ()


def test_a_packet_between_off_and_the_copy_rule_turns_the_leaf_on_by_the_meter() -> None:
    monitor = ModeMonitor(RULE, PACKET_TIME_S)
    monitor.leaf_added(LEAF, 0.0)
    assert monitor.first_packet(LEAF, 1.0) == ModeChange(LEAF, "on", 1.0, "first-packet")
    now = 1.0
    change = None
    while change is None:
        deadline = monitor.deadline()
        assert deadline is not None
        now = deadline
        assert monitor.due(now) == (LEAF,)
        change = monitor.sample(LEAF, 1, now)
    assert change.mode == "off"
    deadline = monitor.deadline()
    assert deadline is not None
    assert monitor.due(deadline) == (LEAF,)
    assert monitor.sample(LEAF, 2, deadline) == ModeChange(LEAF, "on", deadline, "meter")


def test_a_lost_read_is_asked_again_and_only_then() -> None:
    monitor = ModeMonitor(RULE, PACKET_TIME_S)
    monitor.leaf_added(LEAF, 0.0)
    monitor.first_packet(LEAF, 1.0)
    asked = monitor.deadline()
    assert asked is not None
    assert monitor.due(asked) == (LEAF,)
    assert monitor.due(asked + READ_LOST_S / 2) == ()
    assert monitor.due(asked + READ_LOST_S) == (LEAF,)


def test_a_restarted_meter_counts_as_traffic() -> None:
    monitor = ModeMonitor(RULE, PACKET_TIME_S)
    monitor.leaf_added(LEAF, 0.0)
    monitor.first_packet(LEAF, 1.0)
    assert monitor.sample(LEAF, 500, 1.008) is None
    monitor.due(1.033)
    assert monitor.sample(LEAF, 3, 1.034) is None
    assert monitor.mode(LEAF) == "on"


def test_leaves_are_apart_and_unknown_ones_change_nothing() -> None:
    monitor = ModeMonitor(RULE, PACKET_TIME_S)
    monitor.leaf_added(1, 0.0)
    monitor.leaf_added(2, 0.5)
    monitor.first_packet(1, 1.0)
    monitor.leaf_added(1, 2.0)
    assert (monitor.mode(1), monitor.since(1), monitor.mode(2), monitor.since(2)) == ("on", 1.0, "off", 0.5)
    assert monitor.first_packet(3, 1.0) is None
    assert monitor.sample(3, 5, 1.0) is None
    monitor.leaf_removed(1)
    monitor.leaf_removed(3)
    assert monitor.leaves() == (2,)
    assert monitor.deadline() is None
    with pytest.raises(KeyError):
        monitor.mode(1)


def test_t_has_a_floor_and_a_rule_must_make_sense() -> None:
    assert ModeMonitor(RULE, PACKET_TIME_S).sampling_time_s == pytest.approx(T)
    assert ModeMonitor(RULE, 1e-6).sampling_time_s == SHORTEST_SAMPLING_S
    for rule, packet_time in ((RULE, 0.0), (ModeRule(sampling_packet_times=0), 1.0), (ModeRule(1.0, 0), 1.0)):
        with pytest.raises(ValueError, match="mode rule"):
            ModeMonitor(rule, packet_time)


def test_a_rule_that_cannot_be_is_not_taken_for_the_one_in_force() -> None:
    modes = LeafModes()
    wrong = replace(loader.load("caps"), mode=ModeRule(sampling_packet_times=0))
    for _ in range(2):
        with pytest.raises(ValueError, match="mode rule"):
            modes.set_scheme(wrong, PACKET_TIME_S)
