"""Counts of short flows, shared between the agents of a leaf: the rule by itself, and over real sockets."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from controller.agents.short_flows import ShortFlowShares
from protocol.control import ShortFlows
from protocol.policy import Policy
from tests.unit.agents_channel import RawAgent, served

hosts = st.sampled_from(["h1", "h2", "h3", "h4"])
counts = st.dictionaries(st.sampled_from(["1", "2", "4095"]), st.integers(0, 5), max_size=3)


@given(
    leaves=st.dictionaries(hosts, st.sampled_from(["a", "b", ""]), min_size=1),
    puts=st.lists(st.tuples(hosts, counts), max_size=20),
)
def test_each_host_knows_the_sum_of_the_others_at_its_leaf(
    leaves: dict[str, str], puts: list[tuple[str, dict[str, int]]]
) -> None:
    shares = ShortFlowShares()
    newest: dict[str, dict[str, int]] = {}
    told: dict[str, dict[str, int]] = {host: {} for host in leaves}
    for host, what in puts:
        shares.put(host, what)
        newest[host] = what
        news = shares.news(leaves)
        told |= news
        for one, leaf in leaves.items():
            if one not in newest or not leaf:
                assert one not in news
                continue
            others = [newest.get(other, {}) for other in leaves if other != one and leaves[other] == leaf]
            stamps = {stamp for other in others for stamp in other}
            sums = {stamp: sum(other.get(stamp, 0) for other in others) for stamp in stamps}
            assert told[one] == {stamp: count for stamp, count in sums.items() if count}
        assert shares.news(leaves) == {}, "nobody is told the same twice"


def test_what_is_no_path_or_no_number_of_flows_is_left_out() -> None:
    shares = ShortFlowShares()
    shares.put("h1", {"0": 1, "4096": 1, "x": 1, "": 1, "²": 1, "9" * 5000: 1, "7": -3, "8": 2})
    shares.put("h2", {})
    assert shares.news({"h1": "a", "h2": "a"}) == {"h2": {"8": 2}}


def test_a_host_that_is_gone_counts_no_more_and_is_told_all_when_it_is_back() -> None:
    shares = ShortFlowShares()
    shares.put("h1", {"1": 2})
    shares.put("h2", {"1": 3})
    assert shares.news({"h1": "a", "h2": "a"}) == {"h1": {"1": 3}, "h2": {"1": 2}}
    shares.forget("h2")
    assert shares.news({"h1": "a"}) == {"h1": {}}
    shares.put("h2", {})
    assert shares.news({"h1": "a", "h2": "a"}) == {"h2": {"1": 2}}
    shares.clear()
    assert shares.news({"h1": "a", "h2": "a"}) == {}


def test_agents_of_a_leaf_hear_of_each_other_and_of_nobody_else(tmp_path: Path) -> None:
    with served(tmp_path) as at:
        server = at.server
        server.set_policy(Policy(1, "tr"))
        for number, leaf in ((1, "a"), (2, "a"), (3, "b")):
            server.set_leaf(f"10.0.1.{number}", leaf)
        one, two, three = (RawAgent.joined(at.socket_path, number) for number in (1, 2, 3))
        two.send(ShortFlows({}))
        three.send(ShortFlows({"5": 9}))
        one.send(ShortFlows({"5": 2}))
        assert two.next(ShortFlows) == ShortFlows({"5": 2})
        two.send(ShortFlows({"6": 1}))
        assert one.next(ShortFlows) == ShortFlows({"6": 1})
        one.close()
        assert two.next(ShortFlows) == ShortFlows({})
        for agent in (two, three):
            agent.close()
