"""What agents of a leaf know of its paths, shared between them: the rule by itself, and over real sockets."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from capstan_native import path_loads_of_others
from hypothesis import given
from hypothesis import strategies as st

from controller.agents import path_loads
from controller.agents.path_loads import NOTHING, PathLoads
from protocol.control import PathLoad
from protocol.frames import encode
from protocol.limits import FRAME_BYTES
from protocol.policy import ClassPolicy, PathSettings, Policy
from tests.unit.agents_channel import RawAgent, served

hosts = st.sampled_from(["h1", "h2", "h3", "h4"])
stamps = st.sampled_from(["1", "2", "4095"])
loads = st.builds(
    PathLoad,
    st.dictionaries(stamps, st.integers(0, 5), max_size=3),
    st.dictionaries(st.sampled_from(["x", "y"]), st.dictionaries(stamps, st.floats(0.001, 9.0), max_size=3)),
)


def together(others: list[PathLoad]) -> PathLoad:
    """Combine all reports anew: sums of flows, longest delays; nothing that is 0 or empty."""
    flows = {
        stamp: sum(one.short_flows.get(stamp, 0) for one in others)
        for one in others
        for stamp in one.short_flows
    }
    delays: dict[str, dict[str, float]] = {}
    for one in others:
        for leaf, known in one.delays_s.items():
            for stamp, delay in known.items():
                delays.setdefault(leaf, {})[stamp] = max(delay, delays.get(leaf, {}).get(stamp, 0.0))
    return PathLoad({stamp: count for stamp, count in flows.items() if count}, delays)


@pytest.mark.slow
@given(
    leaves=st.dictionaries(hosts, st.sampled_from(["a", "b", ""]), min_size=1),
    puts=st.lists(st.tuples(hosts, loads), max_size=20),
)
def test_each_host_knows_what_the_others_at_its_leaf_have_together(
    leaves: dict[str, str], puts: list[tuple[str, PathLoad]]
) -> None:
    shared = PathLoads()
    newest: dict[str, PathLoad] = {}
    reported: dict[str, PathLoad] = dict.fromkeys(leaves, NOTHING)
    for host, load in puts:
        shared.put(host, load)
        newest[host] = load
        changed = dict(shared.changes(leaves))
        reported |= changed
        for one, leaf in leaves.items():
            if one not in newest or not leaf:
                assert one not in changed
                continue
            others = [other for other in leaves if other != one and leaves[other] == leaf and other in newest]
            assert reported[one] == together([newest[other] for other in others])
        assert dict(shared.changes(leaves)) == {}, "no leaf gets the same twice"


def test_what_is_no_path_no_number_of_flows_or_no_delay_is_left_out() -> None:
    shared = PathLoads()
    flows = {"0": 1, "4096": 1, "x": 1, "": 1, "²": 1, "9" * 5000: 1, "7": -3, "6": 10**30, "8": 2}
    delays = {"x": {"0": 1.0, "9" * 5000: 1.0, "7": -1.0, "8": math.inf, "9": 601.0, "10": 0.5}}
    shared.put("h1", PathLoad(flows, delays))
    shared.put("h2", NOTHING)
    assert dict(shared.changes({"h1": "a", "h2": "a"})) == {"h2": PathLoad({"8": 2}, {"x": {"10": 0.5}})}


def test_a_host_that_is_gone_has_nothing_and_gets_all_when_it_is_back() -> None:
    shared = PathLoads()
    shared.put("h1", PathLoad({"1": 2}, {"x": {"5": 0.5}}))
    shared.put("h2", PathLoad({"1": 3}, {}))
    one, two = PathLoad({"1": 3}, {}), PathLoad({"1": 2}, {"x": {"5": 0.5}})
    assert dict(shared.changes({"h1": "a", "h2": "a"})) == {"h1": one, "h2": two}
    shared.forget("h2")
    assert dict(shared.changes({"h1": "a"})) == {"h1": NOTHING}
    shared.put("h2", NOTHING)
    assert dict(shared.changes({"h1": "a", "h2": "a"})) == {"h2": two}
    shared.clear()
    assert dict(shared.changes({"h1": "a", "h2": "a"})) == {}


def test_agents_of_a_leaf_get_each_others_load_and_no_others(tmp_path: Path) -> None:
    with served(tmp_path) as at:
        server = at.server
        server.set_policy(Policy(1, "tr", long=ClassPolicy(PathSettings("tr"))))
        for number, leaf in ((1, "a"), (2, "a"), (3, "b")):
            server.set_leaf(f"10.0.1.{number}", leaf)
        one, two, three = (RawAgent.joined(at.socket_path, number) for number in (1, 2, 3))
        mine = PathLoad({"5": 2}, {"x": {"6": 0.25}})
        two.send(NOTHING)
        three.send(PathLoad({"5": 9}, {"x": {"6": 9.0}}))
        one.send(mine)
        assert two.next(PathLoad) == mine
        two.send(PathLoad({"6": 1}, {}))
        assert one.next(PathLoad) == PathLoad({"6": 1}, {})
        one.close()
        assert two.next(PathLoad) == NOTHING
        for agent in (two, three):
            agent.close()


def test_a_report_has_a_number_of_delays_and_leaves_have_short_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(path_loads, "MOST_DELAYS", 5)
    shared = PathLoads()
    of_leaf = {str(stamp): 0.5 for stamp in range(1, 4)}
    shared.put("h1", PathLoad({}, {"x" * 17: of_leaf, "a": of_leaf, "b": of_leaf, "c": of_leaf}))
    shared.put("h2", NOTHING)
    wanted = {"a": of_leaf, "b": {"1": 0.5, "2": 0.5}}
    assert dict(shared.changes({"h1": "a", "h2": "a"})) == {"h2": PathLoad({}, wanted)}


def invented(host: int, paths: int) -> PathLoad:
    """Return a report of so many paths that no other host's report has."""
    whole, rest = divmod(paths, 4095)
    sizes = [4095] * whole + [rest]
    return PathLoad(
        {},
        {
            f"{host:08x}{leaf:08x}": {str(s): 0.123456789 for s in range(1, n + 1)}
            for leaf, n in enumerate(sizes)
        },
    )


