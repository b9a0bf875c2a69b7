"""The ON/OFF modes of leaves (CAPS, section VII), as `native/fabric/src/mode.rs` decides them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from capstan_native import LeafModeMonitor

from controller.schemes.scheme import Mode, ModeRule

SHORTEST_SAMPLING_S: Final = LeafModeMonitor.SHORTEST_SAMPLING_S
"""Least T in seconds."""
RESOLUTION_S: Final = LeafModeMonitor.RESOLUTION_S
"""How late, in seconds, the last short packet may be noticed."""
LONGEST_HOLD: Final = ModeRule().longest_hold
"""Most sampling times that a leaf is held ON without a short packet, where the rule says nothing."""
READ_LOST_S: Final = LeafModeMonitor.READ_LOST_S
"""A meter read that has not been answered for this long, in seconds, is asked again."""

Cause = Literal["first-packet", "meter", "quiet"]
"""Why a leaf changed: a copied packet, a count that rose unseen while OFF, or none for the hold time."""


@dataclass(frozen=True, slots=True)
class ModeChange:
    """Leaf *leaf* (its datapath id) turned *mode* at *at* (seconds, the caller's clock)."""

    leaf: int
    mode: Mode
    at: float
    cause: Cause


class ModeMonitor:
    """Modes of all leaves under one scheme's rule.

    Args:
        rule: when to turn OFF, in packet times.
        packet_time_s: 1500 B on the slowest fabric link, in seconds.

    Raises:
        ValueError: the rule or the packet time is out of range.
    """

    def __init__(self, rule: ModeRule, packet_time_s: float) -> None:
        self._native: Final = LeafModeMonitor(
            rule.sampling_packet_times, rule.quiet_intervals, rule.longest_hold, packet_time_s
        )
        self.sampling_time_s: Final = self._native.sampling_time_s
        """T in seconds."""

    def leaf_added(self, leaf: int, now: float) -> None:
        """Watch *leaf*, which starts OFF; a leaf that is known already keeps its state."""
        self._native.leaf_added(leaf, now)

    def leaf_removed(self, leaf: int) -> None:
        """Forget *leaf*; no error if it is not known."""
        self._native.leaf_removed(leaf)

    def leaves(self) -> tuple[int, ...]:
        """Return the leaves that are watched, ascending."""
        return tuple(self._native.leaves())

    def mode(self, leaf: int) -> Mode:
        """Return a leaf's mode. Raise KeyError for a leaf that was not added."""
        return self._native.mode(leaf)

    def mode_above(self, leaves: Iterable[int]) -> Mode:
        """Return the mode of a switch with these leaves below it: ON while any of them is."""
        return self._native.mode_above(list(leaves))

    def since(self, leaf: int) -> float:
        """Return when *leaf* got its mode, seconds. Raise KeyError for a leaf that was not added."""
        return self._native.since(leaf)

    def first_packet(self, leaf: int, now: float) -> ModeChange | None:
        """Return the change if a short packet's copy from *leaf* turned it ON."""
        change = self._native.first_packet(leaf, now)
        return None if change is None else ModeChange(*change)

    def sample(self, leaf: int, packets: int, now: float) -> ModeChange | None:
        """Return the change that follows from a read: the meter of *leaf* has counted *packets* since it was made."""
        change = self._native.sample(leaf, packets, now)
        return None if change is None else ModeChange(*change)

    def due(self, now: float) -> tuple[int, ...]:
        """Return the leaves whose meter is to be read now; each is named once per read."""
        return self._native.due(now)

    def deadline(self) -> float | None:
        """Return when `due` next names a leaf, seconds; None while all are OFF."""
        return self._native.deadline()
