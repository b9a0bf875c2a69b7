"""The benchmark of the agents measures all that it names, in one short turn; how much is not looked at."""

from __future__ import annotations

import pytest

from benchmarks import agent, agent_short_flows, authentication

DIFFERENCES = ("rtt_added", "authentication_")
"""Of two measurements: noise may make them negative."""
TICKS = ("super_packet_coded",)
"""Of time outside of the kernel alone, which is sampled every 10 ms: one second may have none."""


def test_every_figure_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"ROUNDS": 1, "PINGS": 5, "SECONDS": 1, "LONE_PINGS": 20}.items():
        monkeypatch.setattr(agent, name, value)
    monkeypatch.setattr(agent_short_flows, "MESSAGES", 5)
    monkeypatch.setattr(authentication, "ROUNDS", 1)
    figures = agent.run()["figures"]
    for name, figure in figures.items():
        assert figure["value"] > 0 or name.endswith("_added") or name.startswith(DIFFERENCES + TICKS), name
    goals = {name for name, figure in figures.items() if figure["goal"] is not None}
    assert goals == {
        "rtt_added",
        "cpu_lone",
        "tcp_uncoded_ratio",
        "tcp_coded_ratio",
        "tcp_coded_lossy_ratio",
        "cpu_uncoded",
        "cpu_coded",
        "super_packet_coded",
        "packet_added",
    }
    assert 0 < figures["coded_repairs"]["value"] <= 1, "the coded transfers were coded"
    assert figures["message_uncoded"]["value"] > 13_000 * 8 / 20e6 * 1000 * 0.7, "the access link is shaped"
