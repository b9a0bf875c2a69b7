"""What became of coding units, as their sender learns it, and the redundancy that follows from it.

The sender knows which datagrams make a unit, and the peer's feedback says of each how long it took, or that it is
lost. A unit of k sources *succeeds* if k of its k + r symbols arrive in time: an MDS code decodes then, and so does an
RLC, but for 1 of 255. In time is what took no longer above the fastest symbol of its unit than
`BlockingEstimator.overdue_s`: what a burst waits for at its own access link, which repairs only lengthen, is the same
for all of the unit. What no feedback ever speaks of decides nothing, for then it may be the feedback that was lost. No
model of blocking is needed: packets of one unit that share a path are blocked together, which the binomial model of
`redundancy` does not know.

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

    def learn(self, success: bool, most: bool = False) -> None:
        """A unit that was sent while something was blocked has come to its end.

        *most*: it had as many repairs as it may have; its failure asks for more in vain.
        """
        if success:
            self.successes += 1
            self.logits = max(-MOST, self.logits - STEP * (1.0 - self.target) / self.target)
        else:
            self.failures += 1
            if not most:
                self.logits = min(MOST, self.logits + STEP)


class SentUnit:
    """One unit of one flow: sources are added as they leave, repairs when it closes."""

    __slots__ = ("_delays_us", "_reference_us", "k", "lost", "margin", "most", "symbols")

    def __init__(self, margin: Margin) -> None:
        self.margin = margin
        self.k: int | None = None
        """Its sources; None while it is open."""
        self.symbols = 0
        self.lost = 0
        self.most = False
        """It has as many repairs as the policy allows."""
        self._reference_us = 0
        """The delay that was told first; all are kept as signed differences to it."""
        self._delays_us: list[int] = []

    def arrived(self, delay_us: int) -> None:
        """A symbol took so long (unsigned 32 bit, arbitrary offset)."""
        if not self._delays_us:
            self._reference_us = delay_us
        self._delays_us.append(serial_difference(delay_us, self._reference_us))

    def decide(self, in_time_s: float) -> None:
        """Tell the margin of success or failure, once the fate of every symbol is known."""
        delays = self._delays_us
        if self.k is None or self.lost + len(delays) < self.symbols:
            return
        latest = min(delays, default=0) + in_time_s * 1e6
        in_time = sum(delay <= latest for delay in delays)
        self.margin.learn(in_time >= self.k, self.most)


class Outcomes:
    """The undecided units towards one peer.

    Args:
        in_time_s: a symbol is in time if it took no longer than this above the fastest of its unit.
    """

    __slots__ = ("_unit_of", "in_time_s")

    def __init__(self, in_time_s: float = 0.008) -> None:
        self.in_time_s = in_time_s
        self._unit_of: dict[int, SentUnit] = {}

    def __len__(self) -> int:
        return len(self._unit_of)

    def sent(self, number: int, unit: SentUnit) -> None:
        """Datagram *number* leaves with a source or a repair of this unit."""
        if len(self._unit_of) >= MAX_DATAGRAMS:
            del self._unit_of[next(iter(self._unit_of))]  # its unit stays undecided
        self._unit_of[number] = unit
        unit.symbols += 1

    def sent_many(self, number: int, count: int, unit: SentUnit) -> None:
        """As `sent`, of *count* datagrams from *number* on."""
        for offset in range(count):
            self.sent((number + offset) % NUMBER_MODULUS, unit)

    def closed(self, unit: SentUnit, k: int, most: bool = False) -> None:
        """All symbols of the unit have left; *k* of them are sources. *most*: it could not have had more repairs."""
        unit.k = k
        unit.most = most
        unit.decide(self.in_time_s)

    def arrived(self, number: int, delay_us: int) -> None:
        """The peer has got the datagram after *delay_us* (unsigned 32 bit, arbitrary offset)."""
        unit = self._unit_of.pop(number, None)
        if unit is not None:
            unit.arrived(delay_us)
            unit.decide(self.in_time_s)

    def lost(self, first: int, count: int) -> None:
        """The peer has given up *count* datagrams from number *first* on."""
        for number in range(first, first + min(count, MAX_DATAGRAMS)):
            unit = self._unit_of.pop(number % NUMBER_MODULUS, None)
            if unit is not None:
                unit.lost += 1
                unit.decide(self.in_time_s)
