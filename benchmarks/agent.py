"""What two host agents cost on a bare link: round-trip time, throughput, processor time, and what coding adds.

Pairs of network namespaces stand side by side and take turns: a bare link, naive tunnels that carry one packet at a
time and decide nothing (`naive_tunnel`; the floor is the one whose loop is compiled), and two agents. So all ratios are
within one run. Where `CAPSTAN_BENCH_BEFORE` names another checkout that is set up (`./capstan model` there builds its
kernels), its agents take turns with ours instead of the naive tunnel's.
"""

from __future__ import annotations

import json
import os
import re
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks import authentication
from benchmarks.agent_pair import OVERLAY, UNDERLAY, AgentPair, simple_policy, wait_until
from benchmarks.agent_short_flows import ACCESS_MBPS, MESSAGE_BYTES, PACKET_BYTES, short_flows
from benchmarks.figures import Figure, document
from protocol.policy import CodingPolicy, Policy
from topologies.processes import cpu_s

RTT_ADDED_GOAL_MS: Final = 0.15
TCP_RATIO_GOAL: Final = 0.35
CODED_RATIO_GOAL: Final = 0.9
LOSSY_RATIO_GOAL: Final = 0.6
CPU_GOAL_US: Final = 7.0
CODED_CPU_GOAL_US: Final = 7.8
LONE_CPU_GOAL_US: Final = 12.0
SUPER_PACKET_GOAL_US: Final = 15.0
SUPER_PACKET_SEGMENTS: Final = 37
ROUNDS: Final = 3
PINGS: Final = 100
PING_GAP_S: Final = 0.01
LONE_PINGS: Final = 1000
LONE_GAP_S: Final = 0.002
SECONDS: Final = 2
LOSS_PERCENT: Final = 1
K, R = 32, 4
CPU_UNIT: Final = "us a packet, both agents"
LONE_UNIT: Final = "us a lone packet, one agent"


@dataclass(frozen=True, slots=True)
class Transfer:
    """One TCP flow: rate that arrived, and what both agents spent on each packet of it (0 where there are none)."""

    mbps: float
    cpu_us: float
    repairs: float
    """For each packet."""
    user_us: float
    """What the sending agent spent outside of the kernel on each packet."""


def run() -> dict[str, Any]:
    """Measure, and return the figures."""
    before = os.environ.get("CAPSTAN_BENCH_BEFORE")
    if before:
        return _compare(Path(before).resolve())
    with ExitStack() as stack:
        bare = stack.enter_context(AgentPair(simple_policy(1), agents=False))
        naive = stack.enter_context(AgentPair(simple_policy(1), agents=False))
        agents = stack.enter_context(AgentPair(simple_policy(1)))
        floor = stack.enter_context(AgentPair(simple_policy(1), agents=False))
        _start_naive(naive)
        floor_pids = _start_naive(floor, "compiled")
        use = _use(agents)
        figures = _round_trips({"bare": bare, "naive": naive, "agents": agents})
        figures |= _lone_figures({"cpu_lone": (agents, _pids(agents)), "cpu_lone_floor": (floor, floor_pids)})
        figures |= _transfers(bare, naive, agents, use)
        figures |= short_flows(agents, use, ROUNDS)
    notes = (
        "each pair: one veth link, offloads off; TCP: one flow, cubic, the best of "
        f"{ROUNDS} turns of {SECONDS} s; RTT: medians of {ROUNDS * PINGS} pings",
        "naive: a tunnel in Python, one packet at a time, that decides nothing; floor: the same, its loop in Rust",
        "wakeup: of a process that slept, three to four of which are in a round trip over two agents",
        f"coded: mds, units of {K} packets and {R} repairs, or less where TCP's window is smaller",
        f"packet, message: {PACKET_BYTES} and {MESSAGE_BYTES} B over access links of {ACCESS_MBPS} Mbit/s, from write "
        "to the last byte read; repairs of its first packets take room on the link before a message's last ones",
        "authentication: of datagrams by a key of the pair (--authenticate-datagrams), of two cores without a network",
    )
    return document(figures | authentication.figures(), notes)


