"""Who may connect when there is little room: a share per address, and who makes room."""

from __future__ import annotations

import functools
import ipaddress
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

C = TypeVar("C")

LOOK_AGAIN: Final = 16
"""All connections are looked at when there has been a new one for each so many of them."""
OUTDATED_S: Final = 1.0
"""What was seen so long ago is looked at anew."""


@dataclass(frozen=True, slots=True)
class Waiting(Generic[C]):
    """A connection that has no request. since: seconds on the clock of all of them."""

    connection: C
    address: str
    since: float


class Places(Generic[C]):
    """Connections by address. Pure.

    Args:
        most, most_per_address: how many connections there may be.
        look: returns all connections that wait for a request.
    """

    def __init__(
        self, most: int, most_per_address: int, look: Callable[[], Iterable[Waiting[C]]] = tuple
    ) -> None:
        self._most = most
        self._most_per_address = most_per_address
        self._look = look
        self._taken: Counter[str] = Counter()
        self._waiting: dict[str, deque[Waiting[C]]] = {}
        """As they were last looked at, by address, the longest waiting first."""
        self._looked_at = float("-inf")
        self._added = 0
        """Connections since then."""

    def has_share(self, address: str) -> bool:
        """Return True if *address* (see `group_of`) may have one more connection."""
        return not address or self._taken[address] < self._most_per_address

    def add(self, address: str) -> bool:
        """Count a connection. Return True if there are now more than there may be."""
        self._taken[address] += 1
        self._added += 1
        return self._taken.total() > self._most

    def remove(self, address: str) -> None:
        """Free a place of *address*."""
        self._taken[address] -= 1
        if self._taken[address] <= 0:
            del self._taken[address]

    def to_close(self, now: float, still_waits: Callable[[Waiting[C]], bool]) -> C | None:
        """Return the connection that makes room at *now* (seconds): the longest without a request, of the address that
        has most; None if none waits.

        still_waits: whether a connection has waited since it was looked at.
        """
        if now - self._looked_at >= OUTDATED_S:
            self._gather(now)
        while self._waiting or self._added * LOOK_AGAIN > self._taken.total():
            if not self._waiting:
                self._gather(now)
                continue
            address = max(self._waiting, key=self._rank)
            waiter = self._waiting[address].popleft()
            if not self._waiting[address]:
                del self._waiting[address]
            if still_waits(waiter):
                return waiter.connection
        return None

    def _rank(self, address: str) -> tuple[int, float]:
        return self._taken[address], -self._waiting[address][0].since

    def _gather(self, now: float) -> None:
        self._looked_at, self._added = now, 0
        by_address: defaultdict[str, deque[Waiting[C]]] = defaultdict(deque)
        for waiter in sorted(self._look(), key=lambda waiter: waiter.since):
            by_address[waiter.address].append(waiter)
        self._waiting = dict(by_address)


@functools.lru_cache(maxsize=4096)
def group_of(host: str) -> str:
    """Return what counts as one address: an IPv6 /64 network, or "" for loopback, behind which a proxy may be."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    if address.is_loopback:
        return ""
    if address.version == 6:
        return str(ipaddress.ip_network((address, 64), strict=False))
    return str(address)
