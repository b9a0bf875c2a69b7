"""Modes of a fabric's switches: each leaf's own, and what follows from it for the switches above."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from controller.modes.monitor import ModeChange, ModeMonitor
from controller.schemes.scheme import Mode, Scheme


@dataclass(frozen=True, slots=True)
class ModeInfo:
    """The mode of a leaf (a dpid), and since when it has been in it: seconds, as the control plane counts them."""

    leaf: int
    mode: Mode
    since: float


class LeafModes:
    """Under a scheme without modes there are none: every switch is OFF, nothing is read."""

    def __init__(self) -> None:
        self._rule: object = None
        self._monitor: ModeMonitor | None = None

    def set_scheme(self, scheme: Scheme, packet_time_s: float) -> None:
        """Have every leaf start OFF under a new mode rule; under the same one it keeps its mode."""
        rule = None if scheme.mode is None else (scheme.mode, packet_time_s)
        if rule != self._rule:
            self._monitor = None if scheme.mode is None else ModeMonitor(scheme.mode, packet_time_s)
            self._rule = rule

    def watch(self, leaf: int, wanted: bool, now: float) -> None:
        """Watch *leaf* (a dpid), or do so no more."""
        if self._monitor is None:
            return
        if wanted:
            self._monitor.leaf_added(leaf, now)
        else:
            self._monitor.leaf_removed(leaf)

    def first_packet(self, leaf: int, now: float) -> ModeChange | None:
        """Turn *leaf* ON, as a short packet's copy came while it was OFF; return the change, None if there is none."""
        return None if self._monitor is None else self._monitor.first_packet(leaf, now)

    def sample(self, leaf: int, packets: int, now: float) -> ModeChange | None:
        """Take the short class's meter of *leaf*, *packets* since it was made; return the change, or None."""
        return None if self._monitor is None else self._monitor.sample(leaf, packets, now)

    def due(self, now: float) -> tuple[int, ...]:
        """Return leaves whose short-class meter is to be read now."""
        return () if self._monitor is None else self._monitor.due(now)

    def deadline(self) -> float | None:
        """Return when `due` wants to be called next, seconds; None: not before something else happens."""
        return None if self._monitor is None else self._monitor.deadline()

    def of(self, dpid: int, below: Mapping[int, frozenset[int]]) -> Mode:
        """Return a leaf's own mode; above the leaves ON while any leaf below is."""
        if self._monitor is None:
            return "off"
        return self._monitor.mode_above(below.get(dpid, frozenset((dpid,))))

    def infos(self) -> tuple[ModeInfo, ...]:
        """Return the modes of the leaves, by dpid."""
        monitor = self._monitor
        if monitor is None:
            return ()
        return tuple(
            ModeInfo(leaf, monitor.mode(leaf), monitor.since(leaf)) for leaf in sorted(monitor.leaves())
        )
