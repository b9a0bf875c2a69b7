"""Two experiments beside each other, by the summaries that were kept of them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.api_world import World

EXPERIMENT = {"name": "demo", "seed": 1, "spec": {"title": "a spec"}}


def summary(mean: float, **more: Any) -> dict[str, Any]:
    block = {"n": 108, "afct_ms": mean, "afct_ci_ms": [mean - 1, mean + 1], "p99_ms": 9.0, "p99_shown": False}
    return {"schemes": {"caps": {"cpu_limited": False, "short": block, "long": {"goodput_mbps": 2.0}} | more}}


def finished(world: World, summary: dict[str, Any] | None) -> int:
    number: int = world.ask("POST", "/experiments/recorded", 201, json=EXPERIMENT)["id"]
    world.ask("PATCH", f"/experiments/{number}", json={"state": "finished", "summary": summary})
    return number


def test_two_experiments_are_compared_by_what_both_have(world: World) -> None:
    one = finished(world, summary(50.0, disturbed=True))
    other = finished(world, summary(40.0, cpu_limited=True))
    got = world.get(f"/experiments/{one}/compare?with={other}")
    assert [head["id"] for head in got["experiments"]] == [one, other]
    (scheme,) = got["schemes"]
    assert (scheme["label"], scheme["cpu_limited"]) == ("caps", [False, True])
    assert scheme["disturbed"] == [True, False]
    short, long = scheme["measures"]
    assert short["name"] == "short.afct_ms"
    assert (short["title"], short["unit"]) == ("Short flows: mean completion time", "ms")
    assert (short["better"], long["better"]) == ("less", "more")
    assert short["a"] == {"mean": 50.0, "low": 49.0, "high": 51.0, "n": 108}
    assert short["ratio"] == 0.8
    assert (long["name"], long["unit"], long["a"]["low"]) == ("long.goodput_mbps", "Mbit/s", None)
    running = world.ask("POST", "/experiments/recorded", 201, json=EXPERIMENT)["id"]
    assert "has no summary" in world.get(f"/experiments/{one}/compare?with={running}", 409)["detail"]
    assert world.get(f"/experiments/{one}/compare", 422)["field"] == "query.with"
    world.get(f"/experiments/{one}/compare?with=999999", 404)


@pytest.mark.parametrize(
    "reported",
    [
        {}, {"schemes": 3}, {"schemes": {"caps": 3}}, {"schemes": {"caps": {"short": [1]}}},
        {"schemes": {"caps": {"short": {"afct_ms": "x", "n": 3}}}},
        {"schemes": {"caps": {"short": {"afct_ms": 0, "afct_ci_ms": [1], "n": "many"}}}},
    ],
)  # fmt: skip
def test_summaries_of_another_form_are_no_error(world: World, reported: dict[str, Any]) -> None:
    """What clients keep there is theirs to say."""
    one, other = finished(world, reported), finished(world, summary(40.0))
    for path in (f"/experiments/{one}/compare?with={other}", f"/experiments/{other}/compare?with={one}"):
        world.get(path)
