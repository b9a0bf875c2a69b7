"""How strict the priority queues of real switches' ports are: what a flood in a low queue costs a high-priority flow.

Two hosts of one leaf send to two of another over one link of 20 Mbit/s: the one floods a low queue at 2.5 times that
rate, the other has a TCP connection, or sends single datagrams back and forth, in the highest queue.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from benchmarks.figures import BenchmarkError, Figure, Goal, document
from benchmarks.unused_workload import UNUSED_WORKLOAD
from experiments.run.deployment import ROOT, Deployment
from experiments.spec.spec import SchemeChoice, spec_from_dict

GOODPUT_GOAL_PERCENT: Final = Goal(2.0, cores=2)
LINK_MBPS: Final = 20.0
WIRES_MS: Final = 2 * 1514 * 8 / LINK_MBPS / 1e3
"""What strict queues cannot take away: a packet of the flood on each of the two links of the way."""
P99_GOAL_MS: Final = Goal(round(WIRES_MS + 1.0, 1), cores=2)
FLOOD_MBPS: Final = 50.0
QUEUES: Final = 8
PORT: Final = 5201
PINGS: Final = 1500
PING_EVERY_S: Final = 0.003
TCP_S: Final = 4.0
ROUNDS: Final = 3
OVERLOAD_S: Final = 5.0
COUNTED_WITHIN_S: Final = 60.0
EIGHT: Final = SchemeChoice("ecmp", "eight queues", {"queues": {"number": QUEUES}})
ONE: Final = SchemeChoice("ecmp", "one queue")


class QueueLab:
    """Hosts h1, h2 at leaf l1 and h3, h4 at l2, with one link of *link_mbps* from each leaf to spine s1."""

    def __init__(self, buffer_packets: int | None = None, link_mbps: float = LINK_MBPS) -> None:
        self.link_mbps = link_mbps
        overrides = {"queues": {"number": QUEUES, "buffer_packets": buffer_packets}}
        self.deployment = Deployment(
            spec_from_dict(
                {
                    "name": "queues",
                    "title": "queues",
                    "fabric": {
                        "leaves": 2,
                        "spines": 1,
                        "hosts_per_leaf": 2,
                        "link": {"rate_mbps": link_mbps},
                        "access": {"rate_mbps": 5 * link_mbps},
                    },
                    "schemes": [{"name": "ecmp", "label": "eight queues", "overrides": overrides}],
                    "workload": UNUSED_WORKLOAD,
                }
            )
        )

    def __enter__(self) -> QueueLab:
        self.deployment.start()
        self.address = {place.name: place.underlay for place in self.deployment.spec.fabric.hosts()}
        return self

    def __exit__(self, *_: object) -> None:
        self.deployment.stop()

    def start(self, host: str, *words: object) -> subprocess.Popen[str]:
        """Return a program of `benchmarks.queue_traffic` on a host."""
        process: subprocess.Popen[str] = self.deployment.lab.popen(
            host,
            [sys.executable, "-m", "benchmarks.queue_traffic", *map(str, words)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        return process

    def started(self, host: str, *words: object) -> subprocess.Popen[str]:
        """Return the same, once it has said its first word."""
        process = self.start(host, *words)
        assert process.stdout is not None
        if not process.stdout.readline():
            raise BenchmarkError(f"{words[0]} on {host}: {process.communicate()[1][-500:]}")
        return process

    @contextmanager
    def flood(self, *rates: str, seconds: float = 600.0) -> Iterator[subprocess.Popen[str]]:
        """Send from h1 to h3, as ``PRIORITY:MBPS``, until the block ends."""
        drain = self.started("h3", "drain", PORT)
        sender = self.started("h1", "flood", self.address["h3"], PORT, seconds, *rates)
        try:
            yield sender
        finally:
            for process in (sender, drain):
                process.kill()
                process.communicate()

    def goodput(self, seconds: float = TCP_S) -> float:
        """Return the goodput of a TCP connection from h2 to h4 in the highest queue, Mbit/s, after its first second."""
        sink = self.started("h4", "receive", PORT, 1.0, seconds)
        source = self.started("h2", "send", self.address["h4"], PORT, 0, seconds + 2)
        output = answer(sink, seconds + 60)
        source.kill()
        source.communicate()
        return float(output)

    def round_trips(self, count: int = PINGS) -> list[float]:
        """Return round trips between h2 and h4 in the highest queue, in ms. Raise BenchmarkError if one is
        lost.
        """
        reflector = self.started("h4", "echo", PORT, 0)
        pinging = self.start("h2", "ping", self.address["h4"], PORT, 0, count, PING_EVERY_S)
        times = answer(pinging, 120 + count * 0.1)
        reflector.kill()
        reflector.communicate()
        lost = times.count(None)
        if lost:
            raise BenchmarkError(f"{lost} of {count} datagrams of the highest priority were lost")
        return [float(text) for text in times]

    def wait_empty(self, queue: int, seconds: float = 60.0) -> None:
        """Wait until a queue of l1's link has nothing to send: what a connection has left behind goes first."""
        deadline = time.monotonic() + seconds
        while self.port("l1", "s1")["counters"][queue]["waiting_packets"]:
            if time.monotonic() > deadline:
                raise BenchmarkError(f"queue {queue} is not empty after {seconds:g} s")
            time.sleep(0.3)

    def port(self, switch: str, towards: str) -> dict[str, Any]:
        """Return what the controller says of a switch's port to another one, with its counters of now: waits for
        those."""
        link = next(link for link in self.deployment.lab.net.links if link.name == f"{switch}-{towards}")
        name = (link.intf1 if link.intf1.node.name == switch else link.intf2).name
        began = time.monotonic()
        while True:
            took_s = time.monotonic() - began  # counters may be older than the question, as the answer says
            view = self.deployment.client.queues()
            ports_of_switch = next(
                switch_view for switch_view in view["switches"] if switch_view["switch"] == switch
            )
            port: dict[str, Any] = next(
                candidate for candidate in ports_of_switch["ports"] if candidate["name"] == name
            )
            if port["counters"] and ports_of_switch["counted_s_ago"] <= took_s:
                return port
            if took_s > COUNTED_WITHIN_S:
                raise BenchmarkError(f"no counters of {switch}'s port {name} within {COUNTED_WITHIN_S:g} s")
            time.sleep(0.02)


