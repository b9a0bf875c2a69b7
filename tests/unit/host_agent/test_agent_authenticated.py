"""Datagrams that are authenticated by a key of the pair: what passes, what does not, and keys that are renewed."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.agents.datagram_keys import PairKeys
from host_agent.core import AgentCore
from protocol.control import DatagramKeys
from protocol.datagram import HEADER_BYTES
from tests.unit.agent_relay import UNDERLAY, Relay, Weather, core, policy
from tests.unit.inner_packets import HOST1, HOST2, udp

PERIOD_S = 100.0
KEYS = PairKeys("a secret of the controller", began=0.0, now=0.0, period_s=PERIOD_S)
AUTHENTICATED = 0x08


def keys_of(host: int, at_s: float) -> DatagramKeys:
    return KEYS.of_host(UNDERLAY[host], UNDERLAY, at_s)


def keyed(host: int, at_s: float = 0.0) -> AgentCore:
    agent = core(host)
    agent.set_policy(policy(), 0.0)
    agent.set_keys(keys_of(host, at_s))
    return agent


def datagrams(agent: AgentCore, number: int = 1) -> list[tuple[bytes, int]]:
    for count in range(number):
        agent.packet_from_host(udp(b"payload %d" % count, HOST1, HOST2), 0.0)
    return [(datagram.data, datagram.source_port) for datagram in agent.datagrams_to_send()]


def arrives(agent: AgentCore, data: bytes, source_port: int) -> bool:
    agent.receive_datagram(data, UNDERLAY[0], source_port, 0, now=0.0)
    return bool(agent.packets_to_deliver())


def test_packets_arrive_and_datagrams_are_no_longer_than_others() -> None:
    [(plain, _)] = datagrams(_plain())
    [(data, port)] = datagrams(keyed(0))
    assert len(data) == len(plain)
    assert data[2] & AUTHENTICATED
    assert data[HEADER_BYTES:] == plain[HEADER_BYTES:]
    assert arrives(keyed(1), data, port)


def _plain() -> AgentCore:
    agent = core(0)
    agent.set_policy(policy(), 0.0)
    return agent


def test_without_keys_the_wire_is_as_before() -> None:
    agent = keyed(0)
    agent.set_keys(None)
    assert datagrams(agent) == datagrams(_plain())


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_no_changed_datagram_passes(data: st.DataObject) -> None:
    [(whole, port)] = datagrams(keyed(0))
    bit = data.draw(st.integers(0, len(whole) * 8 - 1))
    changed = bytearray(whole)
    changed[bit // 8] ^= 1 << bit % 8
    receiver = keyed(1)
    assert not arrives(receiver, bytes(changed), port)
    assert arrives(receiver, whole, port), "and it took no number of a real one's"


@pytest.mark.parametrize(
    ("sender", "counter"),
    [(_plain, "dropped_unauthenticated"), (lambda: keyed(0, 10 * PERIOD_S), "dropped_key")],
)
def test_what_has_no_key_of_the_pair_is_dropped_and_counted(sender, counter):  # type: ignore[no-untyped-def]
    [(data, port)] = datagrams(sender())
    receiver = keyed(1)
    assert not arrives(receiver, data, port)
    assert receiver.counters()[counter] == 1


def test_another_pairs_key_is_none_of_this_one() -> None:
    other = KEYS.of_host("10.0.9.9", [UNDERLAY[1]], 0.0)
    sender = core(0)
    sender.set_policy(policy(), 0.0)
    sender.set_keys(other)
    [(data, port)] = datagrams(sender)
    receiver = keyed(1)
    assert not arrives(receiver, data, port)
    assert receiver.counters()["dropped_code"] == 1


@pytest.mark.parametrize("first", [0, 1])
def test_no_packet_is_lost_while_keys_are_renewed(first: int) -> None:
    """Agents learn of a new period at different times, and more than one period long either may be late."""
    relay = Relay(policy(), Weather(), seed=1)
    for host, agent in enumerate(relay.cores):
        agent.set_keys(keys_of(host, 0.0))
    sent = []
    for period in range(4):
        for host in (first, 1 - first):
            relay.cores[host].set_keys(keys_of(host, period * PERIOD_S))
            for count in range(5):
                packet = udp(b"%d %d %d" % (period, host, count), HOST1, HOST2)
                sent.append(packet)
                relay.send(0, packet)
                relay.pass_time(0.002)
    assert relay.delivered[1] == sent
    assert not any(value for name, value in relay.cores[1].counters().items() if name.startswith("dropped_"))


def test_what_is_no_key_takes_nothing_from_that_peer() -> None:
    receiver = core(1)
    receiver.set_policy(policy(), 0.0)
    receiver.set_keys(DatagramKeys(0, {UNDERLAY[0]: {"0": "no key", "300": "00" * 16}}))
    [(data, port)] = datagrams(_plain())
    assert not arrives(receiver, data, port)


def test_keys_of_both_ends_are_the_same_and_differ_by_pair_and_period() -> None:
    addresses = ["10.0.0.1", "10.0.0.2", "10.0.0.3"]
    at_s = 5.5 * PERIOD_S
    of = {address: KEYS.of_host(address, addresses, at_s) for address in addresses}
    assert of["10.0.0.1"].keys["10.0.0.2"] == of["10.0.0.2"].keys["10.0.0.1"]
    every = [key for own in of.values() for numbered in own.keys.values() for key in numbered.values()]
    assert len(set(every)) == len(every) / 2 == 3 * 3
    assert of["10.0.0.1"].sending == 5
    assert set(of["10.0.0.1"].keys["10.0.0.2"]) == {"4", "5", "6"}
    assert KEYS.ends_in(at_s) == pytest.approx(0.5 * PERIOD_S)


def test_keys_of_an_agent_that_began_anew_are_others_and_no_others_change() -> None:
    addresses = ["10.0.0.1", "10.0.0.2", "10.0.0.3"]
    sessions = {address: number for number, address in enumerate(addresses)}
    later = sessions | {"10.0.0.2": 99}
    before, after = (KEYS.of_host("10.0.0.1", addresses, 0.0, known).keys for known in (sessions, later))
    assert after["10.0.0.3"] == before["10.0.0.3"]
    assert after["10.0.0.2"].keys() == before["10.0.0.2"].keys()
    assert not set(after["10.0.0.2"].values()) & set(before["10.0.0.2"].values())
    assert KEYS.of_host("10.0.0.2", addresses, 0.0, later).keys["10.0.0.1"] == after["10.0.0.2"]


def test_a_restart_of_the_controller_goes_on_in_the_same_period() -> None:
    before = PairKeys("secret", began=1e9, now=17.0)
    after = PairKeys("secret", began=1e9 + 60, now=3.0)
    assert before.of_host("10.0.0.1", ["10.0.0.2"], 77.0) == after.of_host("10.0.0.1", ["10.0.0.2"], 3.0)


def test_keys_are_not_shown() -> None:
    keys = keys_of(0, 0.0)
    assert all(key not in repr(keys) for numbered in keys.keys.values() for key in numbered.values())
