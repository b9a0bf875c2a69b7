"""Agents' reports of active flows, both sides of each joined: plain data in, plain data out.

An agent counts from its last report that said ``forget``; so totals here are sums of differences, and a count that has
become smaller began anew. A flow is known by its 5-tuple and by when its sender first saw it: ports are used again.
"""

from __future__ import annotations

import logging
from collections import Counter, OrderedDict, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from controller.live.past_flows import PastFlows
from protocol.control import ActiveFlows, FlowEntry

LOG: Final = logging.getLogger("capstan.live")
KEPT_FLOWS: Final = 10_000
"""Flows with a timeline; those before them are rows (`PastFlows`)."""
KEPT_STEPS: Final = 600
"""Steps of one flow's timeline."""
MOST_COUNTS: Final = 4_000_000
"""Numbers in all timelines and paths of the flows that are live, some 100 B each: above, a flow that has a new step
loses its oldest ones, and above twice as many the oldest flows become rows."""
_STEP_COUNTS: Final = 12
"""Of a step, besides its paths."""
SHOWN: Final = 200
"""Flows in a sample."""
ENDED_S: Final = 3.0
"""A flow without a report for this long has ended."""
SET_BACK_S: Final = 1.0
"""By so much before the last step, the clock has been set back."""
_PROTOCOLS: Final = {1: "icmp", 6: "tcp", 17: "udp", 58: "icmpv6", 132: "sctp"}
_COUNTS: Final = (
    "packets", "bytes", "repairs", "recovered", "lost", "reordered", "held", "release_timeouts",
)  # fmt: skip
_SHOWN_COUNTS: Final = ("repairs", "recovered", "lost", "reordered", "held", "release_timeouts")

Key = tuple[int, str, int, str, int]
State = Literal["active", "ended"]


@dataclass(slots=True)
class _Side:
    """What one end of a flow has counted."""

    first_s: float
    last: FlowEntry
    totals: Counter[str] = field(default_factory=Counter)
    paths: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class LiveFlow:
    """One flow. Times are Unix seconds."""

    id: int
    key: Key
    source: str
    destination: str
    started_at: float
    last_at: float
    traffic_class: str
    state: State = "active"
    sides: dict[str, _Side] = field(default_factory=dict)
    steps: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=KEPT_STEPS))
    reported: Counter[str] = field(default_factory=Counter)
    reported_paths: Counter[str] = field(default_factory=Counter)
    bits_per_s: float = 0.0
    paths_now: dict[str, int] = field(default_factory=dict)
    priority: int = 0
    counts: int = 0
    """In its steps and paths, as of its last step; those of its steps are in `counts_of_steps`."""
    counts_of_steps: int = 0

    def totals(self) -> Counter[str]:
        """Return the sender's packets, bytes and repairs, where it reported any; all else is the receiver's."""
        sender, receiver = self.sides.get("sender"), self.sides.get("receiver")
        totals = Counter(receiver.totals if receiver is not None else {})
        totals["received_bytes"] = totals["bytes"]
        if sender is not None:
            totals.update(
                {name: sender.totals[name] - totals[name] for name in ("packets", "bytes", "repairs")}
            )
        return totals

    def paths(self) -> Counter[str]:
        """Return the packets by path, as the receiver counts them; empty before it has reported."""
        receiver = self.sides.get("receiver")
        return receiver.paths if receiver is not None else Counter()

    def view(self) -> dict[str, Any]:
        """Return the flow as the API shows it."""
        totals = self.totals()
        protocol, _, source_port, _, destination_port = self.key
        return {
            "id": self.id,
            "source": self.source,
            "destination": self.destination,
            "protocol": _PROTOCOLS.get(protocol, str(protocol)),
            "source_port": source_port,
            "destination_port": destination_port,
            "traffic_class": self.traffic_class,
            "priority": self.priority,
            "state": self.state,
            "started_at": self.started_at,
            "last_at": self.last_at,
            "bytes": totals["bytes"],
            "received_bytes": totals["received_bytes"],
            "packets": totals["packets"],
            "bits_per_s": round(self.bits_per_s, 1),
            "paths": dict(self.paths()),
            "paths_now": self.paths_now,
            **{name: totals[name] for name in _SHOWN_COUNTS},
        }


