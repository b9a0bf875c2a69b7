"""Between two runs: wait until no packet of the last one is under way.

A run has the ports of the one before it (its flows are the same), so a packet that comes late would be counted as one
of the new run's: under ECMP a flow then seems to have used several paths. No fixed pause is enough: what full queues
take to drain depends on how many of them lie one behind the other, and on the processor.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from capstan_client.errors import CapstanError

POLL_S: Final = 0.1
STILL_PACKET_TIMES: Final = 32.0
"""A queue that is not empty lets a packet go every packet time; this long without one, all are empty."""
STILL_LEAST_S: Final = 0.25
DRAIN_LIMIT_S: Final = 30.0

Reports = Mapping[str, Iterable[Mapping[str, Any]]]


class DrainError(CapstanError, RuntimeError):
    """Packets keep arriving though no host sends; the text says where."""


class Stillness:
    """Decides from flow reports, each of what came since the one before, whether the fabric is empty.

    still_s: seconds without a packet that are proof; began: when no host sent any more (monotonic seconds).
    """

    def __init__(self, still_s: float, began: float) -> None:
        self._still_s = still_s
        self._last_packet = began
        self.busiest = ""

    def note(self, reports: Reports, now: float) -> bool:
        """Take the reports asked for at *now*; return True if the fabric is empty."""
        arrived = {
            host: sum(int(entry["packets"]) for entry in entries if entry["side"] == "receiver")
            for host, entries in reports.items()
        }
        if any(arrived.values()):
            self._last_packet = now
            host = max(arrived, key=lambda name: arrived[name])
            self.busiest = f"{host} ({arrived[host]} packets)"
        return now - self._last_packet >= self._still_s


def still_s(packet_time_s: float) -> float:
    """Return how many seconds without a packet are proof that all queues are empty."""
    return max(STILL_LEAST_S, STILL_PACKET_TIMES * packet_time_s)


def wait_until_empty(
    report: Callable[[], Reports],
    packet_time_s: float,
    check: Callable[[], None] = lambda: None,
    limit_s: float = DRAIN_LIMIT_S,
) -> float:
    """Wait until no agent has received a packet for a while; return the seconds that it took.

    report: asks all agents for what came since it was called last. check: called now and then, may raise.

    Raises:
        DrainError: packets still arrive after *limit_s* seconds.
    """
    began = time.monotonic()
    silence_s = still_s(packet_time_s)
    stillness = Stillness(silence_s, began)
    while not stillness.note(report(), time.monotonic()):
        waited = time.monotonic() - began
        if waited > limit_s + silence_s:
            raise DrainError(
                f"packets still arrive {waited:.0f} s after the last run, most at {stillness.busiest}: "
                "does a program other than the traffic generators send over the overlay?"
            )
        check()
        time.sleep(POLL_S)
    return time.monotonic() - began