def _compare(checkout: Path) -> dict[str, Any]:
    """Measure agents of another checkout and ours in turns; return the figures."""
    with ExitStack() as stack:
        bare = stack.enter_context(AgentPair(simple_policy(1), agents=False))
        before = stack.enter_context(AgentPair(simple_policy(1), checkout=checkout))
        agents = stack.enter_context(AgentPair(simple_policy(1)))
        figures = _round_trips({"bare": bare, "before": before, "agents": agents})
        floor = stack.enter_context(AgentPair(simple_policy(1), agents=False))
        floor_pids = _start_naive(floor, "compiled")
        pairs = {"before": before, "agents": agents}
        lone = {f"cpu_lone_{name}": (pair, _pids(pair)) for name, pair in pairs.items()}
        figures |= _lone_figures({**lone, "cpu_lone_floor": (floor, floor_pids)})
        turns: dict[str, list[Transfer]] = {}
        uses = {name: _use(pair) for name, pair in pairs.items()}
        for _ in range(ROUNDS):
            turns.setdefault("bare", []).append(_transfer(bare, UNDERLAY[1]))
            for coded in (False, True):
                for name, pair in pairs.items():
                    uses[name](coded)
                    kind = f"{'coded' if coded else 'uncoded'}_{name}"
                    turns.setdefault(kind, []).append(_transfer(pair, OVERLAY[1]))
    rate = {name: max(transfer.mbps for transfer in some) for name, some in turns.items()}
    for name in pairs:
        uncoded, coded_ones = turns[f"uncoded_{name}"], turns[f"coded_{name}"]
        ratio = rate[f"uncoded_{name}"] / rate["bare"]
        figures |= {
            f"tcp_uncoded_ratio_{name}": Figure(ratio, "of bare", TCP_RATIO_GOAL, "higher"),
            f"tcp_coded_ratio_{name}": Figure(
                rate[f"coded_{name}"] / rate[f"uncoded_{name}"], "of uncoded", CODED_RATIO_GOAL, "higher"
            ),
            f"cpu_uncoded_{name}": Figure(min(turn.cpu_us for turn in uncoded), CPU_UNIT, CPU_GOAL_US),
            f"cpu_coded_{name}": Figure(min(turn.cpu_us for turn in coded_ones), CPU_UNIT, CODED_CPU_GOAL_US),
            f"super_packet_coded_{name}": _super_packet(coded_ones),
        }
    figures |= {f"tcp_{name}": Figure(mbps, "Mbit/s") for name, mbps in rate.items()}
    return document(
        figures, (f"before: the agents of {checkout}; the best of {ROUNDS} turns of {SECONDS} s",)
    )


def _super_packet(turns: list[Transfer]) -> Figure:
    least = min(turn.user_us for turn in turns)
    unit = f"us outside of the kernel, {SUPER_PACKET_SEGMENTS} segments"
    return Figure(least * SUPER_PACKET_SEGMENTS, unit, SUPER_PACKET_GOAL_US)


def _use(pair: AgentPair) -> Callable[[bool], None]:
    """Return what has the pair code its flows, or not."""
    versions = iter(range(2, 100))
    return lambda coded: pair.set_policy(_policy(next(versions), coded))


def _policy(version: int, coded: bool) -> Policy:
    """Return all flows short; in-order release in both, so that the code is the only difference."""
    coding = CodingPolicy(max_overhead=8.0, code="mds", unit="window", max_k=K, max_r=R) if coded else None
    return simple_policy(version, coding=coding, release_s=0.02, short_limit_bytes=1 << 40)


def _start_naive(pair: AgentPair, loop: str = "interpreted") -> list[int]:
    """Start a tunnel that decides nothing. Return its processes."""
    ends = []
    for host in range(2):
        argv = [sys.executable, "-m", "benchmarks.naive_tunnel", f"{OVERLAY[host]}/9"]
        ends.append(pair.popen(host, [*argv, UNDERLAY[host], UNDERLAY[1 - host], loop]))
    wait_until(
        lambda: "1 received" in pair.run(0, ["ping", "-c1", "-W1", OVERLAY[1]], check=False),
        60,
        lambda: f"the naive tunnel carries a packet ({loop})",
    )
    return [end.pid for end in ends]


# -- round trips ---------------------------------------------------------------------------------


