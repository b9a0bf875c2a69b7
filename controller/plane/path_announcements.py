"""Which paths each leaf's agents know of: those that are alive, and under some schemes which class keeps to which."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Final

from controller.fabric.switch_data import MeterReading
from controller.modes.partition import PathPartition, Split
from controller.openflow.tables import LONG_METER, SHORT_METER
from controller.openflow.wanted_switch import WantedSwitch
from controller.plane.effects import PartitionChanged, PathsChanged
from controller.schemes.scheme import Scheme

Stamps = Mapping[int, tuple[int, ...]]
"""Stamps of live paths, by dpid of the destination leaf."""
_NO_SPLIT: Final = Split()


class PathAnnouncements:
    """Live paths by leaf, how classes share them, and what was announced of both."""

    def __init__(self) -> None:
        self._paths: Mapping[int, Stamps] = {}
        self._announced: dict[int, tuple[Stamps, Mapping[str, tuple[int, ...]]]] = {}
        self._partition: PathPartition | None = None
        self._split = _NO_SPLIT

    def set_scheme(self, scheme: Scheme, packet_time_s: float) -> None:
        """Begin to measure loads anew, so that runs which are compared begin from the same split."""
        rule = scheme.partition
        self._partition = None if rule is None else PathPartition(rule, packet_time_s)
        self._split = _NO_SPLIT

    def set_paths(self, paths: Mapping[int, Stamps]) -> None:
        """Take all live paths, by source leaf."""
        self._paths = paths

    def watch(self, wanted: WantedSwitch, measured: bool, now: float) -> None:
        """Measure a leaf's load, or do so no more."""
        if self._partition is not None:
            uplinks = {port for way in wanted.view.towards for port in way.ports}
            self._partition.watch(wanted.view.dpid, len(uplinks) if measured else 0, now)

    def forget(self, leaf: int, now: float) -> None:
        """Measure *leaf* no more."""
        if self._partition is not None:
            self._partition.watch(leaf, 0, now)

    def drop(self, leaf: int) -> None:
        """Forget what was announced to a leaf that is known no more."""
        self._announced.pop(leaf, None)

    def sample(self, leaf: int, readings: Mapping[int, MeterReading], now: float) -> bool:
        """Take what the meters of a leaf have counted. Return True if there may be `changes` by that."""
        short, long = readings.get(SHORT_METER), readings.get(LONG_METER)
        if self._partition is None or short is None or long is None:
            return False
        self._partition.sample(leaf, short.bytes, long.bytes, now)
        return True

    def due(self, now: float) -> tuple[int, ...]:
        """Return the leaves whose meters are to be read now."""
        return () if self._partition is None else self._partition.due(now)

    def deadline(self) -> float | None:
        """Return when `due` wants to be called next, seconds; None: not before something else happens."""
        return None if self._partition is None else self._partition.deadline()

    def changes(self, ready: Set[int], now: float) -> list[PartitionChanged | PathsChanged]:
        """Return what is to be announced now. ready: leaves that forward by our state."""
        events: list[PartitionChanged | PathsChanged] = []
        known = {leaf: paths for leaf, paths in self._paths.items() if leaf in ready}
        split = _NO_SPLIT
        if self._partition is not None:
            split = self._partition.split(stamps for paths in known.values() for stamps in paths.values())
            if split != self._split:
                low, high = tuple(sorted(split.low_latency)), tuple(sorted(split.throughput))
                events.append(PartitionChanged(now, low, high, self._partition.low_latency_share()))
        self._split = split
        for leaf, paths in known.items():
            announcement = (paths, split.by_class(paths.values()))
            if self._announced.get(leaf) != announcement:
                self._announced[leaf] = announcement
                events.append(PathsChanged(now, leaf, *announcement))
        return events
