"""When short flows are present at a leaf: CAPS's ON/OFF mode (CAPS, section IV-C), as a pure state machine.

A leaf turns ON with the first short packet (the switch copies them to the controller while the leaf is OFF,
and only then) and OFF when ``quiet_intervals`` sampling times T have passed without one. Presence while ON is
read from a meter, whose cumulative count is exact at once; flow counters lag by 100-500 ms.

**Timing.** Sampling once per T would notice the last packet up to T late (about 1.6 T on the average until
OFF, 2 T at worst). So a leaf that is ON is read every min(T, `RESOLUTION_S`), and a last time exactly T after
the last change that was seen: OFF comes between T and T + `RESOLUTION_S` + one meter read after the last
short packet.

**No flapping.** A trickle of short packets with gaps below T never turns a leaf OFF, by construction: every
window of length T holds a packet. A trickle with longer gaps would turn it on and off at every gap; so the
time that a leaf is held ON doubles, T, 2 T, 4 T, whenever it had to turn ON again within 4 T of the last
short packet, and falls back to T after a gap above 4 T. Any steady trickle with gaps up to 4 T thus costs at
most five changes and then none; for any traffic at all, a leaf turns OFF at most three times in a row before
it has been without a short packet for 4 T. Short flows that come apart from each other leave the hold at T.
(4: the rule's ``longest_hold``. CAPS's Algorithm 1 has a timer of T and no doubling: 1.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from controller.schemes.scheme import Mode, ModeRule

SHORTEST_SAMPLING_S: Final = 0.010
"""Least T in seconds: reading a meter and changing a flow entry take 1-5 ms, so a shorter T means nothing."""
RESOLUTION_S: Final = 0.008
"""How late, in seconds, the last short packet may be noticed."""
FIRST_READ_S: Final = 0.002
"""When, in seconds after a leaf turned ON, its meter is first read."""
LONGEST_HOLD: Final = ModeRule().longest_hold
"""Most sampling times that a leaf is held ON without a short packet, where the rule says nothing."""
READ_LOST_S: Final = 0.25
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


@dataclass(slots=True)
class _Leaf:
    since: float
    hold_s: float
    mode: Mode = "off"
    packets: int | None = None
    """Count at the last sample; None before the first."""
    last_seen: float | None = None
    """When a short packet was last noticed."""
    next_read: float | None = None
    """When to read the meter; None: no need to."""
    asked: float | None = None
    """When the read that is under way was asked for."""


class ModeMonitor:
    """Modes of all leaves under one scheme's rule.

    Args:
        rule: when to turn OFF, in packet times.
        packet_time_s: 1500 B on the slowest fabric link, in seconds.
    """

    def __init__(self, rule: ModeRule, packet_time_s: float) -> None:
        if (
            packet_time_s <= 0
            or rule.sampling_packet_times <= 0
            or min(rule.quiet_intervals, rule.longest_hold) < 1
        ):
            raise ValueError(
                f"mode rule {rule} with a packet time of {packet_time_s} s: sampling and packet times must "
                "be above 0, quiet_intervals and longest_hold at least 1"
            )
        self.sampling_time_s: Final = max(rule.sampling_packet_times * packet_time_s, SHORTEST_SAMPLING_S)
        """T in seconds."""
        self._shortest_hold_s: Final = self.sampling_time_s * rule.quiet_intervals
        self._longest_hold_s: Final = self._shortest_hold_s * rule.longest_hold
        self._leaves: dict[int, _Leaf] = {}

    def leaf_added(self, leaf: int, now: float) -> None:
        """Watch *leaf*, which starts OFF; a leaf that is known already keeps its state."""
        self._leaves.setdefault(leaf, _Leaf(since=now, hold_s=self._shortest_hold_s))

    def leaf_removed(self, leaf: int) -> None:
        """Forget *leaf*; no error if it is not known."""
        self._leaves.pop(leaf, None)

    def leaves(self) -> tuple[int, ...]:
        return tuple(self._leaves)

    def mode(self, leaf: int) -> Mode:
        """Raises KeyError for a leaf that was not added."""
        return self._leaves[leaf].mode

    def since(self, leaf: int) -> float:
        """Return when *leaf* got its mode. Raises KeyError for a leaf that was not added."""
        return self._leaves[leaf].since

    def hold_s(self, leaf: int) -> float:
        """Return seconds that *leaf* is held ON without a short packet: T to longest_hold T, times quiet_intervals."""
        return self._leaves[leaf].hold_s

    def first_packet(self, leaf: int, now: float) -> ModeChange | None:
        """Return a short packet's copy arrived from *leaf*; the change if that turned it ON.

        Further copies that were under way, and copies from a leaf that is gone, change nothing.
        """
        state = self._leaves.get(leaf)
        if state is None:
            return None
        return self._packet_noticed(leaf, state, now, "first-packet")

    def sample(self, leaf: int, packets: int, now: float) -> ModeChange | None:
        """Take the meter of *leaf*: *packets* since it was made. Return the change if there is one.

        A lower count than before (the switch was restarted) counts as traffic. An answer for a leaf that is
        gone changes nothing.
        """
        state = self._leaves.get(leaf)
        if state is None:
            return None
        asked, state.asked = state.asked, None
        before, state.packets = state.packets, packets
        if state.mode == "off":
            # The one read after turning OFF: a packet that passed before the switch began to copy again.
            state.next_read = None
            if before is not None and packets != before:
                return self._packet_noticed(leaf, state, now, "meter")
            return None
        asked = now if asked is None else asked
        if packets != before or state.last_seen is None:
            state.last_seen = now
        # The count is as old as the question at worst, so the silence is only as long as up to the question.
        elif asked - state.last_seen >= state.hold_s - _ROUNDING_S:
            state.mode = "off"
            state.since = now
            state.next_read = now + RESOLUTION_S
            return ModeChange(leaf, "off", now, "quiet")
        # From the question on, not from the answer: how long the switch takes must not add up.
        step = max(now, asked + min(self.sampling_time_s, RESOLUTION_S))
        state.next_read = min(step, max(now, state.last_seen + state.hold_s))
        return None

    def due(self, now: float) -> tuple[int, ...]:
        """Return leaves whose meter should be read now; each is named once per read."""
        leaves = tuple(leaf for leaf, state in self._leaves.items() if _when(state) <= now)
        for leaf in leaves:
            self._leaves[leaf].asked = now
        return leaves

    def deadline(self) -> float | None:
        """Return when `due` next names a leaf; None while all are OFF."""
        earliest = min((_when(state) for state in self._leaves.values()), default=_NEVER)
        return None if earliest == _NEVER else earliest

    def _packet_noticed(self, leaf: int, state: _Leaf, now: float, cause: Cause) -> ModeChange | None:
        before, state.last_seen = state.last_seen, now
        if state.mode == "on":
            return None
        if before is not None and now - before <= self._longest_hold_s:
            state.hold_s = min(2 * state.hold_s, self._longest_hold_s)
        else:
            state.hold_s = self._shortest_hold_s
        # What the meter has counted before is not known: its first count looks like a packet, so let it be early.
        state.next_read = now + FIRST_READ_S
        state.mode = "on"
        state.since = now
        return ModeChange(leaf, "on", now, cause)


_NEVER: Final = float("inf")
_ROUNDING_S: Final = 1e-9


def _when(state: _Leaf) -> float:
    if state.asked is not None:
        return state.asked + READ_LOST_S
    return _NEVER if state.next_read is None else state.next_read
