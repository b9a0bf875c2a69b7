"""Names and addresses of a fabric, all from a switch's tier and number and a host's place under its leaf."""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass
from typing import Final

UNDERLAY_PREFIX: Final = 9
"""10.0.0.0/9: one flat underlay that leaves 10.128.0.0/9 to the overlay."""
OVERLAY_PREFIX: Final = 9
OVERLAY6_PREFIX: Final = 64
MAX_LEAVES: Final = 255
MAX_HOSTS_PER_LEAF: Final = 254

TIERS: Final = {"l": 1, "e": 1, "s": 2, "a": 2, "c": 3}
"""Tier of a switch by the first letter of its name: leaf or edge, spine or aggregation, core."""


@dataclass(frozen=True)
class HostPlace:
    """Where host number *number* (1..) sits: the leaf's index (1..) and the place under that leaf (1..)."""

    number: int
    leaf: int
    place: int

    @property
    def name(self) -> str:
        """Return `h<number>`."""
        return f"h{self.number}"

    @property
    def underlay(self) -> str:
        """Return the address on the physical network, what switches see (without prefix length)."""
        return f"10.0.{self.leaf}.{self.place}"

    @property
    def overlay(self) -> str:
        """Return the address of the agent's TUN device, what applications see."""
        return f"10.128.{self.leaf}.{self.place}"

    @property
    def overlay6(self) -> str:
        """Return IPv6 address of the agent's TUN device."""
        return f"fd00:ca::{self.leaf:x}:{self.place:x}"

    @property
    def mac(self) -> str:
        """Return MAC address of the host's underlay interface (locally administered)."""
        return f"02:ca:00:{self.leaf:02x}:00:{self.place:02x}"


def place_hosts(leaves: int, hosts_per_leaf: int) -> list[HostPlace]:
    """Return the hosts of a fabric in order: host i sits on leaf (i-1) // hosts_per_leaf + 1."""
    if not 1 <= leaves <= MAX_LEAVES:
        raise ValueError(f"leaves must be 1..{MAX_LEAVES} (the third byte of an address), not {leaves}")
    if not 0 <= hosts_per_leaf <= MAX_HOSTS_PER_LEAF:
        raise ValueError(f"hosts_per_leaf must be 0..{MAX_HOSTS_PER_LEAF}, not {hosts_per_leaf}")
    return [
        HostPlace(index + 1, index // hosts_per_leaf + 1, index % hosts_per_leaf + 1)
        for index in range(leaves * hosts_per_leaf)
    ]


def datapath_id(switch: str) -> str:
    """Return 16 digits that a person can read: the tier, then the number in decimal. `s12` is
    0000000000020012.
    """
    match = re.fullmatch(r"([a-z])([1-9]\d{0,3})", switch)
    if not match or match[1] not in TIERS:
        raise ValueError(f"switch {switch!r} must be one of {', '.join(TIERS)} and a number 1..9999, like l1")
    return f"{TIERS[match[1]]}{int(match[2]):04}".rjust(16, "0")


def port_mac(interface: str) -> str:
    """Return a MAC address that is the same in every run (locally administered) for a switch's interface."""
    digest = zlib.crc32(interface.encode()).to_bytes(4, "big")
    return "02:5c:" + ":".join(f"{byte:02x}" for byte in digest)


def link_name(end: str, other: str) -> str:
    """Return the name of a link, whichever end comes first: host before switch, then the lower tier first."""
    return "-".join(sorted((end, other), key=lambda name: (TIERS.get(name[:1], 0), name)))
