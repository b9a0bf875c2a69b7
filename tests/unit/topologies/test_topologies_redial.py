"""Which switches are made to dial the controller, from the kernel's own table of connections."""

from __future__ import annotations

import itertools
import socket
from pathlib import Path

import pytest

from tests.waiting import eventually
from topologies.redial import (
    AGAIN_SECONDS,
    PATIENCE_SECONDS,
    SETTLED_SECONDS,
    WATCH_SECONDS,
    Redialer,
    RedialPolicy,
    read_table,
)

SWITCHES = {"l1": "198.18.0.10", "s1": "198.18.0.11"}


def own_table() -> str:
    return Path("/proc/net/tcp").read_text()


@pytest.mark.parametrize("bound", ["127.0.0.2", "0.0.0.0"])
def test_real_connections_are_found(bound: str) -> None:
    with socket.create_server((bound, 0)) as server:
        endpoint = ("127.0.0.2", server.getsockname()[1])
        assert read_table(own_table(), endpoint) == (True, set())
        with socket.socket() as caller:
            caller.bind(("127.0.0.3", 0))
            caller.connect(endpoint)
            listening, callers = read_table(own_table(), endpoint)
            assert (listening, callers) == (True, {"127.0.0.3"})
            assert read_table(own_table(), ("127.0.0.2", endpoint[1] ^ 1))[1] == set()
    assert not read_table(own_table(), endpoint)[0]


def test_no_listener_no_dialling() -> None:
    policy = RedialPolicy(SWITCHES)
    assert all(policy.observe(tick / 10, False, []) == [] for tick in range(200))


@pytest.mark.parametrize("looks_before", [0, 1])
def test_a_new_listener_is_called_at_once_and_only_by_who_is_missing(looks_before: int) -> None:
    policy = RedialPolicy(SWITCHES)
    for look in range(looks_before):
        policy.observe(look - looks_before, False, [])
    dialled = [(tick / 20, policy.observe(tick / 20, True, ["198.18.0.11"])) for tick in range(20)]
    assert [(now, names) for now, names in dialled if names] == [(0, ["l1"])]


def test_a_controller_that_was_away_for_a_look_is_called_at_once() -> None:
    policy = RedialPolicy({"l1": "198.18.0.10"})
    assert policy.observe(0, True, ["198.18.0.10"]) == []
    assert policy.observe(1.0, False, []) == []
    assert policy.observe(1.3, True, []) == ["l1"]


def test_a_switch_that_loses_its_connection_has_a_moment_to_dial_by_itself() -> None:
    policy = RedialPolicy(SWITCHES)
    policy.observe(0, True, SWITCHES.values())
    dialled = [(tick / 20, policy.observe(tick / 20, True, ["198.18.0.11"])) for tick in range(1, 20)]
    assert [(now, names) for now, names in dialled if names] == [(1 / 20 + PATIENCE_SECONDS, ["l1"])]


def test_a_switch_that_calls_by_itself_is_left_alone() -> None:
    policy = RedialPolicy(SWITCHES)
    assert policy.observe(0, True, SWITCHES.values()) == []
    assert policy.observe(0.05, True, []) == []
    assert all(policy.observe(tick / 10, True, SWITCHES.values()) == [] for tick in range(1, 100))


def test_it_is_tried_again_but_not_all_the_time() -> None:
    policy = RedialPolicy({"l1": "198.18.0.10"})
    policy.observe(-0.01, True, ["198.18.0.10"])
    times = [tick / 100 for tick in range(1000) if policy.observe(tick / 100, True, [])]
    assert len(times) == pytest.approx((10 - PATIENCE_SECONDS) / AGAIN_SECONDS, abs=1)
    assert all(later - earlier >= AGAIN_SECONDS - 1e-9 for earlier, later in itertools.pairwise(times))


def test_patience_starts_anew_when_a_connection_ends() -> None:
    policy = RedialPolicy({"l1": "198.18.0.10"})
    for tick in range(100):
        assert policy.observe(tick / 10, True, ["198.18.0.10"]) == []
    assert policy.observe(10.0, True, []) == []
    assert policy.observe(10.0 + PATIENCE_SECONDS, True, []) == ["l1"]


@pytest.mark.parametrize(
    ("listening", "callers", "pause_s"),
    [
        (True, ["198.18.0.11", "198.18.0.10", "198.18.0.99"], SETTLED_SECONDS),
        (True, ["198.18.0.10", "198.18.0.99"], WATCH_SECONDS),
        (False, [], WATCH_SECONDS),
        (False, ["198.18.0.10", "198.18.0.11"], WATCH_SECONDS),  # it ended a moment ago
    ],
)
def test_the_table_is_read_less_often_while_all_are_connected(
    listening: bool, callers: list[str], pause_s: float
) -> None:
    assert RedialPolicy(SWITCHES).watch_s(listening, callers) == pause_s


def test_a_switch_that_connects_while_another_dials_is_left_alone() -> None:
    """To dial would end its connection, in the midst of a controller's takeover."""
    dialled: list[str] = []
    callers: list[socket.socket] = []
    with socket.create_server(("127.0.0.2", 0)) as server:
        endpoint = ("127.0.0.2", server.getsockname()[1])

        def dial(name: str) -> None:
            dialled.append(name)
            for address in addresses.values():
                callers.append(socket.create_connection(endpoint, source_address=(address, 0)))

        addresses = {"l1": "127.0.0.3", "s1": "127.0.0.4"}
        redialer = Redialer(endpoint, addresses, dial)
        redialer.start()
        try:
            eventually(lambda: len(callers) == 2, "both are connected")
        finally:
            redialer.stop()
            for caller in callers:
                caller.close()
    assert dialled == ["l1"]


def test_a_dial_that_cannot_be_made_just_now_is_made_in_a_later_round(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("topologies.redial.WATCH_SECONDS", 0.01)
    monkeypatch.setattr("topologies.redial.AGAIN_SECONDS", 0.0)
    tries: list[str] = []

    def dial(name: str) -> None:
        tries.append(name)
        raise BlockingIOError(11, "Resource temporarily unavailable")

    with socket.create_server(("127.0.0.2", 0)) as server:
        redialer = Redialer(("127.0.0.2", server.getsockname()[1]), {"l1": "127.0.0.3"}, dial)
        redialer.start()
        try:
            eventually(lambda: len(tries) > 1, "it dials again")
        finally:
            redialer.stop()