@pytest.mark.slow
def test_agents_that_invent_paths_neither_fill_a_message_nor_push_out_others() -> None:
    """Together 10 reports that are each within their bound have 655 360 delays, which no frame holds."""
    shared, honest = PathLoads(), PathLoad({"5": 1}, {"b": {"6": 0.25}})
    for host in range(10):
        shared.put(f"x{host}", invented(host, path_loads.MOST_DELAYS))
    shared.put("h1", honest)
    shared.put("h2", NOTHING)
    shared.put("h3", PathLoad({"7": 1}, {}))
    shared.put("h4", NOTHING)
    leaves = dict.fromkeys([f"x{host}" for host in range(10)] + ["h1", "h2"], "a") | {"h3": "c", "h4": "c"}
    changed = dict(shared.changes(leaves))
    assert sum(len(known) for load in changed.values() for known in load.delays_s.values()) <= 1 << 20
    assert max(len(encode(load)) for load in changed.values()) < FRAME_BYTES / 3
    assert changed["h2"].delays_s["b"] == {"6": 0.25}, "an agent that invents paths has a share, no more"
    assert changed["h2"].short_flows == {"5": 1}
    assert changed["h4"] == PathLoad({"7": 1}, {})


def delays(load: PathLoad) -> int:
    return sum(len(known) for known in load.delays_s.values())


def test_all_reports_together_have_a_bound_and_each_host_a_share_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(path_loads, "MOST_STORED", 120)
    shared, honest = PathLoads(), PathLoad({}, {"b": {"6": 0.25}})
    shared.put("h1", honest)
    shared.put("reader", NOTHING)
    liars = [f"x{host}" for host in range(9)]
    for host, name in enumerate(liars):
        shared.put(name, invented(host, 60))
    received = [dict(shared.changes({"reader": "a", name: "a"}))["reader"] for name in ("h1", *liars)]
    assert received[0] == honest
    assert sum(map(delays, received)) <= 120
    assert min(map(delays, received[1:])) >= 120 // 11
    shared.forget("x0")
    shared.put("x1", invented(1, 60))
    assert delays(dict(shared.changes({"reader": "a", "x1": "a"}))["reader"]) > 120 // 11, (
        "there is room again"
    )


def test_agents_of_all_leaves_receive_no_more_than_a_bound_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(path_loads, "MOST_SENT", 400)
    shared = PathLoads()
    leaves = {f"h{leaf}-{host}": f"leaf{leaf}" for leaf in range(5) for host in range(4)}
    for number, host in enumerate(leaves):
        shared.put(host, invented(number, 50))
    received = dict(shared.changes(leaves))
    assert set(received) == set(leaves)
    assert 200 <= sum(map(delays, received.values())) <= 400


def test_a_leaf_whose_reports_cannot_be_put_together_keeps_no_other_from_its_own(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def native(plain: list[tuple[dict[int, int], Any]]) -> Any:
        if any(13 in flows for flows, _ in plain):
            raise OverflowError("13")
        return path_loads_of_others(plain)

    monkeypatch.setattr(path_loads, "path_loads_of_others", native)
    shared = PathLoads()
    for host, stamp in (("h1", "13"), ("h2", "2"), ("h3", "3"), ("h4", "4")):
        shared.put(host, PathLoad({stamp: 1}, {}))
    leaves = {"h1": "a", "h2": "a", "h3": "b", "h4": "b"}
    assert dict(shared.changes(leaves)) == {"h3": PathLoad({"4": 1}, {}), "h4": PathLoad({"3": 1}, {})}
    assert "leaf a: its agents' reports of paths cannot be put together: OverflowError" in caplog.text
    shared.put("h1", NOTHING)
    assert dict(shared.changes(leaves)) == {"h1": PathLoad({"2": 1}, {})}
