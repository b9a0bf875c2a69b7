"""The common trace, made anew: web search flows among 144 hosts at a load of 0.6, the same for every simulator."""

from __future__ import annotations

from typing import Final

import numpy as np

from simulation.trace import Trace

FLOWS: Final = 10_000
HOSTS: Final = 144
SEED: Final = 20261122
SHA256: Final = "f28d830aab8bc400aa73e90d007ccc4805255cac30c47ef56132c3810cc1629f"
"""Of the trace as a CSV file (`Trace.sha256`)."""
_PAYLOAD: Final = 1460
_WIRE: Final = 1500
_LOAD: Final = 0.6
_HOST_BPS: Final = 10 * 10**9
_PACKETS: Final = (6, 6, 13, 19, 33, 53, 133, 667, 1333, 3333, 6667, 20000)
_CDF: Final = (0.0, 0.15, 0.2, 0.3, 0.4, 0.53, 0.6, 0.7, 0.8, 0.9, 0.97, 1.0)
"""pFabric's table of web search flows."""


def common_trace() -> Trace:
    """Return the 10,000 flows."""
    return web_search(FLOWS)


def web_search(flows: int) -> Trace:
    """Return so many flows of its kind. One generator draws, in order: gaps, sizes, sources, destinations."""
    random = np.random.default_rng(SEED)
    gaps = random.exponential(1.0, flows)
    uniforms = random.random(flows)
    sources = random.integers(0, HOSTS, flows)
    destinations = random.integers(0, HOSTS - 1, flows)
    destinations += destinations >= sources
    starts = np.rint(np.cumsum(gaps / _flows_per_s()) * 1e9).astype(np.int64)
    packets = np.rint(np.interp(uniforms, _CDF, _PACKETS)).astype(np.int64)
    return Trace(starts, sources, destinations, packets * _PAYLOAD, np.zeros(flows, dtype=np.int64))


def _flows_per_s() -> float:
    """Return the arrivals that make the load, packets counted as they are on the wire."""
    packets, cdf = np.array(_PACKETS, dtype=float), np.array(_CDF)
    mean = float(np.sum((packets[1:] + packets[:-1]) / 2 * np.diff(cdf)))
    return _LOAD * HOSTS * _HOST_BPS / (mean * _WIRE * 8)
