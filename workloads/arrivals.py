"""When flows start: Poisson processes, steady or in bursts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from capstan_client.errors import CapstanError
from workloads.description import Arrivals


class ArrivalsError(CapstanError, ValueError):
    """Arrivals that cannot be; the text names the field."""


def rate_at_load(load: float, capacity_bps: float, mean_bytes: float) -> float:
    """Return flows per second that offer *load* (share) of *capacity_bps* (bit/s) with flows of *mean_bytes*."""
    return load * capacity_bps / (8 * mean_bytes)


def flow_rate(arrivals: Arrivals, capacity_bps: float | None, mean_bytes: float) -> float:
    """Return flows per second of an arrival process (within an ON period, for bursts).

    capacity_bps: what the fabric can carry between the pattern's hosts; None where its links are unshaped.

    Raises:
        ArrivalsError: neither or both of rate and load, a load without a capacity, or a number out of range.
    """
    if (arrivals.rate_per_s is None) == (arrivals.load is None):
        raise ArrivalsError("exactly one of rate_per_s and load is needed")
    if arrivals.rate_per_s is not None:
        if not arrivals.rate_per_s > 0:
            raise ArrivalsError(f"rate_per_s must be above 0 flows/s, not {arrivals.rate_per_s}")
        return arrivals.rate_per_s
    assert arrivals.load is not None
    if not arrivals.load > 0:
        raise ArrivalsError(f"load must be above 0, not {arrivals.load}")
    if capacity_bps is None:
        raise ArrivalsError(
            "load needs links with a rate", remedy="give rate_per_s, or the links a rate_mbps"
        )
    return rate_at_load(arrivals.load, capacity_bps, mean_bytes)


def _periods(arrivals: Arrivals) -> tuple[float, float]:
    if arrivals.kind == "poisson":
        if arrivals.on_s is not None or arrivals.off_s is not None:
            raise ArrivalsError("on_s and off_s belong to arrivals of kind 'burst'")
        return 1.0, 0.0
    if arrivals.on_s is None or arrivals.off_s is None:
        raise ArrivalsError("arrivals of kind 'burst' need on_s and off_s")
    if not arrivals.on_s > 0 or arrivals.off_s < 0:
        raise ArrivalsError(
            f"on_s must be above 0 s and off_s at least 0 s, not {arrivals.on_s} and {arrivals.off_s}"
        )
    return arrivals.on_s, arrivals.off_s


def busy_s(arrivals: Arrivals, duration_s: float) -> float:
    """Return the seconds of *duration_s* that are in ON periods, of which the first begins at 0.

    Raises:
        ArrivalsError: a period is missing or out of range.
    """
    on, off = _periods(arrivals)
    whole, rest = divmod(duration_s, on + off)
    return whole * on + min(rest, on)


def start_times(
    arrivals: Arrivals,
    rate_per_s: float,
    rng: np.random.Generator,
    *,
    count: int | None,
    duration_s: float | None,
) -> NDArray[np.float64]:
    """Return start times in seconds, ascending: *count* of them, or all within *duration_s*.

    Bursts are a Poisson process on a clock that stands still during OFF periods; ON comes first.

    Raises:
        ArrivalsError: a period is missing or out of range, or not exactly one of count and duration is given.
    """
    on, off = _periods(arrivals)
    if (count is None) == (duration_s is None):
        raise ArrivalsError("exactly one of count and duration_s is needed")
    if count is not None:
        busy = np.cumsum(rng.exponential(1 / rate_per_s, count))
    else:
        assert duration_s is not None
        busy_time = busy_s(arrivals, duration_s)
        # Given their number, the arrivals of a Poisson process are independent and uniform.
        busy = np.sort(rng.uniform(0, busy_time, rng.poisson(rate_per_s * busy_time)))
    return busy + np.floor(busy / on) * off
