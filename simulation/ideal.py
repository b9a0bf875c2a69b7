"""How long flows take alone: what slowdowns are ratios to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simulation.fabrics import bits_per_second, picoseconds
from simulation.settings import Settings
from simulation.trace import Trace

_BIT_PS = 8 * 10**12


def lone_ps(settings: Settings, trace: Trace) -> NDArray[np.int64]:
    """Return each flow's time in ps where nothing else is on the fabric and no window stops it.

    It ends when the acknowledgement of its last byte is back. Links that differ from their tier's are not considered.
    Packets go store and forward: behind the slowest link they are as far apart as it sends them, and the last one,
    which may be shorter, waits for the one before it. So does its acknowledgement, where a slow link sends the one
    before it for longer than the last packet took.
    """
    leaf = settings.fabric.hosts_on_leaf
    total = np.zeros(len(trace), dtype=np.int64)
    inner = _inner_links(settings, trace.sources, trace.destinations, leaf)
    host_bps = bits_per_second(settings.fabric.host_gbps)
    fabric_bps = bits_per_second(settings.fabric.fabric_gbps)
    delay = picoseconds(settings.fabric.delay_us)
    payload, header = settings.payload_bytes, settings.header_bytes
    count = -(-trace.sizes // payload)
    last = header + trace.sizes - (count - 1) * payload
    full = np.where(count > 1, header + payload, 0)
    for links in np.unique(inner):
        of = inner == links
        rates = [host_bps, *([fabric_bps] * int(links)), host_bps]
        arrivals = _pipeline(count[of], full[of], last[of], rates)
        total[of] = _acknowledged(arrivals, settings.acknowledgement_bytes, rates[::-1])
        total[of] += 2 * delay * len(rates)
    return total


def _inner_links(
    settings: Settings, sources: NDArray[np.int64], destinations: NDArray[np.int64], leaf: int
) -> NDArray[np.int64]:
    """Return the number of links between switches on each flow's way."""
    from_leaf, to_leaf = sources // leaf, destinations // leaf
    if settings.fabric.shape == "leaf-spine":
        return np.where(from_leaf == to_leaf, 0, 2)
    same_pod = from_leaf // leaf == to_leaf // leaf
    return np.where(from_leaf == to_leaf, 0, np.where(same_pod, 2, 4))


@dataclass(frozen=True, slots=True)
class _LastTwo:
    """When the last packet of each flow, and the one before it (0: there is none), have left the last link, in ps."""

    before: NDArray[np.int64]
    last: NDArray[np.int64]


def _pipeline(
    count: NDArray[np.int64], full: NDArray[np.int64], last: NDArray[np.int64], rates: list[int]
) -> _LastTwo:
    """Return when the last two packets have left the last of the links, delays not counted."""
    before = np.zeros(len(count), dtype=np.int64)
    passed = np.zeros(len(count), dtype=np.int64)  # by the first packet
    slowest = np.zeros(len(count), dtype=np.int64)
    end = np.zeros(len(count), dtype=np.int64)  # of the last packet
    for rate in rates:
        packet = _transmissions(full, rate)
        passed = passed + packet
        slowest = np.maximum(slowest, packet)
        before = np.add(passed, np.maximum(count - 2, 0) * slowest, dtype=np.int64)
        end = np.maximum(before, end) + _transmissions(last, rate)
    return _LastTwo(np.where(count > 1, before, 0), end)


def _acknowledged(arrivals: _LastTwo, length: int, rates: list[int]) -> NDArray[np.int64]:
    """Return when the last packets' acknowledgements have left the last of the links, delays not counted.

    Those before it follow each other as full packets do, so that none waits for another.
    """
    before, last = arrivals.before, arrivals.last
    for rate in rates:
        before = before + _transmission(length, rate)
        after = np.where(arrivals.before > 0, np.maximum(last, before), last)
        last = after + _transmission(length, rate)
    return last


def _transmission(length: int, rate: int) -> int:
    return -(-length * _BIT_PS // rate)


def _transmissions(lengths: NDArray[np.int64], rate: int) -> NDArray[np.int64]:
    by_length = {int(length): _transmission(int(length), rate) for length in np.unique(lengths)}
    return np.array([by_length[int(length)] for length in lengths], dtype=np.int64)
