"""The directory goes out when members come, go and move, their keys when they come and go, and nothing for others."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from controller import lifecycle
from controller.agents.datagram_keys import PairKeys
from controller.agents.directory_distribution import SETTLE_S
from controller.agents.server import AgentServer
from controller.agents.settings import ChannelSettings
from controller.fabric.arp import BROADCAST_MAC, NO_MAC, REQUEST, Arp
from controller.openflow.cookies import Rule
from controller.plane import forgetting
from protocol.control import DatagramKeys, Directory, Message
from tests.unit.agents_channel import TOKEN, RawAgent
from tests.unit.api_world import api_world
from tests.unit.raw_switch import raw_switch
from tests.unit.switch_messages import packet_in
from tests.waiting import eventually

L1, L2 = "1".zfill(16), "2".zfill(16)


def until_leaf(agent: RawAgent, leaf: str, peers: int = 1) -> list[Message]:
    """Return the messages up to a directory of so many peers that has the first one at *leaf*."""
    messages = []
    while (message := agent.message()) is not None:
        messages.append(message)
        if isinstance(message, Directory) and len(message.peers) == peers and message.peers[0].leaf == leaf:
            return messages
    raise AssertionError("closed before the directory came")


def test_hosts_without_agents_that_move_cause_nothing_and_members_no_keys(tmp_path: Path) -> None:
    keys = PairKeys("secret", 0.0, 0.0, period_s=1e9)
    settings = ChannelSettings(tmp_path / "agents.sock", tmp_path / "members.json", datagram_keys=keys)
    server = AgentServer(settings, TOKEN)
    server.start()
    try:
        agent = RawAgent.joined(tmp_path / "agents.sock", 1)
        server.set_leaf("10.0.1.1", L1)
        until_leaf(agent, L1)
        for _ in range(3):
            for leaf in (L1, L2):
                server.set_leaf("10.0.9.9", leaf)
                time.sleep(
                    2 * SETTLE_S
                )  # any longer changes nothing: what is not sent by then would be too much
        server.set_leaf("10.0.1.1", L2)
        assert [type(message) for message in until_leaf(agent, L2)] == [Directory]
        RawAgent.joined(tmp_path / "agents.sock", 2)
        assert DatagramKeys in [type(message) for message in until_leaf(agent, L2, peers=2)]
    finally:
        server.stop()


def announced(number: int) -> bytes:
    mac, ipv4 = f"02:00:00:09:00:{number:02x}", f"10.9.0.{number}"
    return packet_in(1, Rule.ARP, Arp(BROADCAST_MAC, mac, REQUEST, mac, ipv4, NO_MAC, ipv4).encode())


def test_leaves_of_hosts_that_are_gone_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifecycle, "SWEEP_EVERY", 2)
    monkeypatch.setattr(forgetting, "FORGET_ISOLATED_AFTER_S", 0.0)
    with api_world(tmp_path) as world:

        def hosts() -> set[str]:
            return {host.ipv4 for host in world.running.snapshot().hosts}

        def leaf_of(number: int) -> str:
            agent = RawAgent.joined(tmp_path / "agents.sock", number, underlay_ip=f"10.9.0.{number}")
            leaves = {peer.host: peer.leaf for peer in agent.next(Directory).peers}
            return leaves[f"h{number}"]

        with raw_switch(world.running.shell.port, 1) as switch:
            switch.ready()
            eventually(lambda: world.running.snapshot().switches, "the switch")
            switch.send(announced(1))
            eventually(lambda: hosts() == {"10.9.0.1"}, "its host")
        eventually(lambda: not world.running.snapshot().switches, "nothing")
        with raw_switch(world.running.shell.port, 2) as switch:
            switch.ready()
            eventually(lambda: world.running.snapshot().switches, "the other switch")
            switch.send(announced(2) + announced(3))
            eventually(lambda: hosts() == {"10.9.0.2", "10.9.0.3"}, "its hosts")
            assert [leaf_of(number) for number in (1, 2, 3)] == ["", L2, L2]
