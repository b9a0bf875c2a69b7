"""Types of flows learnt while a simulated run goes on (TPFS), by the code of the controller."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final

import numpy as np

from controller.schemes.scheme import Prediction, Priority
from controller.tpfs.learner import LEAST_RECORDS
from controller.tpfs.records import Names, RecordWindow, checked
from controller.tpfs.types import LearntTypes, differ, flow_types
from protocol.control import FinishedFlows
from topologies.addressing import HostPlace
from workloads.flow_header import SINK_PORT
from workloads.plan import Plan

_TCP: Final = 6


@dataclass(frozen=True, slots=True)
class Learnt:
    """Types that agents are to have from now on: features, and thresholds in bytes by the bytes of their values."""

    types: LearntTypes
    features: list[str]
    values: list[tuple[bytes, list[int]]]


@dataclass(frozen=True, slots=True)
class Ended:
    """A flow that has ended: its row in the plan, and when, seconds since the run's start."""

    row: int
    end_s: float


class Learning:
    """The records of one run and what was learnt of them. Times are seconds since the run's start."""

    def __init__(
        self, priority: Priority, prediction: Prediction, plan: Plan, places: Sequence[HostPlace]
    ) -> None:
        self._priority, self._prediction, self._plan = priority, prediction, plan
        self._address = {place.name: place.overlay for place in places}
        self._owners = {place.overlay: place.name for place in places}
        self._hosts, self._addresses = Names(), Names()
        self._window = RecordWindow(prediction.most_records, prediction.most_age_s)
        self._announced: LearntTypes | None = None

    def moments(self, until_s: float) -> Iterator[float]:
        """Yield when something may be learnt."""
        count = 1
        while count * self._prediction.interval_s < until_s:
            yield count * self._prediction.interval_s
            count += 1

    def learn(self, ended: Sequence[Ended], now_s: float) -> Learnt | None:
        """Return the types of all flows that have ended, these among them; None: agents know, or they are too few."""
        by_host: dict[str, list[Ended]] = {}
        for flow in ended:
            by_host.setdefault(self._plan.flows[flow.row].source, []).append(flow)
        for host, flows in by_host.items():
            report = self._finished(flows, now_s)
            records, _ = checked(
                report, host, owners=self._owners, hosts=self._hosts, addresses=self._addresses, now=now_s
            )
            self._window.add(records, now_s)
        self._window.expire(now_s)
        if len(self._window) < LEAST_RECORDS:
            return None
        types = flow_types(
            np.concatenate(self._window.chunks()),
            self._addresses.texts,
            self._priority.scaled(),
            load=self._prediction.load,
            delta=self._prediction.delta_bytes,
            printed=self._prediction.printed,
        )
        if types is None or (self._announced is not None and not differ(self._announced, types)):
            return None
        self._announced = types
        features = [str(feature) for feature in types.features]
        values = [
            (_bytes(features, value), list(flow_type.thresholds_bytes))
            for flow_type in types.types
            for value in flow_type.values
        ]
        return Learnt(types, features, values)

    def _finished(self, ended: Sequence[Ended], now_s: float) -> FinishedFlows:
        flows = [self._plan.flows[flow.row] for flow in ended]
        return FinishedFlows(
            now_s,
            [_TCP] * len(flows),
            [self._address[flow.source] for flow in flows],
            [flow.source_port for flow in flows],
            [self._address[flow.destination] for flow in flows],
            [flow.port or SINK_PORT for flow in flows],
            [flow.size_bytes or 0 for flow in flows],
            [flow.start_s for flow in flows],
            [flow.end_s for flow in ended],
        )


def _bytes(features: Sequence[str], value: Sequence[str]) -> bytes:
    """Return the bytes of a value's texts, as agents compare them."""
    parts = (
        int(text).to_bytes(2, "big") if name.endswith("_port") else ip_address(text).packed
        for name, text in zip(features, value, strict=True)
    )
    return b"".join(parts)
