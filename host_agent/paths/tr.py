"""Traffic-aware rerouting in order: TR.

"Fine-grained load balancing with traffic-aware rerouting in datacenter networks", Journal of Cloud Computing 10,
2021, doi:10.1186/s13677-021-00252-8, Algorithm 1. TNL is the *time to next leaf*. A packet may take the paths S
whose TNL is not below what the flow's previous packet still needs (c_TNL >= p_TNL), so it cannot overtake. Of S a
short flow takes the path with the smallest TNL, a long flow the one with the fewest active short flows, ties by
TNL. A flow without a packet for a round-trip time is inactive.

The paper runs on the leaf switch, which sees all its queues, and reads the others' lengths off the ACKs' TTL field.
An agent has the one-way delays of its own packets instead, and they are old when they come. Hence:

- *at least* (for c_TNL): the newest delay less the time since; a queue cannot shrink faster than time passes.
- *expected* (for p_TNL): Lindley's recursion from the newest delay over what this agent has sent there since, and
  four mean deviations (as TCP's for its time-out) for what others send meanwhile. Not less than for how long the
  flow's previous packet is overdue; 0 once it is reported.
- To compare paths: the largest of what is expected, the newest delay (a long queue mostly lasts), for how long a
  packet there is overdue (what waits reports nothing), and what other agents of the leaf say that they wait there.

Base delays cancel out: all are above the least to the same peer.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import ClassVar, Final

from host_agent.paths.base import Flow, Load, PathPolicy, Report, Route, flow_entropy, stamp_of_label
from protocol.underlay import TrafficClass, label_of

PACKET_BYTES: Final = 1500
"""What a packet time is the time of."""
FIRST_RTT_PACKET_TIMES: Final = 32.0
"""Round-trip time while none is measured."""
FULL_PACKET_TIMES: Final = 256.0
"""Of a full buffer: longer nothing waits, and for so long a queue is taken to stay as it was."""
SHARED_PACKET_TIMES: Final = 2048.0
"""How long what others said is believed, if they say nothing more: it is told when it changes."""
STEP_PACKET_TIMES: Final = 8.0
"""Of delays that are shared: less is no news."""


@dataclass(slots=True)
class _Path:
    """What is known of a path to one leaf; times in seconds."""

    delay: float = 0.0
    """Of the newest packet reported."""
    sent: float = 0.0
    """When that packet left."""
    deviation: float = 0.0
    """Mean difference between two reports in succession."""
    own: deque[tuple[float, float]] = field(default_factory=deque)
    """Packets that left after it: when, and their time on the slowest link."""
    wait: float = 0.0
    """What a packet that left at ``at`` had to wait for, those that left before counted."""
    at: float = 0.0
    stale: bool = False
    """Whether a report has come since ``wait`` was reckoned."""
    others: float = 0.0
    """Delay that other agents of our leaf have there, and when they said so."""
    told: float = 0.0

    def expected(self, now: float) -> float:
        if self.stale:
            self._reckon()
        return max(0.0, self.wait - (now - self.at))

    def late(self, now: float, lag: float, most: float) -> float:
        """The newest delay, until *most* after it was heard of; or how long the oldest unreported packet is overdue.

        lag: how long reports take to come. A packet that is overdue by more than *most* is lost.
        """
        late = self.delay if now - self.sent - self.delay <= most else 0.0
        own = self.own
        while own:
            overdue = now - own[0][0] - lag
            if overdue <= most:
                return overdue if overdue > late else late
            own.popleft()
        return late

    def rank(self, now: float, lag: float, most: float, shared: float) -> float:
        """TNL to compare paths by: a queue that was long a moment ago is taken to be so still."""
        if self.stale:
            self._reckon()
        rank = self.wait - (now - self.at)
        if self.own or self.delay > 0.0:
            late = self.late(now, lag, most)
            if late > rank:
                rank = late
        if self.others > rank and now - self.told <= shared:
            return self.others
        return rank if rank > 0.0 else 0.0

    def _reckon(self) -> None:
        """Lindley's recursion, from the newest delay over what we have sent since."""
        wait, at = self.delay, self.sent
        for left, own in self.own:
            wait = wait - (left - at) + own if wait > left - at else own
            at = left
        self.wait, self.at, self.stale = wait, at, False

    def put(self, own: float, now: float) -> None:
        """A packet of ours leaves for it."""
        self.wait, self.at = self.expected(now) + own, now
        self.own.append((now, own))

    def heard(self, delay: float, sent: float) -> None:
        """A packet that left then had this delay."""
        if sent < self.sent:
            return
        self.deviation += (abs(delay - self.delay) - self.deviation) / 8
        self.delay, self.sent, self.stale = delay, sent, True
        while self.own and self.own[0][0] <= sent:
            self.own.popleft()


