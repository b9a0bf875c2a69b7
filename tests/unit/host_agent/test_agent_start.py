"""An agent that cannot start leaves nothing behind."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from host_agent import shell
from host_agent.config import AgentConfig, ConfigError, Endpoint
from host_agent.underlay import UnderlayError, mac_of


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