def _round_trips(pairs: dict[str, AgentPair]) -> dict[str, Figure]:
    """Return round-trip times of each pair, and what each adds to the bare link's."""
    places = {name: (pair, (UNDERLAY if name == "bare" else OVERLAY)[1]) for name, pair in pairs.items()}
    samples: dict[str, list[float]] = {name: [] for name in places}
    wakeups: list[float] = []
    for _ in range(ROUNDS):
        wakeups += _wakeups_ms()
        for name, (pair, address) in places.items():
            out = pair.run(0, ["ping", "-c", str(PINGS), "-i", str(PING_GAP_S), address])
            samples[name] += [float(value) for value in re.findall(r"time=([\d.]+) ms", out)]
    rtt = {name: statistics.median(values) for name, values in samples.items()}
    figures = {f"rtt_{name}": Figure(value, "ms") for name, value in rtt.items()}
    figures |= {
        f"rtt_added_{name}": Figure(value - rtt["bare"], "ms")
        for name, value in rtt.items()
        if name not in {"bare", "agents"}
    }
    figures["rtt_added"] = Figure(rtt["agents"] - rtt["bare"], "ms", RTT_ADDED_GOAL_MS)
    figures["wakeup"] = Figure(statistics.median(wakeups), "ms")
    return figures


def _pids(pair: AgentPair) -> list[int]:
    return [agent.pid for agent in pair.agents if agent is not None]


def _lone_figures(ends: dict[str, tuple[AgentPair, list[int]]]) -> dict[str, Figure]:
    """Return what a lone packet costs, the least of turns, and as a multiple of the floor.

    ends: pairs and their processes by the figure's name; `cpu_lone_floor` is what the others are compared with.
    """
    turns = [{name: _lone_us(*end) for name, end in ends.items()} for _ in range(ROUNDS)]
    least = {name: min(turn[name] for turn in turns) for name in ends}
    floor_us = least.pop("cpu_lone_floor")
    figures = {name: Figure(us, LONE_UNIT, LONE_CPU_GOAL_US) for name, us in least.items()}
    figures["cpu_lone_floor"] = Figure(floor_us, LONE_UNIT)
    figures |= {f"{name}_ratio": Figure(us / floor_us, "of the floor") for name, us in least.items()}
    return figures


def _lone_us(pair: AgentPair, pids: list[int]) -> float:
    """Return the processor time of one end for one packet alone, microseconds: four passages are in a ping."""
    spent = sum(map(cpu_s, pids))
    pair.run(0, ["ping", "-q", "-c", str(LONE_PINGS), "-i", str(LONE_GAP_S), OVERLAY[1]])
    return (sum(map(cpu_s, pids)) - spent) / (4 * LONE_PINGS) * 1e6


_ECHO: Final = """
import socket, sys
there = socket.socket(fileno=int(sys.argv[1]))
while there.recv(1):
    there.send(b"-")
"""


def _wakeups_ms() -> list[float]:
    """Return how long a process that slept between pings takes to answer: half the round trip over a pair of sockets.

    An agent on the way cannot take less; a ping over two of them wakes three to four.
    """
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    echo = [sys.executable, "-c", _ECHO, str(there.fileno())]
    took = []
    with subprocess.Popen(echo, pass_fds=[there.fileno()]), here:
        there.close()
        here.send(b"-")
        here.recv(1)  # it has started
        for _ in range(PINGS):
            time.sleep(PING_GAP_S)
            began = time.perf_counter_ns()
            here.send(b"-")
            here.recv(1)
            took.append((time.perf_counter_ns() - began) / 2e6)
    return took


# -- throughput and processor time -----------------------------------------------------------------


