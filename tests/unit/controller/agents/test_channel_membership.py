"""Who belongs to the fabric, over any history of agents that come, break off, come back elsewhere, and stay away."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.agents import membership as membership_module
from controller.agents.membership import (
    GRACE_S,
    Member,
    Membership,
    MembershipError,
    members_from_plain,
    members_to_plain,
)
from protocol.control import Hello

HOSTS = ("h1", "h2", "h3")
EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["join", "disconnect", "wait"]),
        st.sampled_from(HOSTS),
        st.integers(1, 3),
        st.integers(1, 3),
        st.floats(0.1, GRACE_S),
    ),
    max_size=40,
)


def member(host: str, underlay: int, overlay: int) -> Member:
    return Member(host, f"10.0.1.{underlay}", "00:00:00:00:00:01", (f"10.128.1.{overlay}",), 1, "0.1.0")


@given(EVENTS)
def test_no_address_has_two_owners_and_no_host_that_is_here_loses_its_own(
    events: list[tuple[str, str, int, int, float]],
) -> None:
    now = 100.0
    membership = Membership((), now)
    here: dict[str, Member] = {}
    away: dict[str, tuple[float, Member]] = {}
    for what, host, underlay, overlay, pause in events:
        if what == "join":
            one = member(host, underlay, overlay)
            taken = [
                other for other in here.values() if other.host != host and other.addresses & one.addresses
            ]
            if taken:
                owners = "|".join(other.host for other in taken)
                with pytest.raises(MembershipError, match=f"belongs to host '({owners})'"):
                    membership.join(one, now)
                continue
            gone = {
                other.host
                for _, other in away.values()
                if other.host != host and other.addresses & one.addresses
            }
            assert {other.host for other in membership.join(one, now)} == gone
            here[host] = one
            for name in (*gone, host):
                away.pop(name, None)
        elif what == "disconnect":
            membership.disconnect(host, now)
            if host in here:
                away[host] = (now, here.pop(host))
        else:
            now += pause
            late = {name for name, (since, _) in away.items() if now - since >= GRACE_S}
            assert {one.host for one in membership.expire(now)} == late
            for name in late:
                del away[name]
        present = here | {name: one for name, (_, one) in away.items()}
        assert membership.members() == tuple(present[name] for name in sorted(present))
        addresses = [address for one in membership.members() for address in one.addresses]
        assert len(addresses) == len(set(addresses))
        assert membership.deadline() == (min(since for since, _ in away.values()) + GRACE_S if away else None)


def test_remembered_members_are_away_until_they_come() -> None:
    one, two = member("h1", 1, 1), member("h2", 2, 2)
    kept = members_from_plain(json.loads(json.dumps(members_to_plain([one, two]))))
    membership = Membership(kept, 10.0)
    assert membership.members() == (one, two)
    membership.join(one, 11.0)
    assert membership.expire(10.0 + GRACE_S) == (two,)
    assert membership.members() == (one,)


HELLO = Hello("proof", "nonce", "h1", "10.0.1.1", "00:00:00:00:00:01", ["10.128.1.1"], 1, "0.1.0")


@pytest.mark.parametrize(
    ("hello", "why"),
    [
        (replace(HELLO, overlay=[]), "1 to 64 overlay addresses, not 0"),
        (replace(HELLO, overlay=["10.128.1.1"] * 100_000), "1 to 64 overlay addresses, not 100000"),
        (replace(HELLO, version="1" * 1_000_000), "100 characters at most, not 1000000"),
        (replace(HELLO, version="1\x1b[2J"), "characters that are no text"),
    ],
)
def test_what_an_agent_says_of_itself_has_a_length(hello: Hello, why: str) -> None:
    assert Member.from_hello(HELLO).overlay == ("10.128.1.1",)
    with pytest.raises(MembershipError, match=why):
        Member.from_hello(hello)


def test_a_scope_makes_no_other_address_of_a_hosts() -> None:
    """An agent could join with the address of another host, whose packets it got: agents go by its bytes."""
    with pytest.raises(MembershipError, match="'fd00:ca::1:1%x' has a scope"):
        Member.from_hello(replace(HELLO, overlay=["10.128.1.1", "fd00:ca::1:1%x"]))


def test_members_have_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(membership_module, "MOST_MEMBERS", 3)
    members = Membership((), 0.0)
    for number in range(1, 4):
        members.join(member(f"h{number}", number, number), 0.0)
    with pytest.raises(MembershipError, match="3 hosts have agents already"):
        members.join(member("h4", 4, 4), 0.0)
    members.join(member("h1", 1, 1), 1.0)
    assert [known.host for known in members.members()] == ["h1", "h2", "h3"]
