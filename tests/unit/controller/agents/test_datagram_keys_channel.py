"""Agents get the keys of their datagrams before the directory that asks for them, and again in the next period."""

from __future__ import annotations

from pathlib import Path

from controller.agents.datagram_keys import PairKeys
from controller.agents.server import AgentServer
from controller.agents.settings import ChannelSettings
from protocol.control import DatagramKeys, Directory
from tests.unit.agents_channel import TOKEN, RawAgent

ADDRESS = "10.0.1.{}"


def serving(directory: Path, keys: PairKeys) -> AgentServer:
    server = AgentServer(
        ChannelSettings(directory / "agents.sock", directory / "members.json", datagram_keys=keys),
        token=TOKEN,
    )
    server.start()
    return server


def test_both_ends_of_a_pair_get_the_same_keys_before_the_directory(tmp_path: Path) -> None:
    server = serving(tmp_path, PairKeys("secret", 0.0, 0.0))
    try:
        first, second = (RawAgent.joined(tmp_path / "agents.sock", number) for number in (1, 2))
        own, others = [], []
        for agent in (first, second):
            keys = None
            while True:
                message = agent.message()
                assert message is not None
                if isinstance(message, DatagramKeys):
                    keys = message
                if isinstance(message, Directory) and len(message.peers) == 2:
                    assert message.authenticated
                    break
            assert keys is not None
            own.append(keys.keys.get(ADDRESS.format(1)))
            others.append(keys.keys.get(ADDRESS.format(2)))
        assert own[0] is None
        assert others[1] is None
        assert others[0]
        assert others[0] == own[1]
    finally:
        server.stop()


def test_a_new_period_has_new_keys_and_keeps_the_one_before(tmp_path: Path) -> None:
    server = serving(tmp_path, PairKeys("secret", 0.0, 0.0, period_s=0.5))
    try:
        agent, _ = (RawAgent.joined(tmp_path / "agents.sock", number) for number in (1, 2))
        keys = agent.next(DatagramKeys)
        while not keys.keys:
            keys = agent.next(DatagramKeys)
        later = agent.next(DatagramKeys)
        while later.sending == keys.sending:
            later = agent.next(DatagramKeys)
        before, after = (set(one.keys[ADDRESS.format(2)]) for one in (keys, later))
        assert str(keys.sending) in before
        assert {str(later.sending), str((later.sending - 1) % 256)} <= after
    finally:
        server.stop()


def test_without_the_option_no_keys_are_sent(tmp_path: Path) -> None:
    server = AgentServer(ChannelSettings(tmp_path / "agents.sock", tmp_path / "members.json"), token=TOKEN)
    server.start()
    try:
        agent = RawAgent.joined(tmp_path / "agents.sock", 1)
        directory = agent.next(Directory)
        assert not directory.authenticated
    finally:
        server.stop()


def test_an_agent_that_begins_anew_has_other_keys(tmp_path: Path) -> None:
    """It knows no more what has come: datagrams to the one before, kept by a third host, would be taken again."""
    server = serving(tmp_path, PairKeys("secret", 0.0, 0.0))
    try:
        agents = [RawAgent.joined(tmp_path / "agents.sock", number) for number in (1, 2, 3)]

        def keys_with(number: int) -> dict[str, str]:
            while True:
                of_pair = agents[0].next(DatagramKeys).keys
                if len(of_pair) == 2:
                    return dict(of_pair[ADDRESS.format(number)])

        before = keys_with(2)
        agents.append(RawAgent.joined(tmp_path / "agents.sock", 2, session=77))
        after = keys_with(2)
        while after == before:
            after = keys_with(2)
        assert agents[3].next(DatagramKeys).keys[ADDRESS.format(1)] == after
        assert not set(after.values()) & set(before.values())
    finally:
        server.stop()
