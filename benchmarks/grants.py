"""How soon a request of CAPTON's agents is answered: from the packet that makes an agent ask to the decision, by the
agents' own clocks, in a lab of real switches with nothing else to do.

Two hosts send announced flows that are above the threshold, one at a time each, to two others; so every request is
granted at once, and the latency is that of the two processes and the channel between them. Quantiles are the upper ends
of buckets that are 19 % wide.
"""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Any, Final

from benchmarks.figures import BenchmarkError, Figure, Goal, document
from experiments.run.deployment import ROOT, Deployment
from experiments.spec.spec import Spec, spec_from_dict
from protocol.latency import Latencies

MEDIAN_GOAL_MS: Final = Goal(1.0, cores=2)
P99_GOAL_MS: Final = Goal(3.0, cores=2)
FLOWS: Final = 400
"""Of each of the two senders."""
FLOW_BYTES: Final = 30_000
PAUSE_S: Final = 0.02
PORT: Final = 7300
START_S: Final = 10.0
COUNTERS_S: Final = 1.5
"""Agents report their counters every second."""
_SINK: Final = """
import socket, sys
server = socket.create_server(("0.0.0.0", int(sys.argv[1])), backlog=128)
print("listening", flush=True)
while True:
    connection, _ = server.accept()
    while connection.recv(1 << 16):
        pass
    connection.sendall(b".")
    connection.close()
"""
_SOURCE: Final = """
import socket, sys, time
from workloads.announce import announce
own, address, port, flows, size, pause = sys.argv[1], sys.argv[2], *map(float, sys.argv[3:])
for _ in range(int(flows)):
    with socket.socket() as connection:
        connection.bind((own, 0))
        if not announce(connection.getsockname(), (address, int(port)), int(size)):
            raise SystemExit("no agent takes announcements here")
        connection.connect((address, int(port)))
        connection.sendall(bytes(int(size)))
        connection.shutdown(socket.SHUT_WR)
        connection.recv(1)
    time.sleep(pause)
"""


def spec() -> Spec:
    """Return two leaves with two hosts each, two spines."""
    link = {"rate_mbps": 50, "buffer_packets": 256}
    sizes = {"kind": "fixed", "bytes": FLOW_BYTES}
    flows = {
        "count": 1,
        "sizes": sizes,
        "arrivals": {"kind": "poisson", "rate_per_s": 1},
        "pattern": "random",
    }
    return spec_from_dict(
        {
            "name": "grants",
            "title": "Latency of grants",
            "fabric": {"leaves": 2, "spines": 2, "hosts_per_leaf": 2, "link": link, "access": link},
            "schemes": ["capton"],
            "workload": {"flows": flows},
        }
    )


def run() -> dict[str, Any]:
    """Measure, and return the figures."""
    with Deployment(spec()) as lab:
        before = _latencies(lab)
        send(lab)
        time.sleep(COUNTERS_S)
        latencies = _latencies(lab).less(before)
    median, p99 = latencies.quantile_us(0.5), latencies.quantile_us(0.99)
    if median is None or p99 is None or len(latencies) < 2 * FLOWS:
        raise BenchmarkError(f"{len(latencies)} requests of {2 * FLOWS} flows were decided")
    figures = {
        "median": Figure(median / 1e3, "ms", MEDIAN_GOAL_MS),
        "p99": Figure(p99 / 1e3, "ms", P99_GOAL_MS),
        "decisions": Figure(len(latencies), "decisions"),
    }
    notes = [f"{100 * share:g} % within {latencies.quantile_us(share):.0f} us" for share in (0.1, 0.9, 0.999)]
    return document(figures, tuple(notes))


def send(lab: Deployment) -> None:
    """Send all flows, from the hosts of the first leaf to those of the second one."""
    places = {place.name: place.overlay for place in lab.spec.fabric.hosts()}
    sinks = [
        lab.lab.popen(host, [sys.executable, "-c", _SINK, str(PORT)], stdout=subprocess.PIPE, text=True)
        for host in ("h3", "h4")
    ]
    try:
        for sink in sinks:
            assert sink.stdout is not None
            if "listening" not in sink.stdout.readline():
                raise BenchmarkError("a receiver did not start")
        sources = [
            lab.lab.popen(
                source,
                [sys.executable, "-c", _SOURCE, places[source], places[target]]
                + [str(argument) for argument in (PORT, FLOWS, FLOW_BYTES, PAUSE_S)],
                stderr=subprocess.PIPE,
                text=True,
                cwd=ROOT,
            )
            for source, target in (("h1", "h3"), ("h2", "h4"))
        ]
        for sender in sources:
            _, errors = sender.communicate(timeout=START_S + FLOWS * (PAUSE_S + 1.0))
            if sender.returncode:
                raise BenchmarkError(f"a sender failed: {errors.strip()}")
    finally:
        for sink in sinks:
            sink.kill()
            sink.communicate()


def _latencies(lab: Deployment) -> Latencies:
    return Latencies.from_counters(agent["counters"] for agent in lab.client.agents())