@dataclass(slots=True)
class _State:
    label: int
    arrives: float = 0.0
    """When all its packets so far have arrived, as far as is known."""
    last: float = -1.0
    """When the last ones left, and how many of them were not reported."""
    pending: int = 0


class Tr(PathPolicy):
    """packet_time_s: of 1500 B on the slowest fabric link. Without names of paths, a flow keeps one entropy value."""

    learns: ClassVar[bool] = True

    def __init__(self, packet_time_s: float) -> None:
        self._byte_s = packet_time_s / PACKET_BYTES
        self._packet_time_s = packet_time_s
        self._rtt = FIRST_RTT_PACKET_TIMES * packet_time_s
        self._measured = False
        self._lag = self._rtt
        self._lag_deviation = 0.0
        self._full_s = FULL_PACKET_TIMES * packet_time_s
        self._shared_s = SHARED_PACKET_TIMES * packet_time_s
        self._step_s = STEP_PACKET_TIMES * packet_time_s
        self._paths: dict[tuple[str, int], _Path] = {}
        """By leaf and label."""
        self._known: dict[Route, tuple[tuple[int, ...], list[tuple[int, _Path]]]] = {}
        self._flows: dict[int, _State] = {}
        self._active: OrderedDict[int, tuple[int, float]] = OrderedDict()
        """Short flows: label and time of the last packet, the longest silent one first."""
        self._short: dict[int, int] = {}
        """Short flows that are active here, by label."""
        self._others: dict[int, int] = {}

    def entropy(self, flow: Flow, route: Route, size: int, now: float) -> int:
        if not route.labels:
            return flow_entropy(flow)
        label = self._choose(flow, route, now)
        self._note(flow, route, label, 1, size, now)
        return label

    def entropies(self, flow: Flow, route: Route, size: int, count: int, last: int, now: float) -> list[int]:
        """One decision: at one time, the next packet's S is the path of the one before and those that are worse."""
        if not route.labels:
            return [flow_entropy(flow)] * count
        label = self._choose(flow, route, now)
        self._note(flow, route, label, count, size * (count - 1) + last, now)
        return [label] * count

    def reported(self, report: Report, now: float) -> None:
        if report.stamp == 0:
            return
        self._measure(now - report.sent)
        self._measure_lag(now - report.sent - report.delay_s)
        label = label_of(report.stamp)
        self._path(report.leaf, label).heard(report.delay_s, report.sent)
        state = self._flows.get(report.flow)
        if state is not None and report.sent == state.last:
            state.pending -= 1
            if state.pending <= 0:
                state.arrives = 0.0  # and so have those before it, by the order that is kept

    def forget(self, flow: int) -> None:
        self._flows.pop(flow, None)
        self._silence(flow)

    def load(self, now: float) -> Load:
        self._expire(now)
        delays: dict[str, dict[int, float]] = {}
        lag = self._lag + 4 * self._lag_deviation
        for (leaf, label), path in self._paths.items():
            steps = int(path.late(now, lag, self._full_s) / self._step_s)
            if steps:
                delays.setdefault(leaf, {})[stamp_of_label(label)] = steps * self._step_s
        return Load({stamp_of_label(label): count for label, count in self._short.items() if count}, delays)

    def set_load(self, load: Load, now: float) -> None:
        self._others = {label_of(stamp): count for stamp, count in load.short_flows.items()}
        for path in self._paths.values():
            path.others = 0.0
        for leaf, delays in load.delays_s.items():
            for stamp, delay in delays.items():
                path = self._path(leaf, label_of(stamp))
                path.others, path.told = delay, now

    def _choose(self, flow: Flow, route: Route, now: float) -> int:
        """Algorithm 1. Of paths that are equal a flow keeps its own, and a new one is drawn by hash."""
        state = self._flows.get(flow.id)
        here, left = 0, 0.0
        if state is not None and state.label in route.labels:
            here, left = state.label, state.arrives - now
            if state.pending > 0:
                overdue = now - state.last - self._lag - 4 * self._lag_deviation
                if left < overdue <= self._full_s:
                    left = overdue
        long = route.traffic_class is TrafficClass.LONG
        lag, most, shared = self._lag + 4 * self._lag_deviation, self._full_s, self._shared_s
        if long:
            self._expire(now)
        elif here and self._path(route.leaf, here).rank(now, lag, most, shared) <= 0.0:
            return here
        best, fewest, least = 0, 0, 0.0
        for label, path in self._ways(route):
            if left > 0.0 and label != here and path.delay - (now - path.sent) < left:
                continue  # c_TNL, at least, is below p_TNL
            crowd = self._short.get(label, 0) + self._others.get(label, 0) if long else 0
            expected = path.rank(now, lag, most, shared)
            if best and (crowd, expected) > (fewest, least):
                continue
            if best and (crowd, expected) == (fewest, least) and not _sooner(flow, label, best, here):
                continue
            best, fewest, least = label, crowd, expected
        return best

    def _ways(self, route: Route) -> list[tuple[int, _Path]]:
        """Labels with what is known of their paths."""
        known = self._known.get(route)
        if known is None or known[0] is not route.labels:
            ways = [(label, self._path(route.leaf, label)) for label in route.labels]
            known = self._known[route] = route.labels, ways
        return known[1]

    def _note(self, flow: Flow, route: Route, label: int, count: int, size: int, now: float) -> None:
        if flow.id < 0:
            return  # our feedback: nobody reports it, and it needs no order
        path = self._path(route.leaf, label)
        path.put(size * self._byte_s, now)
        state = self._flows.get(flow.id)
        if state is None:
            state = self._flows[flow.id] = _State(label)
        state.label = label
        if state.last == now:
            state.pending += count
        else:
            state.last, state.pending = now, count
        arrives = now + path.expected(now) + 4 * path.deviation + self._packet_time_s
        state.arrives = max(state.arrives, arrives)
        if route.traffic_class is TrafficClass.SHORT:
            self._silence(flow.id)
            self._active[flow.id] = label, now
            self._short[label] = self._short.get(label, 0) + 1
        elif route.traffic_class is TrafficClass.LONG and flow.id in self._active:
            self._silence(flow.id)  # it has grown long

    def _path(self, leaf: str, label: int) -> _Path:
        path = self._paths.get((leaf, label))
        if path is None:
            path = self._paths[leaf, label] = _Path()
        return path

    def _measure(self, rtt: float) -> None:
        if self._measured:
            self._rtt += (rtt - self._rtt) / 8
        else:
            self._rtt, self._measured = rtt, True

    def _measure_lag(self, lag: float) -> None:
        self._lag_deviation += (abs(lag - self._lag) - self._lag_deviation) / 4
        self._lag += (lag - self._lag) / 8

    def _expire(self, now: float) -> None:
        while self._active:
            flow, (_, last) = next(iter(self._active.items()))
            if now - last <= self._rtt:
                return
            self._silence(flow)

    def _silence(self, flow: int) -> None:
        gone = self._active.pop(flow, None)
        if gone is not None:
            self._short[gone[0]] -= 1


def _sooner(flow: Flow, label: int, other: int, here: int) -> bool:
    """Whether *label* comes before an equal one. Flows that know nothing of paths spread over all of them."""
    if label == here or other == here:
        return label == here
    return _mixed(flow.hash, label) < _mixed(flow.hash, other)


def _mixed(flow_hash: int, label: int) -> int:
    return (flow_hash ^ label * 0x9E3779B1) * 0x85EBCA6B >> 7 & 0xFFFF