def answer(process: subprocess.Popen[str], seconds: float) -> Any:
    """Return the JSON that a program ends with."""
    out, err = process.communicate(timeout=seconds)
    if process.returncode or not out.strip():
        raise BenchmarkError(f"{process.args!r}: {err[-500:]}")
    return json.loads(out.splitlines()[-1])


def sent_in(before: dict[str, Any], after: dict[str, Any], counter: str = "sent_bytes") -> list[int]:
    """Return what a port's queues have sent (or dropped) between two looks."""
    pairs = zip(before["counters"], after["counters"], strict=True)
    return [int(late[counter]) - int(early[counter]) for early, late in pairs]


def levels_in_order(sent: Sequence[int], offered: Sequence[int]) -> int:
    """Return how many queues, from the highest on, got what is left by those above them, within 5 % of what was
    *offered* to
    each. Together they got *sum(sent)*: all that the link could carry."""
    remaining, right = float(sum(sent)), 0
    for got, wanted in zip(sent, offered, strict=True):
        if abs(got - min(wanted, max(0.0, remaining))) > 0.05 * wanted:
            break
        remaining -= got
        right += 1
    return right


def overload(lab: QueueLab, seconds: float) -> tuple[list[int], list[int], list[int]]:
    """Return all queues at a quarter of the link each: bytes sent, packets dropped and bytes offered, by queue."""
    each = lab.link_mbps / 4
    with lab.flood(*(f"{priority}:{each}" for priority in range(QUEUES))):
        time.sleep(1.0)  # low queues fill
        before = lab.port("l1", "s1")
        time.sleep(seconds)
        after = lab.port("l1", "s1")
    sent, dropped = sent_in(before, after), sent_in(before, after, "dropped_packets")
    waiting = sent_in(before, after, "waiting_bytes")
    offered = [before + lost * 1514 + more for before, lost, more in zip(sent, dropped, waiting, strict=True)]
    return sent, dropped, offered


def run() -> dict[str, Any]:
    with QueueLab() as lab:
        calm, flooded, quiet, loud = [], [], list[float](), list[float]()
        before = lab.port("l1", "s1")
        for _ in range(ROUNDS):
            lab.wait_empty(0)
            quiet += lab.round_trips()
            calm.append(lab.goodput())
            with lab.flood(f"{QUEUES - 1}:{FLOOD_MBPS}"):
                lab.wait_empty(0)
                loud += lab.round_trips()
                flooded.append(lab.goodput())
        after = lab.port("l1", "s1")
        sent, _, offered = overload(lab, OVERLOAD_S)
        switching = []
        for _ in range(5):
            lab.deployment.set_scheme(ONE)
            switching.append(float(lab.deployment.set_scheme(EIGHT)["applied_ms"]))
        reading = []
        for _ in range(10):
            time.sleep(0.3)
            began = time.perf_counter()
            lab.deployment.client.queues()
            reading.append((time.perf_counter() - began) * 1e3)
    cost = (1 - statistics.mean(flooded) / statistics.mean(calm)) * 100
    p99, p99_loud = (statistics.quantiles(times, n=100)[98] for times in (quiet, loud))
    figures = {
        "goodput_alone": Figure(statistics.mean(calm), "Mbit/s"),
        "goodput_beside_flood": Figure(statistics.mean(flooded), "Mbit/s"),
        "goodput_cost": Figure(cost, "%", GOODPUT_GOAL_PERCENT),
        "rtt_p99_alone": Figure(p99, "ms"),
        "rtt_p99_beside_flood": Figure(p99_loud, "ms"),
        "rtt_p99_added": Figure(p99_loud - p99, "ms", P99_GOAL_MS),
        "rtt_median_added": Figure(statistics.median(loud) - statistics.median(quiet), "ms"),
        "lowest_queue_drops": Figure(
            sent_in(before, after, "dropped_packets")[-1], "packets", None, "higher"
        ),
        "levels_in_order": Figure(levels_in_order(sent, offered), "queues", QUEUES, "higher"),
        "apply_median": Figure(statistics.median(switching), "ms"),
        "read_counters_median": Figure(statistics.median(reading), "ms"),
    }
    return document(
        figures,
        (
            f"one link of {LINK_MBPS:g} Mbit/s (a packet takes 0.6 ms), flood of {FLOOD_MBPS:g} Mbit/s in queue "
            f"{QUEUES - 1}; {ROUNDS} rounds of {TCP_S:g} s of TCP and {PINGS} round trips, with and without it",
            "sent by queue under overload, each offered a quarter of the link, Mbit/s: "
            + " ".join(f"{count / OVERLOAD_S * 8e-6:.2f}" for count in sent),
            "apply: 8 queues at all ports of the fabric, from the request to the answer (flow entries and agents too)",
        ),
    )
