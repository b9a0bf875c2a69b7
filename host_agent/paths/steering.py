"""All path policies of an agent: which one serves a traffic class, what they choose from, and what they are told."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np
from capstan_native import SentLog

from host_agent.paths import path_policy
from host_agent.paths.base import Load, PathPolicy, Report, Route
from host_agent.paths.granted import Granted
from host_agent.paths.own import OwnPathPolicy
from protocol.control import PathLoad
from protocol.datagram import NUMBER_MODULUS
from protocol.policy import DEFAULT_POLICY, Policy, PolicyError
from protocol.policy import PathPolicy as PathSettings
from protocol.underlay import TrafficClass, is_stamp, label_of

T = TypeVar("T")
_RING: Final = SentLog.RING
_NONE: Final = PathSettings("flow-hash")


@dataclass(frozen=True, slots=True)
class OwnFlow:
    """An agent's feedback to one peer, as path policies see it. ``id`` is below 0: no inner flow's."""

    id: int
    hash: int


class Departures:
    """When the last datagrams to one peer left, and of which flow and class: what policies that learn are told of.

    In step with `SentLog`, which knows whether a number is still remembered.
    """

    __slots__ = ("_class", "_flow", "_left")

    def __init__(self) -> None:
        self._flow = array("I", bytes(4 * _RING))
        self._left = array("d", bytes(8 * _RING))
        self._class = array("B", bytes(_RING))

    def sent(self, number: int, count: int, flow: int, traffic_class: int, now: float) -> None:
        """*count* datagrams from *number* on leave now. flow: its number on the wire, 0 for none."""
        for offset in range(count):
            slot = (number + offset) % NUMBER_MODULUS % _RING
            self._flow[slot] = flow
            self._left[slot] = now
            self._class[slot] = traffic_class

    def of(self, number: int) -> tuple[int, int, float]:
        """Flow, class and time of a datagram; flow 0: nobody wants to know."""
        slot = number % _RING
        return self._flow[slot], self._class[slot], self._left[slot]


class Steering:
    """``policies``: by traffic class; the same object where two classes have the same. ``learning``: whether any wants
    to be told what became of its datagrams."""

    def __init__(self, rng: np.random.Generator, own: OwnPathPolicy | None = None) -> None:
        self._rng = rng
        self._own = own
        self._routes: dict[str, tuple[Route, ...]] = {}
        self._paths: Mapping[str, tuple[int, ...]] = {}
        self._by_class: Mapping[str, tuple[int, ...]] = {}
        self.policies: tuple[PathPolicy, ...] = ()
        self.learning = False
        self.set_policy(DEFAULT_POLICY)

    def check(self, policy: Policy) -> None:
        """Raises PolicyError for a document that asks for what this agent was not started with."""
        kinds = {name: getattr(policy, name).path.kind for name in ("short", "long", "control")}
        missing = [name for name, kind in kinds.items() if kind == "file" and self._own is None]
        if missing:
            raise PolicyError(
                f"policy.{missing[0]}.path.kind: is 'file': this agent was started without --path-policy FILE"
            )

    def set_policy(self, policy: Policy) -> None:
        """Begin anew, with the policies of this document, which `check` let pass."""
        made: dict[PathSettings, PathPolicy] = {}
        for settings in (_NONE, policy.short.path, policy.long.path, policy.control.path):
            if settings not in made:
                made[settings] = path_policy(settings, policy.packet_time_s, self._rng, self._own)
        classes = (_NONE, policy.short.path, policy.long.path, policy.control.path)
        self.policies = tuple(made[settings] for settings in classes)
        self._distinct = tuple(made.values())
        self.learning = any(one.learns for one in self._distinct)

    def routes(self, leaf: str) -> tuple[Route, ...]:
        """The ways to a leaf, by traffic class."""
        routes = self._routes.get(leaf)
        if routes is None:
            routes = self._routes[leaf] = tuple(Route(leaf, kind) for kind in TrafficClass)
            self._name_paths(routes)
        return routes

    def set_paths(
        self, paths: Mapping[str, tuple[int, ...]], by_class: Mapping[str, tuple[int, ...]]
    ) -> None:
        """Which paths are alive, as in `protocol.control.Paths`. Stamps that cannot be are left out."""
        self._paths, self._by_class = paths, by_class
        for routes in self._routes.values():
            self._name_paths(routes)

    def learn(
        self,
        leaf: str,
        log: SentLog,
        departures: Departures,
        arrived: Iterable[tuple[int, int, int]],
        lost: Iterable[tuple[int, int]],
        above_least_us: Callable[[int], int],
        now: float,
    ) -> None:
        """A peer's feedback. arrived: numbers, stamps, delays in microseconds. lost: first number and count.

        above_least_us: from such a delay, how much it is above the least.
        """
        policies = self.policies
        for number, stamp, delay_us in arrived:
            flow, kind, left = departures.of(number)
            if not flow or not policies[kind].learns:
                continue
            entropy = log.entropy_of(number)
            if entropy is not None:
                report = Report(flow, leaf, entropy, stamp, above_least_us(delay_us) * 1e-6, left)
                policies[kind].reported(report, now)
        for first, count in lost:
            for offset in range(min(count, _RING)):
                number = (first + offset) % NUMBER_MODULUS
                flow, kind, _ = departures.of(number)
                entropy = log.entropy_of(number)
                if flow and entropy is not None and policies[kind].learns:
                    policies[kind].lost(flow, leaf, entropy, now)

    def forget(self, flow: int) -> None:
        """A flow is over."""
        for one in self._distinct:
            one.forget(flow)

    def grant(self, flow: int, stamp: int) -> None:
        """The controller has granted a flow a path (0: none of its own)."""
        for one in self._distinct:
            if isinstance(one, Granted):
                one.grant(flow, stamp)

    def load(self, now: float) -> PathLoad | None:
        """What the other agents of our leaf are to know of us; None: no policy shares anything."""
        loads = [load for load in (one.load(now) for one in self._distinct) if load is not None]
        if not loads:
            return None
        flows: Counter[str] = Counter()
        delays: dict[str, dict[str, float]] = {}
        for load in loads:
            flows.update({str(stamp): count for stamp, count in load.short_flows.items()})
            for leaf, known in load.delays_s.items():
                delays.setdefault(leaf, {}).update({str(stamp): delay for stamp, delay in known.items()})
        return PathLoad(dict(flows), delays)

    def set_load(self, load: PathLoad, now: float) -> None:
        """What the other agents of our leaf have together, from now on."""
        told = Load(
            _by_stamp(load.short_flows),
            {leaf: _by_stamp(known) for leaf, known in load.delays_s.items()},
        )
        for one in self._distinct:
            one.set_load(told, now)

    def _name_paths(self, routes: tuple[Route, ...]) -> None:
        stamps = tuple(sorted({stamp for stamp in self._paths.get(routes[0].leaf, ()) if is_stamp(stamp)}))
        named: dict[tuple[int, ...], tuple[int, ...]] = {}
        for route in routes:
            kept = self._by_class.get(route.traffic_class.name.lower())
            usable = (
                stamps if kept is None else tuple(stamp for stamp in stamps if stamp in set(kept)) or stamps
            )
            labels = named.setdefault(usable, tuple(map(label_of, usable)))
            if labels != route.labels:
                route.labels = labels


def _by_stamp(values: Mapping[str, T]) -> dict[int, T]:
    """Stamps as numbers; what is none is left out."""
    return {
        int(stamp): value for stamp, value in values.items() if stamp.isdecimal() and is_stamp(int(stamp))
    }
