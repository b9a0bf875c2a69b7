"""Processor time of an agent with and without priority by type, under the same traffic: Figure 10 of the TPFS paper.

Two agents on a bare link carry the same planned flows in turn: with thresholds, 1000 types' values and records of
finished flows reported to the controller, and without any of it. What counts is the difference of a turn and the next.
"""

from __future__ import annotations

import statistics
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.agent_pair import HOSTS, OVERLAY, AgentPair
from experiments.run.traffic import Traffic
from protocol.control import FlowTypes
from protocol.policy import ClassPolicy, PathSettings, Policy
from protocol.priority import PriorityPolicy, TypePriority
from topologies.processes import cpu_s
from workloads.description import Application, Arrivals, Endpoint, Flows, Sizes, Workload
from workloads.plan import Plan, build_plan

ROUNDS: Final = 6
SECONDS: Final = 4.0
RATE_PER_S: Final = 120.0
APPLICATIONS: Final = (
    Application("web-search", Sizes("table", table="websearch", scale=0.1), port=5601),
    Application("hadoop", Sizes("table", table="hadoop"), port=5602),
)
THRESHOLDS: Final = tuple(50_000 * step for step in range(1, 8))
VALUES: Final = 1000


@dataclass(frozen=True, slots=True)
class AgentLoad:
    """Means over turns. share: of one core, in %, of one agent; added: with types less without, in points.

    mbps: payload that both agents sent; flows: of one turn.
    """

    share: float
    added: float
    mbps: float
    flows: int


def agent_load() -> AgentLoad:
    """Return the measured load of an agent. Needs root, about a minute."""
    plan = _plan()
    seconds = plan.window_s[1]
    endpoints = [Endpoint(host, leaf, OVERLAY[leaf - 1]) for leaf, host in enumerate(HOSTS, 1)]
    versions = iter(range(2, 1000))
    without: list[float] = []
    added: list[float] = []
    with tempfile.TemporaryDirectory(prefix="capstan-bench-") as logs, AgentPair(_policy(1, False)) as pair:

        def popen(host: str | None, argv: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
            assert host is not None
            options.pop("cwd", None)  # the pair has one
            return pair.popen(HOSTS.index(host), argv, **options)

        with Traffic(popen, endpoints, Path(logs)) as traffic:
            for turn in range(ROUNDS):
                shares = {}
                for typed in (False, True) if turn % 2 else (True, False):
                    version = next(versions)
                    pair.set_policy(_policy(version, typed))
                    if typed:
                        pair.server.set_flow_types(_types(version))
                    shares[typed] = _turn(pair, traffic, plan) / seconds * 100
                without.append(shares[False])
                added.append(shares[True] - shares[False])
    sent = sum(flow.size_bytes or 0 for flow in plan.flows)
    return AgentLoad(
        statistics.mean(without), statistics.median(added), sent * 8e-6 / seconds, len(plan.flows)
    )


def _turn(pair: AgentPair, traffic: Traffic, plan: Plan) -> float:
    """Return seconds of processor that an agent spent on the plan's flows, mean of both."""
    agents = [agent for agent in pair.agents if agent is not None]
    traffic.prepare(plan)
    before = sum(cpu_s(agent.pid) for agent in agents)
    traffic.run(plan.window_s[1] + 20, lambda _finished, _failed: None)
    spent = sum(cpu_s(agent.pid) for agent in agents) - before
    failed = [flow.error for flow in traffic.stop_flows()[0] if flow.state != "finished"]
    if failed:
        raise RuntimeError(f"{len(failed)} of {len(plan.flows)} flows failed, the first: {failed[0]}")
    return spent / len(agents)


def _plan() -> Plan:
    flows = Flows(
        arrivals=Arrivals(rate_per_s=RATE_PER_S),
        pattern="random",
        duration_s=SECONDS,
        applications=APPLICATIONS,
    )
    hosts = [Endpoint(host, leaf, "") for leaf, host in enumerate(HOSTS, 1)]
    return build_plan(Workload(flows), hosts, seed=1, repeat=0, warm_up_s=0.2, capacity_bps=None)


def _policy(version: int, typed: bool) -> Policy:
    class_policy = ClassPolicy(PathSettings("flow-hash"))
    priority = PriorityPolicy("bytes-sent", THRESHOLDS, predicted=True) if typed else PriorityPolicy()
    return Policy(
        version, "bench", short=class_policy, long=class_policy, control=class_policy, priority=priority
    )


def _types(version: int) -> FlowTypes:
    """Return types by which half of the ports in use begin two queues lower; no port has the other values."""
    values = tuple((str(5602 + number),) for number in range(VALUES))
    return FlowTypes(version, ("destination_port",), (TypePriority(values, (0, 0, *THRESHOLDS[2:])),))
