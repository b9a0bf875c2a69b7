"""What a lone packet costs a switch here, and how an experiment is sized by it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from topologies.processes import cpu_s
from topologies.switch_cost import measure_switch_us

ROOT = Path(__file__).resolve().parents[2]


def test_a_packet_costs_a_switch_some_processor_time_and_nothing_is_lost() -> None:
    before = cpu_s(os.getpid())
    cost_us = measure_switch_us()
    assert 1 < cost_us < 2500, (
        "less than a system call, or more than the pause between packets, is no measurement"
    )
    assert cpu_s(os.getpid()) > before


def test_a_scale_is_said_before_the_start_and_kept_with_the_result(tmp_path: Path) -> None:
    spec = tmp_path / "brief.yaml"
    spec.write_text(
        "name: brief\ntitle: A few flows\n"
        "fabric: {leaves: 2, spines: 2, hosts_per_leaf: 1, link: {rate_mbps: 10}, access: {rate_mbps: 20}}\n"
        "schemes: [ecmp]\nworkload:\n  flows:\n    count: 3\n    sizes: {kind: fixed, bytes: 20000}\n"
        "    arrivals: {rate_per_s: 10}\nwarm_up_s: 0.2\n"
    )
    done = subprocess.run(
        [
            ROOT / "capstan",
            "run",
            spec,
            "--results",
            tmp_path / "results",
            "--json",
            tmp_path / "result.json",
        ],
        env={**os.environ, "CAPSTAN_SCALE": "0.5"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "for this machine: links at 0.5 of their rates, times 2 times as long" in done.stderr
    assert "1 run, about" in done.stderr
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["spec"]["fabric"]["link"]["rate_mbps"] == 5
    assert any("links at 0.5 of their rates" in notice for notice in result["notices"])
    [kept] = (tmp_path / "results").glob("brief-*/spec.yaml")
    assert "rate_mbps: 5" in kept.read_text()
