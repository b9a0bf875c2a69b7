"""Fabrics as the simulator takes them: shapes, rates, delays, and links that differ from their tier's."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import capstan_native

from capstan_client.errors import CapstanError

PS_PER_S = 10**12
BITS_PER_GBIT = 10**9
MOST_GBPS: Final = 10_000
MOST_US: Final = 1e9


class SettingsError(CapstanError, ValueError):
    """A setting that cannot be; the text says which, and what to give instead."""


@dataclass(frozen=True, slots=True)
class LinkChange:
    """A link, both directions, that differs: between a leaf and a spine, by number; 0 Gbit/s takes it down."""

    leaf: int
    spine: int
    gbps: float
    delay_us: float | None = None

    @classmethod
    def parse(cls, text: str) -> LinkChange:
        """Return the change that `LEAF-SPINE=GBPS` or `LEAF-SPINE=GBPS@DELAY_US` says, e.g. `0-3=1`, `0-3=0`.

        Raises:
            SettingsError: the text says something else.
        """
        match = re.fullmatch(r"(\d+)-(\d+)=(\d+(?:\.\d+)?)(?:@(\d+(?:\.\d+)?))?", text)
        if match is None:
            raise SettingsError(
                f"link {text!r}: write LEAF-SPINE=GBPS or LEAF-SPINE=GBPS@DELAY_US, as in 0-3=1"
            )
        leaf, spine, gbps, delay_us = match.groups()
        change = cls(int(leaf), int(spine), float(gbps), float(delay_us) if delay_us else None)
        try:
            bits_per_second(change.gbps), picoseconds(change.delay_us or 0.0)
        except SettingsError as error:
            raise SettingsError(f"link {text!r}: {error}") from None
        return change


@dataclass(frozen=True, slots=True)
class Fabric:
    """Leaves with hosts and spines, every leaf linked to every spine; or a fat tree of switches with k ports.

    host_gbps: of hosts' links. fabric_gbps: of all other links. delay_us: of every link, one way.
    """

    shape: Literal["leaf-spine", "fat-tree"] = "leaf-spine"
    leaves: int = 9
    hosts_per_leaf: int = 16
    spines: int = 16
    k: int = 4
    host_gbps: float = 10.0
    fabric_gbps: float = 10.0
    delay_us: float = 0.2
    changes: tuple[LinkChange, ...] = field(default=())

    @property
    def hosts(self) -> int:
        """Return the number of hosts."""
        return self.k**3 // 4 if self.shape == "fat-tree" else self.leaves * self.hosts_per_leaf

    @property
    def hosts_on_leaf(self) -> int:
        """Return the number of hosts on a leaf (edge switch)."""
        return self.k // 2 if self.shape == "fat-tree" else self.hosts_per_leaf

    def link_numbers(self, leaf: int, spine: int) -> tuple[int, int]:
        """Return the simulator's numbers of the links from *leaf* up to *spine*, and down.

        Raises:
            SettingsError: there is no such link.
        """
        if self.shape != "leaf-spine" or not (leaf < self.leaves and spine < self.spines and self.leaves > 1):
            raise SettingsError(
                f"there is no link {leaf}-{spine}: links that differ are those of a leaf-spine with two leaves or "
                f"more, leaf 0 to {self.leaves - 1}, spine 0 to {self.spines - 1}"
            )
        host, other = leaf * self.hosts_per_leaf, (0 if leaf else 1) * self.hosts_per_leaf
        plain = self.to_native(with_changes=False)
        up, down = capstan_native.simulated_routes(plain, [(host, other, spine), (other, host, spine)])
        return up[1], down[2]

    def to_native(self, with_changes: bool = True) -> dict[str, Any]:
        """Return the fabric as `capstan_native.Simulation` takes it.

        Raises:
            SettingsError: a rate or delay that is none, or a change of a link that is not there.
        """
        sizes = [self.k] if self.shape == "fat-tree" else [self.leaves, self.hosts_per_leaf, self.spines]
        if min(sizes) < 1:
            raise SettingsError("leaves, hosts a leaf, spines and k are at least 1")
        changes: list[tuple[int, int, int | None]] = []
        for change in self.changes if with_changes else ():
            delay = None if change.delay_us is None else picoseconds(change.delay_us)
            for number in self.link_numbers(change.leaf, change.spine):
                changes.append((number, bits_per_second(change.gbps), delay))
        return {
            "shape": self.shape,
            "sizes": sizes,
            "host_bps": bits_per_second(self.host_gbps),
            "fabric_bps": bits_per_second(self.fabric_gbps),
            "delay_ps": picoseconds(self.delay_us),
            "changes": changes,
            "bursts": [],
        }


def bits_per_second(gbps: float) -> int:
    """Return a rate in whole bit/s. Raises SettingsError if it is negative or above 10 Tbit/s."""
    if not 0 <= gbps <= MOST_GBPS:
        raise SettingsError(f"a rate of {gbps} Gbit/s: give 0 to {MOST_GBPS}")
    return round(gbps * BITS_PER_GBIT)


def picoseconds(us: float) -> int:
    """Return a time in whole picoseconds. Raises SettingsError if it is negative or above 1000 s."""
    if not 0 <= us <= MOST_US:
        raise SettingsError(f"a time of {us} us: give 0 to {MOST_US:g}")
    return round(us * 1_000_000)
