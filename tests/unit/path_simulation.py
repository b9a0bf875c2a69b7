"""Flows over parallel FIFO paths under a path policy, with the feedback that an agent gets, event by event.

The queues are the truth; the policy learns of them only what peers report, late and in batches.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from host_agent.paths.base import Load, PathPolicy, Report, Route
from protocol.underlay import LABEL_FIRST, TrafficClass, label_of

PACKET_BYTES = 1426
BASE_S = 0.0002
FEEDBACK_S = 0.005
SHARE_S = 0.05
SHORT_LIMIT = 100_000


@dataclass(eq=False)
class SimFlow:
    """Window-limited: ``window`` packets are on their way until ``left`` is 0."""

    id: int
    hash: int
    agent: int
    left: int
    window: int
    sent: int = 0
    newest: int = -1
    arrived: int = 0
    reordered: int = 0
    began: float = 0.0
    finished: float | None = None
    paths: Counter[int] = field(default_factory=Counter)


class Fabric:
    """``rates``: packets per second of each path, shared by all agents. policies: one for each agent. share: whether
    each gets what the others have."""

    def __init__(
        self, policies: list[PathPolicy], rates: list[float], rng: np.random.Generator, share: bool = True
    ) -> None:
        self.policies = policies
        self.rng = rng
        self.now = 0.0
        self.flows: list[SimFlow] = []
        self._free_at = [0.0] * len(rates)
        self._service = [1.0 / rate for rate in rates]
        labels = tuple(label_of(stamp) for stamp in range(1, len(rates) + 1))
        self._routes = {kind: Route("b", kind, labels) for kind in TrafficClass}
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        self._reported: list[list[tuple[SimFlow, Report]]] = [[] for _ in policies]
        self._feedback_due = [False] * len(policies)
        self._least = [np.inf] * len(policies)
        if share:
            self.at(SHARE_S, self._share)

    def at(self, when: float, what: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._events, (when, self._count, what))

    def start(self, when: float, agent: int, packets: int, window: int) -> None:
        flow = SimFlow(len(self.flows) + 1, int(self.rng.integers(2**32)), agent, packets, window, began=when)
        self.flows.append(flow)
        self.at(when, lambda: [self._send(flow) for _ in range(min(window, flow.left))] and None)

    def run(self, seconds: float) -> None:
        while self._events and self._events[0][0] <= seconds:
            self.now, _, what = heapq.heappop(self._events)
            what()

    def _send(self, flow: SimFlow) -> None:
        if flow.left == 0:
            return
        flow.left -= 1
        number, left = flow.sent, self.now
        flow.sent += 1
        long = number * PACKET_BYTES >= SHORT_LIMIT
        route = self._routes[TrafficClass.LONG if long else TrafficClass.SHORT]
        label = self.policies[flow.agent].entropy(flow, route, PACKET_BYTES, left)
        path = label - LABEL_FIRST - 1
        flow.paths[path] += 1
        done = self._free_at[path] = max(self._free_at[path], left) + self._service[path]
        jitter = float(self.rng.exponential(0.00005))
        self.at(done + BASE_S, lambda: self._arrive(flow, number, label, left, jitter))

    def _arrive(self, flow: SimFlow, number: int, label: int, left: float, jitter: float) -> None:
        flow.arrived += 1
        flow.reordered += number < flow.newest
        flow.newest = max(flow.newest, number)
        if flow.left == 0 and flow.arrived == flow.sent:
            flow.finished = self.now
            self.policies[flow.agent].forget(flow.id)
        agent, delay = flow.agent, self.now + jitter - left
        self._least[agent] = min(self._least[agent], delay)
        above = delay - self._least[agent]
        report = Report(flow.id, "b", label, label - LABEL_FIRST, above, left)
        self._reported[agent].append((flow, report))
        if not self._feedback_due[agent]:
            self._feedback_due[agent] = True
            self.at(self.now + FEEDBACK_S, lambda: self._feed_back(agent))
        self.at(self.now + BASE_S, lambda: self._send(flow))  # the ACK lets the window go on

    def _feed_back(self, agent: int) -> None:
        received, self._reported[agent] = self._reported[agent], []
        self._feedback_due[agent] = False

        def arrive() -> None:
            for _, report in received:
                self.policies[agent].reported(report, self.now)

        self.at(self.now + BASE_S, arrive)

    def _share(self) -> None:
        """Share loads as the controller does: each agent gets what the others have, all of one leaf."""
        loads = [policy.load(self.now) for policy in self.policies]

        def send_shared() -> None:
            for agent, policy in enumerate(self.policies):
                others = [load for other, load in enumerate(loads) if other != agent and load is not None]
                flows: Counter[int] = Counter()
                delays: dict[int, float] = {}
                for load in others:
                    flows.update(load.short_flows)
                    for stamp, delay in load.delays_s.get("b", {}).items():
                        delays[stamp] = max(delay, delays.get(stamp, 0.0))
                policy.set_load(Load(dict(flows), {"b": delays}), self.now)

        self.at(self.now + SHARE_S, send_shared)
        self.at(self.now + SHARE_S, self._share)

    def reordering(self) -> float:
        """Share of packets that came after a later one of their flow."""
        return sum(flow.reordered for flow in self.flows) / sum(flow.arrived for flow in self.flows)
