"""Who may connect when there is little room: a share per address, and who makes room."""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

C = TypeVar("C")


@dataclass(frozen=True, slots=True)
class Waiting(Generic[C]):
    """A connection that has no request. since: seconds on the clock of all of them."""

    connection: C
    address: str
    since: float


class Places:
    """Connections by address. Pure."""

    def __init__(self, most: int, most_per_address: int) -> None:
        self._most = most
        self._most_per_address = most_per_address
        self._taken: Counter[str] = Counter()

    def has_share(self, address: str) -> bool:
        """Return True if *address* (see `group_of`) may have one more connection."""
        return not address or self._taken[address] < self._most_per_address

    def add(self, address: str) -> bool:
        """Count a connection. Return True if there are now more than there may be."""
        self._taken[address] += 1
        return self._taken.total() > self._most

    def remove(self, address: str) -> None:
        self._taken[address] -= 1
        if self._taken[address] <= 0:
            del self._taken[address]

    def to_close(self, waiting: Iterable[Waiting[C]]) -> C | None:
        """Return who makes room: the longest without a request, of the address that has most connections; or None."""
        chosen = min(waiting, key=lambda waiter: (-self._taken[waiter.address], waiter.since), default=None)
        return None if chosen is None else chosen.connection


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
