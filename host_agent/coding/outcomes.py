"""What became of coding units, as their sender learns it, and the redundancy that follows from it.

The sender knows which datagrams make a unit, and the peer's feedback says of each how long it took, or that it is
lost. A unit of k sources *succeeds* if k of its k + r symbols arrive in time: an MDS code decodes then, and so does an
RLC, but for 1 of 255. In time is what took no longer above the least delay than `BlockingEstimator.overdue_s`. What no
feedback ever speaks of decides nothing, for then it may be the feedback that was lost. No model of blocking is needed:
packets of one unit that share a path are blocked together, which the binomial model of `redundancy` does not know.

`Margin` is the outer loop of a two-loop power control (Sampath, Kumar, Holtzman: On setting reverse link target SIR in
a CDMA system, IEEE VTC 1997): each failure raises the assumed pB by a step, each success lowers it by
(1 - P) / P steps. It stands still where the share of successes is P, so that is where it goes, from above as from
below: the least redundancy that keeps the stated decode probability P.
"""

from __future__ import annotations

import math
from typing import Final

from protocol.datagram import NUMBER_MODULUS, serial_difference

STEP: Final = 0.25
"""Of the margin at a failure, in logits of pB."""
MOST: Final = 3.0
"""Bound of the margin, in logits: the odds of pB are off by a factor of 20 at most."""
MAX_DATAGRAMS: Final = 1 << 14
"""Datagrams that the peer has not told of, kept for each peer."""
LEAST_PERIOD_S: Final = 10.0
"""The least delay is that of the last one to two periods: clocks of two machines drift."""


class Margin:
    """Correction of pB towards the hosts of one leaf, for one target."""

    __slots__ = ("failures", "logits", "successes", "target")

    def __init__(self, target: float) -> None:
        self.target = target
        self.logits = 0.0
        self.successes = 0
        self.failures = 0

    def corrected(self, blocking_probability: float) -> float:
        """The pB to assume for the next unit; 0 stays 0."""
        p = blocking_probability
        if not 0.0 < p < 1.0:
            return p
        odds = p / (1.0 - p) * math.exp(self.logits)
        return odds / (1.0 + odds)

    def learn(self, success: bool) -> None:
        """A unit that was sent while something was blocked has come to its end."""
        if success:
            self.successes += 1
            self.logits = max(-MOST, self.logits - STEP * (1.0 - self.target) / self.target)
        else:
            self.failures += 1
            self.logits = min(MOST, self.logits + STEP)


class SentUnit:
    """One unit of one flow: sources are added as they leave, repairs when it closes."""

    __slots__ = ("arrived", "decided", "gone", "k", "margin", "symbols")

    def __init__(self, margin: Margin) -> None:
        self.margin = margin
        self.k: int | None = None
        """Its sources; None while it is open."""
        self.symbols = 0
        self.arrived = 0
        self.gone = 0
        self.decided = False


class Outcomes:
    """The undecided units towards one peer. Times are in seconds and must not run backwards."""

    __slots__ = ("_least_before_us", "_least_since", "_least_us", "_reference_us", "_unit_of")

    def __init__(self) -> None:
        self._unit_of: dict[int, SentUnit] = {}
        self._reference_us: int | None = None
        """First delay ever; all others are signed differences to it."""
        self._least_us = self._least_before_us = 0
        self._least_since = 0.0

    def __len__(self) -> int:
        return len(self._unit_of)

    def sent(self, number: int, unit: SentUnit) -> None:
        """Datagram *number* leaves with a source or a repair of this unit."""
        if len(self._unit_of) >= MAX_DATAGRAMS:
            del self._unit_of[next(iter(self._unit_of))]  # its unit stays undecided
        self._unit_of[number] = unit
        unit.symbols += 1

    def closed(self, unit: SentUnit, k: int) -> None:
        """All symbols of the unit have left; *k* of them are sources."""
        unit.k = k
        self._decide(unit)

    def arrived(self, number: int, delay_us: int, in_time_s: float, now: float) -> None:
        """The peer has got the datagram after *delay_us* (unsigned 32 bit, arbitrary offset).

        It was in time if that is at most *in_time_s* above the least.
        """
        above = self._above_least(delay_us, now)
        unit = self._unit_of.pop(number, None)
        if unit is None:
            return
        if above <= in_time_s * 1e6:
            unit.arrived += 1
        else:
            unit.gone += 1
        self._decide(unit)

    def lost(self, first: int, count: int) -> None:
        """The peer has given up *count* datagrams from number *first* on."""
        for number in range(first, first + min(count, MAX_DATAGRAMS)):
            unit = self._unit_of.pop(number % NUMBER_MODULUS, None)
            if unit is not None:
                unit.gone += 1
                self._decide(unit)

    def _above_least(self, delay_us: int, now: float) -> int:
        if self._reference_us is None:
            self._reference_us, self._least_since = delay_us, now
        delay = serial_difference(delay_us, self._reference_us)
        if now - self._least_since >= LEAST_PERIOD_S:
            long_ago = now - self._least_since >= 2 * LEAST_PERIOD_S
            self._least_before_us = delay if long_ago else self._least_us
            self._least_us, self._least_since = delay, now
        self._least_us = min(self._least_us, delay)
        return delay - min(self._least_us, self._least_before_us)

    def _decide(self, unit: SentUnit) -> None:
        if unit.decided or unit.k is None:
            return
        if unit.arrived >= unit.k:
            unit.decided = True
            unit.margin.learn(True)
        elif unit.gone > unit.symbols - unit.k:
            unit.decided = True
            unit.margin.learn(False)
