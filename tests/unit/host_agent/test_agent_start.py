"""An agent that cannot start leaves nothing behind."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from host_agent import shell
from host_agent.config import AgentConfig, ConfigError, Endpoint
from host_agent.underlay import UnderlayError, mac_of, mtu_of
from protocol.control import Message, PathLoad

CONFIG = AgentConfig(
    host="h1",
    interface="lo",
    underlay_ip="10.0.1.1",
    overlay=("10.128.1.1/9",),
    controller=Endpoint.parse("unix:/none/agents.sock"),
    token="a token",
)


def without_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have agents of this process start without sockets and a device."""

    def refused() -> None:
        raise OSError("not in this test")

    made = SimpleNamespace(taken_over=False)
    monkeypatch.setattr(shell, "Underlay", lambda *_: made)
    monkeypatch.setattr(shell, "Tun", lambda *_, **__: made)
    monkeypatch.setattr(shell, "Announcements", refused)
    monkeypatch.setattr(shell, "UnsentBytes", refused)


def test_an_agent_that_cannot_start_makes_no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    underlay = SimpleNamespace(close=lambda: done.append("sockets closed"))
    monkeypatch.setattr(shell, "Underlay", lambda *_: underlay)
    monkeypatch.setattr(shell, "Tun", lambda *_, **__: done.append("device made"))
    config = AgentConfig(
        host="h1",
        interface="lo",
        underlay_ip="10.0.1.1",
        overlay=("10.128.1.1/9",),
        controller=Endpoint.parse("tls:127.0.0.1:6654"),
        token="a token",
        ca=Path("/no/ca.pem"),
        keep_tun=True,
    )
    with pytest.raises(ConfigError, match=r"/no/ca\.pem"):
        shell.Agent(config)
    assert done == ["sockets closed"]


def test_the_address_of_an_interface_is_that_in_our_network_namespace(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After `nsenter --net` /sys is still that of the machine, which may have an interface of the same name."""
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: "02:00:00:00:00:01\n")
    assert mac_of("lo") == "00:00:00:00:00:00"
    for name in ("none-of-these", "longer-than-any-name", ""):
        with pytest.raises(UnderlayError, match=f"no interface '{name}' here"):
            mac_of(name)


def test_an_interface_that_carries_less_than_agents_send_is_warned_of(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Full datagrams were lost in silence: a ping passed, and TCP stood still."""
    without_devices(monkeypatch)
    monkeypatch.setattr(shell, "mtu_of", lambda interface: 1450)
    shell.Agent(CONFIG)
    assert "interface lo has an MTU of 1450 B, so datagrams of up to 1500 B are lost there" in caplog.text
    caplog.clear()
    shell.Agent(replace(CONFIG, underlay_mtu=1450))
    assert "MTU" not in caplog.text


def test_what_was_dropped_of_paths_is_shared_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other agents of the leaf went by what there was before, until there was something else."""
    without_devices(monkeypatch)
    agent, sent = shell.Agent(CONFIG), list[Message]()
    channel = SimpleNamespace(has_room=False, dropped=0, send=sent.append)
    monkeypatch.setattr(agent, "_channel", channel)
    monkeypatch.setattr(agent._core, "path_load", lambda now: PathLoad({"1": 2}, {}))
    shares = list[int]()
    for has_room, dropped in ((False, 0), (True, 0), (True, 0), (False, 1), (True, 1), (True, 1)):
        channel.has_room, channel.dropped = has_room, dropped
        agent._share(0.0)
        shares.append(len(sent))
    assert shares == [0, 1, 1, 1, 2, 2]


def test_the_mtu_of_an_interface_is_the_kernels() -> None:
    assert mtu_of("lo") == int(Path("/sys/class/net/lo/mtu").read_text())