def _transfers(
    bare: AgentPair, naive: AgentPair, agents: AgentPair, use: Callable[[bool], None]
) -> dict[str, Figure]:
    turns: dict[str, list[Transfer]] = {}

    def turn(name: str, pair: AgentPair, address: str) -> None:
        turns.setdefault(name, []).append(_transfer(pair, address))

    for _ in range(ROUNDS):
        turn("bare", bare, UNDERLAY[1])
        turn("naive", naive, OVERLAY[1])
        use(False)
        turn("uncoded", agents, OVERLAY[1])
        use(True)
        turn("coded", agents, OVERLAY[1])
        _lose(agents, True)
        turn("coded lossy", agents, OVERLAY[1])
        use(False)
        turn("uncoded lossy", agents, OVERLAY[1])
        _lose(agents, False)
    best = {name: max(some, key=lambda transfer: transfer.mbps) for name, some in turns.items()}
    cpu = {name: min(transfer.cpu_us for transfer in some) for name, some in turns.items()}
    rate = {name: transfer.mbps for name, transfer in best.items()}
    lossy = f"at {LOSS_PERCENT} % loss"
    return {
        "tcp_bare": Figure(rate["bare"], "Mbit/s"),
        "tcp_naive": Figure(rate["naive"], "Mbit/s"),
        "tcp_uncoded": Figure(rate["uncoded"], "Mbit/s"),
        "tcp_uncoded_ratio": Figure(rate["uncoded"] / rate["bare"], "of bare", TCP_RATIO_GOAL, "higher"),
        "tcp_coded": Figure(rate["coded"], "Mbit/s"),
        "tcp_coded_ratio": Figure(rate["coded"] / rate["uncoded"], "of uncoded", CODED_RATIO_GOAL, "higher"),
        "coded_repairs": Figure(best["coded"].repairs, "a packet"),
        "tcp_coded_lossy": Figure(rate["coded lossy"], f"Mbit/s {lossy}"),
        "tcp_coded_lossy_ratio": Figure(
            rate["coded lossy"] / rate["coded"], "of lossless", LOSSY_RATIO_GOAL, "higher"
        ),
        "tcp_uncoded_lossy": Figure(rate["uncoded lossy"], f"Mbit/s {lossy}"),
        "tcp_uncoded_lossy_ratio": Figure(rate["uncoded lossy"] / rate["uncoded"], "of lossless"),
        "cpu_uncoded": Figure(cpu["uncoded"], CPU_UNIT, CPU_GOAL_US),
        "cpu_coded": Figure(cpu["coded"], CPU_UNIT, CODED_CPU_GOAL_US),
        "super_packet_coded": _super_packet(turns["coded"]),
    }


def _transfer(pair: AgentPair, address: str) -> Transfer:
    agents = [agent for agent in pair.agents if agent is not None]
    counted = _counters(pair) if agents else {}
    server = pair.popen(1, ["iperf3", "-s", "-1", "-B", address], stdout=subprocess.DEVNULL)
    wait_until(lambda: ":5201" in pair.run(1, ["ss", "-Hltn"]), 60, lambda: "iperf3 listens")
    spent = sum(cpu_s(agent.pid) for agent in agents)
    user = _user_s(agents[0].pid) if agents else 0.0
    out = pair.run(0, ["iperf3", "-c", address, "-t", str(SECONDS), "-C", "cubic", "-J"])
    spent = sum(cpu_s(agent.pid) for agent in agents) - spent
    user = (_user_s(agents[0].pid) if agents else 0.0) - user
    server.wait(60)
    mbps = float(json.loads(out)["end"]["sum_received"]["bits_per_second"]) / 1e6
    if not agents:
        return Transfer(mbps, 0.0, 0.0, 0.0)
    after = _counters(pair)
    packets = after["packets_sent"] - counted["packets_sent"]
    repairs = after.get("repairs_sent", 0.0) - counted.get("repairs_sent", 0.0)
    return Transfer(mbps, spent / packets * 1e6, repairs / packets, user / packets * 1e6)


def _user_s(pid: int) -> float:
    """Return the processor time of a process outside of the kernel, in seconds, as its clock's ticks sample it."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return int(fields[11]) / os.sysconf("SC_CLK_TCK")


def _counters(pair: AgentPair) -> dict[str, float]:
    """Return the sending agent's counters, none of them older than this call."""
    called_at = time.monotonic()
    first = pair.counters(0)["cpu_s"]
    wait_until(
        lambda: pair.counters(0)["cpu_s"] != first and time.monotonic() - called_at > 1.1,
        60,
        lambda: "an agent reports its counters",
    )
    return pair.counters(0)


def _lose(pair: AgentPair, on: bool) -> None:
    """Lose datagrams at random before they reach the receiving host; its ACKs are spared."""
    if not on:
        pair.run(1, ["nft", "delete", "table", "ip", "loss"])
        return
    for line in (
        "add table ip loss",
        "add chain ip loss arriving { type filter hook prerouting priority -300 ; }",
        f"add rule ip loss arriving udp dport 47000-47063 numgen random mod 100 < {LOSS_PERCENT} drop",
    ):
        pair.run(1, ["nft", line])
