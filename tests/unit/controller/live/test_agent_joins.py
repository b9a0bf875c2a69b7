"""An agent that connects without end makes few events."""

from __future__ import annotations

from controller.live.agent_joins import EVERY_S, MOST_JOINS, AgentJoins


def test_one_that_joins_again_and_again_makes_an_event_now_and_then_and_others_all_of_theirs() -> None:
    joins = AgentJoins()
    steps = 1000
    events = sum(joins.joined("h1", step * EVERY_S / 10) for step in range(steps))
    assert MOST_JOINS + steps / 10 - 1 <= events <= MOST_JOINS + steps / 10
    assert all(joins.joined(f"h{number}", 0.0) for number in range(2, 100))
    joins.left("h1")
    assert joins.joined("h1", steps * EVERY_S / 10)
