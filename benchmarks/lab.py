"""What a lab costs its machine: processor time a packet and hop, a packet and host agent, and where it is saturated.

Four TCP flows, sprayed over eight paths, are held by their hosts' links at a rate, step by step: packets are counted by
the ports' queueing disciplines, processor time by the kernel. `experiments.spec.load.REFERENCE` is this benchmark's
outcome on two cores at about half of their capacity; a demo or an experiment is sized by it.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.figures import BenchmarkError, Figure, document
from benchmarks.unused_workload import UNUSED_WORKLOAD
from experiments.run.cpu import parse_stat
from experiments.run.deployment import Deployment
from experiments.spec.spec import Spec, spec_from_dict
from topologies.processes import cpu_s
from topologies.switch_cost import measure_switch_us

ACCESS_MBPS: Final = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
FLOWS: Final = 4
SETTLE_S: Final = 2.0
WINDOW_S: Final = 4.0
PORTS: Final = (3, 13)
"""Of a switch: as a spine's, and as a leaf's with eight spines and four hosts (and its own)."""
ROUNDS: Final = 3
TCP_PORT: Final = 7400
_SINK: Final = """
import socket, sys
server = socket.create_server(("0.0.0.0", int(sys.argv[1])))
print("listening", flush=True)
connection, _ = server.accept()
while connection.recv(1 << 16):
    pass
"""
_SOURCE: Final = """
import socket, sys
connection = socket.create_connection((sys.argv[1], int(sys.argv[2])))
while True:
    connection.sendall(bytes(1 << 16))