class LiveFlows:
    """The newest flows that agents reported: KEPT_FLOWS of them live, older ones as they were."""

    def __init__(self) -> None:
        self._flows: OrderedDict[int, LiveFlow] = OrderedDict()
        self._now: dict[Key, LiveFlow] = {}
        self._before: dict[Key, LiveFlow] = {}
        """Of each 5-tuple: the flow that has it, and the one that had it last."""
        self._touched: dict[int, LiveFlow] = {}
        self._active: dict[int, LiveFlow] = {}
        self._past = PastFlows()
        self._next_id = 1
        self._stepped_at: float | None = None
        self._more: dict[str, int] = {}
        self._counts = 0

    def take(self, host: str, report: ActiveFlows, now: float, names: Mapping[str, str]) -> None:
        """Take the report of the agent of *host*. *now*: Unix seconds. *names*: hosts by overlay address."""
        self._more[host] = report.more
        for entry in report.flows:
            if entry.side in ("sender", "receiver"):
                self._update(host, entry, now - report.now_s, names)

    def step(self, now: float) -> dict[str, Any]:
        """Return a sample of the flows reported since the step before, and of those that have ended."""
        interval = max(1e-3, now - self._stepped_at) if self._stepped_at is not None else 1.0
        if self._stepped_at is not None and now < self._stepped_at - SET_BACK_S:
            self._set_back(self._stepped_at - now)
            interval = 1.0
        self._stepped_at = now
        touched, self._touched = self._touched, {}
        changed = {flow.id: flow for flow in touched.values() if self._stepped(flow, now, interval)}
        while self._counts > 2 * MOST_COUNTS and len(self._flows) > 1:
            self._let_go_of_oldest()
        for flow in [flow for flow in self._active.values() if now - flow.last_at > ENDED_S]:
            flow.state, flow.bits_per_s, flow.paths_now = "ended", 0.0, {}
            del self._active[flow.id]
            changed[flow.id] = flow
        shown = sorted(changed.values(), key=lambda flow: (-flow.bits_per_s, -flow.id))
        more = max(0, len(shown) - SHOWN) + sum(self._more.values())
        self._more.clear()
        return {
            "at": now,
            "interval_s": round(interval, 3),
            "flows": [flow.view() for flow in shown[:SHOWN]],
            "more": more,
        }

    def get(self, number: int) -> LiveFlow | None:
        """Return the flow with this number, or None."""
        return self._flows.get(number)

    def past(self, number: int) -> dict[str, Any] | None:
        """Return a flow whose timeline is gone, as the API shows it."""
        return self._past.get(number)

    def looked_at(
        self,
        before: int | None = None,
        state: str | None = None,
        traffic_class: str | None = None,
        host: str | None = None,
    ) -> Iterator[tuple[int, dict[str, Any] | None]]:
        """Yield the number of each flow below *before*, the newest first, and the flow as the API shows it; None: the
        filter leaves it out.
        """
        oldest = next(iter(self._flows), self._next_id)  # all from it on are there
        for number in range(
            (self._next_id if before is None else min(before, self._next_id)) - 1, oldest - 1, -1
        ):
            flow = self._flows[number]
            fits = (
                state in (None, flow.state)
                and traffic_class in (None, flow.traffic_class)
                and host in (None, flow.source, flow.destination)
            )
            yield number, flow.view() if fits else None
        if state != "active":  # of long ago there are none
            for row in self._past.newest(before):
                fits = traffic_class in (None, row["traffic_class"])
                fits = fits and host in (None, row["source"], row["destination"])
                yield row["id"], row if fits else None

    def _update(self, host: str, entry: FlowEntry, offset: float, names: Mapping[str, str]) -> None:
        key = (entry.protocol, entry.source, entry.source_port, entry.destination, entry.destination_port)
        flow = self._flow_of(key, entry)
        if flow is None:
            source = host if entry.side == "sender" else names.get(entry.source, entry.source)
            destination = (
                host if entry.side == "receiver" else names.get(entry.destination, entry.destination)
            )
            flow = LiveFlow(
                self._next_id, key, source, destination, entry.first_s + offset, 0.0, entry.traffic_class
            )
            self._keep(flow)
        side = flow.sides.get(entry.side)
        if side is None:
            side = flow.sides[entry.side] = _Side(entry.first_s, _nothing(entry))
        began_anew = entry.packets < side.last.packets
        for name in _COUNTS:
            side.totals[name] += getattr(entry, name) - (0 if began_anew else getattr(side.last, name))
        for stamp, count in entry.paths.items():
            side.paths[stamp] += count - (0 if began_anew else side.last.paths.get(stamp, 0))
        side.last = entry
        flow.last_at = max(flow.last_at, entry.last_s + offset)
        if entry.side == "sender":  # it decides the class
            flow.traffic_class, flow.priority = entry.traffic_class, entry.priority
        self._touched[flow.id] = flow

    def _flow_of(self, key: Key, entry: FlowEntry) -> LiveFlow | None:
        """Return the flow that an entry is of; None: a new one."""
        now, before = self._now.get(key), self._before.get(key)
        if (
            before is not None
            and entry.side in before.sides
            and before.sides[entry.side].first_s == entry.first_s
        ):
            return before
        if now is None or (entry.side in now.sides and now.sides[entry.side].first_s != entry.first_s):
            return None
        return now

    def _set_back(self, by_s: float) -> None:
        """Set the times of flows that go on back with the clock: by those of before, none would end for as long."""
        for flow in {**self._active, **self._touched}.values():
            if flow.steps:  # else it has come since
                flow.started_at -= by_s
                flow.last_at -= by_s

    def _stepped(self, flow: LiveFlow, now: float, interval: float) -> bool:
        """Do a flow's step; return False where it cannot be done, so that the others go on."""
        flow.state = "active"
        try:
            self._step(flow, now, interval)
        except Exception:
            LOG.exception("what was reported of flow %d is dropped", flow.id)
            flow.sides.clear()
            flow.reported.clear()
            flow.reported_paths.clear()
            return False
        self._active[flow.id] = flow
        self._counts += _counts_of(flow) - flow.counts
        while self._counts > MOST_COUNTS and len(flow.steps) > 1:
            gone = _counts_of_step(flow.steps.popleft())
            flow.counts_of_steps -= gone
            self._counts -= gone
        flow.counts = _counts_of(flow)
        return True

    def _keep(self, flow: LiveFlow) -> None:
        self._next_id += 1
        if flow.key in self._now:
            self._before[flow.key] = self._now[flow.key]
        self._now[flow.key] = self._flows[flow.id] = flow
        if len(self._flows) > KEPT_FLOWS:
            self._let_go_of_oldest()

    def _let_go_of_oldest(self) -> None:
        _, gone = self._flows.popitem(last=False)
        for known in (self._now, self._before):
            if known.get(gone.key) is gone:
                del known[gone.key]
        self._active.pop(gone.id, None)
        self._touched.pop(gone.id, None)
        self._counts -= gone.counts
        gone.state, gone.bits_per_s, gone.paths_now = "ended", 0.0, {}  # for all that will be known of it
        self._past.put(gone.view())

    @staticmethod
    def _step(flow: LiveFlow, now: float, interval: float) -> None:
        totals, paths = flow.totals(), flow.paths()
        flow.paths_now = {
            stamp: count - flow.reported_paths[stamp]
            for stamp, count in paths.items()
            if count != flow.reported_paths[stamp]
        }
        new = {name: totals[name] - flow.reported[name] for name in (*_COUNTS, "received_bytes")}
        since = interval if flow.steps else max(interval, now - flow.started_at)
        flow.bits_per_s = max(new["bytes"], 0) * 8 / since
        shown = ("bytes", "received_bytes", "packets", *_SHOWN_COUNTS)
        counted = {name: new[name] for name in shown}
        if len(flow.steps) == KEPT_STEPS:
            flow.counts_of_steps -= _counts_of_step(flow.steps[0])
        flow.steps.append({"at": now, "priority": flow.priority, **counted, "paths": flow.paths_now})
        flow.counts_of_steps += _counts_of_step(flow.steps[-1])
        flow.reported, flow.reported_paths = Counter(totals), Counter(paths)


def _counts_of_step(step: Mapping[str, Any]) -> int:
    return _STEP_COUNTS + len(step["paths"])


def _counts_of(flow: LiveFlow) -> int:
    of_sides = sum(len(side.paths) + len(side.last.paths) + len(_COUNTS) for side in flow.sides.values())
    return flow.counts_of_steps + of_sides + len(flow.reported_paths)


def _nothing(entry: FlowEntry) -> FlowEntry:
    """Return an entry that has counted nothing yet."""
    return FlowEntry(
        entry.side, *(entry.protocol, entry.source, entry.source_port, entry.destination, entry.destination_port),
        entry.traffic_class, 0, 0, entry.first_s, entry.first_s,
    )  # fmt: skip
