"""What the host agents cost: round-trip time over a fabric, throughput over a direct link, with and without them."""

from __future__ import annotations

import json
import re
import statistics
import subprocess
import sys
import time
from typing import Any, Final

from benchmarks.figures import BenchmarkError, Figure, document
from benchmarks.unused_workload import UNUSED_WORKLOAD
from experiments.run.deployment import ROOT, Deployment
from experiments.spec.spec import spec_from_dict

RTT_GOAL_MS: Final = 0.25
THROUGHPUT_GOAL_MBPS: Final = 600.0
PINGS: Final = 300
SECONDS: Final = 5
ROUNDS: Final = 2
_UNDERLAY: Final = ("192.0.2.1", "192.0.2.2")
_OVERLAY: Final = ("198.51.100.1", "198.51.100.2")
_HOSTS: Final = ("h1", "h2")


def run() -> dict[str, Any]:
    """Return all figures: milliseconds and Mbit/s, with and without agents in the same run."""
    spec = spec_from_dict(
        {
            "name": "bench-fabric",
            "title": "two leaves, one spine, links far faster than what they carry",
            "fabric": {
                "leaves": 2,
                "spines": 1,
                "hosts_per_leaf": 1,
                "link": {"rate_mbps": 10000},
                "access": {},
            },
            "schemes": ["ecmp"],
            "workload": UNUSED_WORKLOAD,
        }
    )
    figures: dict[str, Figure] = {}
    with Deployment(spec) as lab:
        figures |= _round_trips(lab, "fabric", raw="10.0.2.1", through="10.128.2.1", goal_ms=RTT_GOAL_MS)
        _direct_link(lab)
        figures |= _round_trips(lab, "link", raw=_UNDERLAY[1], through=_OVERLAY[1], goal_ms=RTT_GOAL_MS)
        figures |= _throughput(lab)
    notes = ("fabric: two leaves and a spine of Open vSwitch; link: one veth pair, offloads off; TCP: cubic",)
    return document(figures, notes)


def _round_trips(lab: Deployment, name: str, *, raw: str, through: str, goal_ms: float) -> dict[str, Figure]:
    """Return the medians of idle pings, the two ways in turn."""
    samples: dict[str, list[float]] = {raw: [], through: []}
    for _ in range(3):
        for address in samples:
            samples[address] += _ping(lab, address, PINGS // 3)
    raw_ms, through_ms = (statistics.median(samples[address]) for address in (raw, through))
    return {
        f"{name}_rtt_raw": Figure(raw_ms, "ms"),
        f"{name}_rtt_agents": Figure(through_ms, "ms"),
        f"{name}_rtt_added": Figure(through_ms - raw_ms, "ms", goal_ms, "lower"),
    }


def _throughput(lab: Deployment) -> dict[str, Figure]:
    raw, through = [], []
    for _ in range(ROUNDS):
        raw.append(_iperf(lab, _UNDERLAY[1]))
        through.append(_iperf(lab, _OVERLAY[1]))
    best_raw, best = max(raw), max(through)
    return {
        "link_tcp_raw": Figure(best_raw, "Mbit/s"),
        "link_tcp_agents": Figure(best, "Mbit/s", THROUGHPUT_GOAL_MBPS, "higher"),
        "link_tcp_ratio": Figure(best / best_raw, "of raw"),
    }


def _direct_link(lab: Deployment) -> None:
    """Make a veth pair between the two hosts, and agents of its own on it; both go with the lab."""
    first, second = (lab.lab.net.get(host).pid for host in _HOSTS)
    _tool(["ip", "link", "add", "name", "bench-a", "netns", str(first), "type", "veth",
           "peer", "name", "bench-b", "netns", str(second)])  # fmt: skip
    for index, host in enumerate(_HOSTS):
        interface = f"bench-{'ab'[index]}"
        for argv in (
            ["ethtool", "-K", interface, "tx", "off", "tso", "off", "gso", "off", "gro", "off"],
            ["ip", "addr", "add", f"{_UNDERLAY[index]}/24", "dev", interface],
            ["ip", "link", "set", interface, "up"],
        ):
            _on_host(lab, host, argv)
        name = f"bench{index + 1}"
        argv = [sys.executable, "-m", "host_agent", "--host", name, "--interface", interface]
        argv += ["--underlay-ip", _UNDERLAY[index], "--overlay", f"{_OVERLAY[index]}/24", "--tun", name]
        argv += ["--controller", f"unix:{lab.lab.run_dir / 'agents.sock'}", "--congestion-control", "cubic"]
        argv += ["--token-file", str(lab.lab.run_dir / "agents-token")]
        with (lab.logs / f"{name}.log").open("wb") as log:
            lab.lab.popen(host, argv, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT)
    deadline = time.monotonic() + 10
    while _on_host(lab, "h1", ["ping", "-c", "1", "-W", "1", _OVERLAY[1]], check=False) is None:
        if time.monotonic() > deadline:
            raise BenchmarkError(f"the agents on the direct link do not forward; see {lab.logs}")


def _ping(lab: Deployment, address: str, count: int) -> list[float]:
    out = _on_host(lab, "h1", ["ping", "-c", str(count), "-i", "0.01", address])
    return [float(value) for value in re.findall(r"time=([\d.]+) ms", out or "")]


def _iperf(lab: Deployment, address: str) -> float:
    """Return Mbit/s that arrived."""
    server = lab.lab.popen(
        "h2", ["iperf3", "-s", "-1", "-B", address], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + 5
        while not (_on_host(lab, "h2", ["ss", "-Hltn", "sport = :5201"]) or "").strip():
            if time.monotonic() > deadline:
                raise BenchmarkError("iperf3 -s does not listen")
            time.sleep(0.05)
        out = _on_host(lab, "h1", ["iperf3", "-c", address, "-t", str(SECONDS), "-C", "cubic", "-J"])
        return float(json.loads(out or "")["end"]["sum_received"]["bits_per_second"]) / 1e6
    finally:
        server.terminate()
        server.wait()


def _on_host(lab: Deployment, host: str, argv: list[str], check: bool = True) -> str | None:
    """Return what a program on a host printed; None if it failed and may."""
    process = lab.lab.popen(host, argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    out, err = process.communicate(timeout=60)
    if process.returncode != 0:
        if check:
            raise BenchmarkError(f"{' '.join(argv)} on {host}: {(err or out).strip()}")
        return None
    return str(out)


def _tool(argv: list[str]) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BenchmarkError(f"{' '.join(argv)}: {done.stderr.strip()}")