"""


@dataclass(frozen=True, slots=True)
class Reading:
    """Counters at one moment: packets that came to switches and to hosts, seconds of processor time."""

    at_s: float
    hops: int
    delivered: int
    switches_s: float
    agents_s: float
    busy_s: float


@dataclass(frozen=True, slots=True)
class Step:
    """One rate: packets a second of all hosts, cores in use, microseconds of processor time a packet."""

    packets_per_s: float
    busy_cores: float
    hop_us: float
    agent_us: float


def spec() -> Spec:
    """Return two leaves with eight spines, whose links are never full, and four hosts a leaf."""
    return spec_from_dict(
        {
            "name": "bench-lab",
            "title": "What a lab costs",
            "fabric": {
                "leaves": 2,
                "spines": 8,
                "hosts_per_leaf": FLOWS,
                "link": {"rate_mbps": 100, "buffer_packets": 256},
                "access": {"rate_mbps": 1, "buffer_packets": 256},
            },
            "schemes": ["rps"],
            "workload": UNUSED_WORKLOAD,
        }
    )


def step(before: Reading, after: Reading) -> Step:
    """Return what happened between two readings; a packet passes two agents."""
    seconds = after.at_s - before.at_s
    hops, delivered = after.hops - before.hops, after.delivered - before.delivered
    return Step(
        packets_per_s=delivered / seconds,
        busy_cores=(after.busy_s - before.busy_s) / seconds,
        hop_us=(after.switches_s - before.switches_s) / max(1, hops) * 1e6,
        agent_us=(after.agents_s - before.agents_s) / max(1, 2 * delivered) * 1e6,
    )


def run() -> dict[str, Any]:
    """Measure, and return the figures."""
    figures: dict[str, Figure] = {}
    for ports in PORTS:
        ours, plain = [], []
        for _ in range(ROUNDS):
            ours.append(measure_switch_us(ports - 1))
            plain.append(measure_switch_us(ports - 1, plain_allocator=True))
        figures[f"lone_packet_{ports}_ports"] = Figure(statistics.median(ours), "us")
        ratio = statistics.median(ours) / statistics.median(plain)
        figures[f"lone_packet_{ports}_ports_ratio"] = Figure(ratio, "of the C library's allocator")
    with Deployment(spec()) as lab:
        rest = _measure(lab)
        figures["at_rest"] = Figure(rest.busy_cores, "cores")
        steps = []
        for rate in ACCESS_MBPS:
            with _traffic(lab, rate):
                steps.append(_measure(lab))
            figures |= _figures(f"{rate:g}_mbps", steps[-1])
    best = max(steps, key=lambda step: step.packets_per_s)
    figures["saturation"] = Figure(best.packets_per_s, "packets/s", better="higher")
    notes = (
        "lone_packet: processor time of ovs-vswitchd, one packet at a time through one switch",
        f"N_mbps: {FLOWS} TCP flows sprayed over 8 paths, each host's link at N Mbit/s; packets with acknowledgements",
        "hop: ovs-vswitchd a packet and switch; agent: a host agent a packet; saturation: at the highest rate tried",
    )
    return document(figures, notes)


def _figures(name: str, step: Step) -> dict[str, Figure]:
    return {
        f"{name}_packets": Figure(step.packets_per_s, "packets/s", better="higher"),
        f"{name}_busy": Figure(step.busy_cores, "cores"),
        f"{name}_hop": Figure(step.hop_us, "us"),
        f"{name}_agent": Figure(step.agent_us, "us"),
    }


def _measure(lab: Deployment) -> Step:
    time.sleep(SETTLE_S)
    before = _read(lab)
    time.sleep(WINDOW_S)
    return step(before, _read(lab))


@contextmanager
def _traffic(lab: Deployment, rate_mbps: float) -> Iterator[None]:
    """Run flows from each host of the first leaf to one of the second, for the block."""
    places = {place.name: place for place in lab.spec.fabric.hosts()}
    for place in places.values():
        lab.lab.set_link(f"{place.name}-l{place.leaf}", rate_mbps=rate_mbps)
    running: list[subprocess.Popen[Any]] = []
    try:
        for number in range(1, FLOWS + 1):
            source, sink = f"h{number}", f"h{number + FLOWS}"
            argv = [sys.executable, "-c", _SINK, str(TCP_PORT)]
            running.append(lab.lab.popen(sink, argv, stdout=subprocess.PIPE, text=True))
            listening = running[-1].stdout
            assert listening is not None
            if "listening" not in listening.readline():
                raise BenchmarkError(f"the receiver on {sink} did not start")
            argv = [sys.executable, "-c", _SOURCE, places[sink].overlay, str(TCP_PORT)]
            running.append(lab.lab.popen(source, argv, stderr=subprocess.DEVNULL))
        yield
        ended = sum(process.poll() is not None for process in running)
        if ended:
            raise BenchmarkError(
                f"{ended} of the flows' {len(running)} programs ended before the measurement did"
            )
    finally:
        for process in running:
            process.kill()
            process.communicate()


def _read(lab: Deployment) -> Reading:
    hops = delivered = 0
    for name in lab.lab.links:
        ends = name.split("-")
        for counters in lab.lab.port_counters(name):
            receiver = next(end for end in ends if not counters.interface.startswith(f"{end}-"))
            if receiver.startswith("h"):
                delivered += counters.sent_packets
            else:
                hops += counters.sent_packets
    daemons = [lab.lab.switch(name).daemon for name in lab.lab.switches]
    idle, total = parse_stat(
        Path("/proc/stat").read_text(), os.sched_getaffinity(0), os.sysconf("SC_CLK_TCK")
    )
    return Reading(
        at_s=time.monotonic(),
        hops=hops,
        delivered=delivered,
        switches_s=sum(cpu_s(daemon.pid) for daemon in daemons if daemon is not None),
        agents_s=sum(cpu_s(pid) for pid in _agents(lab)),
        busy_s=total - idle,
    )


def _agents(lab: Deployment) -> list[int]:
    """Return the pids of the host agents of this lab."""
    mark = str(lab.lab.run_dir / "agents.sock")
    agents = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().decode(errors="replace")
        except OSError:
            continue
        if "host_agent" in words and mark in words:
            agents.append(int(path.parent.name))
    return agents
