"""One spec in the lab and in simulation, side by side: measure by measure, and whether both say the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from experiments.results.simulated import Document
from experiments.spec.simulated import WITHIN

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Measured:
    """A figure with its 95 % interval (None: there is none)."""

    value: float
    interval: Interval | None


@dataclass(frozen=True, slots=True)
class Agreement:
    """One measure of one scheme, in both."""

    scheme: str
    measure: str
    unit: str
    lab: Measured
    simulated: Measured
    within: float
    cpu_limited: bool = False
    """The processor set the pace of the lab's runs: their figures are not to be used."""
    disturbed: bool = False
    """A part of the lab ended during its runs."""

    @property
    def ratio(self) -> float | None:
        """Return simulated over lab; None: the lab's figure is 0."""
        return self.simulated.value / self.lab.value if self.lab.value else None

    @property
    def overlap(self) -> bool:
        """Return whether both have intervals, and these have a value in common."""
        lab, simulated = self.lab.interval, self.simulated.interval
        return lab is not None and simulated is not None and lab[0] <= simulated[1] and simulated[0] <= lab[1]

    @property
    def agrees(self) -> bool:
        """Return whether the figures differ by no more than is allowed, or their intervals overlap."""
        apart = abs(self.simulated.value - self.lab.value)
        return apart <= self.within * self.lab.value or self.overlap


@dataclass(frozen=True, slots=True)
class _Measure:
    name: str
    unit: str
    kind: str
    value: str
    interval: str


_MEASURES: Final = (
    _Measure("mean time, short flows", "ms", "short", "afct_ms", "afct_ci_ms"),
    _Measure("mean time, long flows", "ms", "long", "afct_ms", "afct_ci_ms"),
    _Measure("goodput, long flows", "Mbit/s", "long", "goodput_mbps", "goodput_ci_mbps"),
)


def agreements(lab: Document, simulated: Document, within: float = WITHIN) -> Iterator[Agreement]:
    """Yield every measure that the results of both have, scheme by scheme.

    Raises:
        ValueError: they are of other flows or other schemes, so nothing can be said.
    """
    plans = [[run["plan"] for run in document["runs"]] for document in (lab, simulated)]
    if sorted(plans[0]) != sorted(plans[1]) or lab["schemes"].keys() != simulated["schemes"].keys():
        raise ValueError(
            "the lab's result is of other flows or schemes than the simulation's: give both the same spec"
        )
    for label, entry in lab["schemes"].items():
        other = simulated["schemes"][label]
        for measure in _MEASURES:
            on_switches, in_simulation = _measured(entry, measure), _measured(other, measure)
            if on_switches is not None and in_simulation is not None:
                yield Agreement(
                    label,
                    measure.name,
                    measure.unit,
                    on_switches,
                    in_simulation,
                    within,
                    cpu_limited=bool(entry.get("cpu_limited")),
                    disturbed=bool(entry.get("disturbed")),
                )


def _measured(scheme: Mapping[str, Any], measure: _Measure) -> Measured | None:
    block = scheme.get(measure.kind, {})
    if block.get(measure.value) is None:
        return None
    interval = block.get(measure.interval)
    return Measured(block[measure.value], None if interval is None else (interval[0], interval[1]))
