"""What agents send: frames, and all that the controller keeps and shows of them."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from controller.agents.inbound import HalfFrames, Inbound
from controller.agents.membership import Member, Membership, MembershipError
from controller.agents.own_flows import own_flows
from controller.agents.path_loads import PathLoads
from controller.capton.admission import AdmissionControl
from controller.capton.fabric import HostPlace, Rates, VirtualFabric
from controller.capton.resent import ResentLog
from controller.capton.scheduler import Scheduler
from controller.live.event_log import EventLog
from controller.live.flows import LiveFlows
from controller.tpfs.record_store import StoredRecords
from protocol.admission import Finished, Request
from protocol.control import (
    ActiveFlows,
    Counters,
    FinishedFlows,
    FlowEntry,
    FlowReport,
    Hello,
    Message,
    PathLoad,
    Ping,
    PolicyApplied,
    Pong,
    Report,
)
from protocol.frames import ControlError, encode
from protocol.sent_again import Resent, SentAgain
from tests.fuzz.target import Target

OWNERS: Final = {"10.128.1.1": "h1", "10.128.1.2": "h2"}
_RATES: Final = Rates(10_000_000, 10_000_000)


def _entry(side: str, paths: dict[str, int]) -> FlowEntry:
    ends = (
        ("10.128.1.1", 40000, "10.128.1.2", 80)
        if side == "sender"
        else ("10.128.1.2", 80, "10.128.1.1", 40000)
    )
    return FlowEntry(side, 6, *ends, "short", 7, 9000, 0.5, 1.0, paths, paths_by_class={"short": paths})


class AgentsChannel(Target):
    """ControlError ends a channel; else what comes is taken, and whatever was, all views are JSON."""

    samples = tuple(
        encode(one)
        for one in (
            Hello("p", "n", "h1", "10.0.1.1", "02:00:00:00:00:01", ["10.128.1.1"], 7, "0.1.0"),
            Report(3, True),
            Counters({"packets_sent": 5}),
            Ping(1),
            Pong(1),
            PolicyApplied(7, "policy.short: no such code"),
            Request(1, 7, "10.0.2.1", 100_000),
            Finished(2, 7),
            ActiveFlows(1.5, [_entry("sender", {}), _entry("receiver", {"0": 2, "1025": 5})], 3),
            FlowReport(1, [_entry("receiver", {"1025": 5})], True),
            FinishedFlows(9.0, [6], ["10.128.1.1"], [40000], ["10.128.1.2"], [80], [9000], [0.5], [1.0]),
            PathLoad({"1025": 2}, {"0000000000010002": {"1025": 0.25}}),
            SentAgain(2.0, [Resent("10.128.1.1", 40000, "10.128.1.2", 80, "granted", "gap", 1.0, 0.1, 0.01, 0.0, 1400,
                                   1400, 700, 0)]),
        )
    )  # fmt: skip

    def run(self, messages: Sequence[bytes]) -> None:
        channel = Inbound(lambda: True, HalfFrames(), lambda reason: None, 0.0)
        views = _Views()
        for number, data in enumerate(messages):
            try:
                for one in channel.take(data):
                    encode(one)
                    views.take(one, 100.0 + number)
            except ControlError:
                break
        views.check(200.0)


class _Views:
    """What parts of the controller make of an agent's messages."""

    def __init__(self) -> None:
        self._flows, self._resent, self._loads, self._events = (
            LiveFlows(),
            ResentLog(),
            PathLoads(),
            EventLog(),
        )
        self._records = StoredRecords(None)
        self._members = Membership((), 0.0)
        fabric = VirtualFabric([HostPlace("h1", _RATES), HostPlace("h2", _RATES)], {})
        self._admission = AdmissionControl(Scheduler(fabric), {"10.0.1.1": "h1", "10.0.2.1": "h2"})
        self._counters: dict[str, float] = {}

    def take(self, message: Message, now: float) -> None:
        match message:
            case ActiveFlows():
                self._flows.take("h1", own_flows(message, "h1", OWNERS, 32), now, OWNERS)
                _say(self._flows.step(now))
            case SentAgain():
                self._events.add(self._resent.add("h1", message, now))
            case PathLoad():
                self._loads.put("h1", message)
                self._loads.put("h2", message)
            case FinishedFlows():
                self._records.take("h1", OWNERS, message)
            case Request() | Finished():
                for _, decision in self._admission.receive("h1", message, now):
                    encode(decision)
            case Counters(values):
                self._counters = values
            case Hello():
                with suppress(MembershipError):
                    self._members.join(Member.from_hello(message), now)

    def check(self, now: float) -> None:
        """Fail where a view cannot be made, or is no JSON; whatever came, others' flows are shown."""
        good = ActiveFlows(
            1.0, [FlowEntry("sender", 6, "10.128.1.2", 5, "10.128.1.1", 6, "short", 1, 1, 0.5, 1.0)]
        )
        self._flows.take("h2", good, now, OWNERS)
        sample = self._flows.step(now)
        assert any(flow["source"] == "h2" for flow in sample["flows"]), "another agent's flow is not shown"
        _say([sample, list(self._flows.looked_at())])
        resent = self._resent.view(now)
        _say([resent.bytes, resent.episodes, [dataclasses.asdict(one) for one in resent.newest]])
        _say([dataclasses.asdict(one.data) for one in self._events.since(0)])
        for _, load in self._loads.changes({"h1": "leaf", "h2": "leaf"}):
            encode(load)
        for host, decision in self._admission.handle_timer(now):
            encode(decision)
            _say(host)
        _say([repr(one) for one in self._admission.standing(now)])
        _say(
            [
                self._counters,
                self._records.refused,
                [dataclasses.asdict(one) for one in self._members.members()],
            ]
        )
        assert len(self._records.window) <= 16_384 * 12


def _say(view: Any) -> None:
    json.dumps(view, allow_nan=False)
