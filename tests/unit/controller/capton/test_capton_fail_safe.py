"""Events about flows that went unscheduled: each flow counts once, whatever becomes of its agent's channel."""

from __future__ import annotations

from controller.capton.fail_safe import COUNTER, CaptonFailSafe, FailSafes


def test_a_channel_that_ends_and_begins_again_counts_no_flow_twice() -> None:
    safes = FailSafes()
    assert safes.changes({"h1": (7, {COUNTER: 3.0})}, 1.0) == [CaptonFailSafe(1.0, "h1", 3)]
    assert safes.changes({"h1": (7, {})}, 2.0) == []  # it has not counted by its new channel yet
    assert safes.changes({"h1": (7, {COUNTER: 3.0})}, 3.0) == []
    assert safes.changes({"h1": (7, {COUNTER: 5.0})}, 4.0) == [CaptonFailSafe(4.0, "h1", 2)]


def test_an_agent_that_began_anew_counts_from_0() -> None:
    safes = FailSafes()
    assert safes.changes({"h1": (7, {COUNTER: 3.0})}, 1.0) == [CaptonFailSafe(1.0, "h1", 3)]
    assert safes.changes({"h1": (8, {})}, 2.0) == []
    assert safes.changes({"h1": (8, {COUNTER: 2.0})}, 3.0) == [CaptonFailSafe(3.0, "h1", 2)]
