"""Flow-size distributions: uniform, fixed, a mix of both, and published tables."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from capstan_client.errors import CapstanError
from plain.reading import did_you_mean
from workloads.description import SizeKind, Sizes
from workloads.flow_header import HEADER_BYTES

TABLES: Final = Path(__file__).parent / "flow_sizes"
MOST_BYTES: Final = 1 << 62
"""Of a flow: counters of bytes have 64 bits."""


_NEEDED: Final[dict[SizeKind, tuple[str, ...]]] = {
    "uniform": ("low_bytes", "high_bytes"),
    "fixed": ("bytes",),
    "mix": ("low_bytes", "high_bytes", "bytes", "large_share"),
    "table": ("table",),
}


class SizesError(CapstanError, ValueError):
    """A size distribution that cannot be; the text names the field."""


class SizeDistribution(Protocol):
    """Sizes in bytes of payload, not smaller than the generator's header."""

    def mean(self) -> float:
        """Return mean size in bytes (before rounding to whole bytes)."""

    def sample(self, rng: np.random.Generator, n: int) -> NDArray[np.int64]:
        """Return *n* sizes in whole bytes, shape (n,)."""


@dataclass(frozen=True, slots=True)
class Uniform:
    """Evenly between `low` and `high` bytes, `high` excluded."""

    low: float
    high: float

    def mean(self) -> float:
        """Return the middle of the range, bytes; what lies below the header counts as that."""
        if self.low >= HEADER_BYTES:
            return (self.low + self.high) / 2
        if self.high <= HEADER_BYTES:
            return HEADER_BYTES
        raised = (HEADER_BYTES - self.low) * HEADER_BYTES
        return (raised + (self.high**2 - HEADER_BYTES**2) / 2) / (self.high - self.low)

    def sample(self, rng: np.random.Generator, n: int) -> NDArray[np.int64]:
        """Return *n* sizes, rounded down, shape (n,)."""
        return _whole(np.floor(rng.uniform(self.low, self.high, n)))


@dataclass(frozen=True, slots=True)
class Fixed:
    """Always `size` bytes."""

    size: float

    def mean(self) -> float:
        """Return the size, bytes, or that of the header, which is the least."""
        return max(self.size, HEADER_BYTES)

    def sample(self, rng: np.random.Generator, n: int) -> NDArray[np.int64]:
        """Return the size, rounded, *n* times; draws nothing."""
        return _whole(np.full(n, round(self.size), dtype=float))


@dataclass(frozen=True, slots=True)
class Mix:
    """Evenly between two sizes, but for a share of flows that all have one (long) size.

    A flow that is small under two shares has the same size under both, for the same generator.
    """

    small: Uniform
    large: Fixed
    share: float

    def mean(self) -> float:
        """Return the mean over both kinds of flows, bytes."""
        return (1 - self.share) * self.small.mean() + self.share * self.large.mean()

    def sample(self, rng: np.random.Generator, n: int) -> NDArray[np.int64]:
        """Return *n* sizes, shape (n,); draws as much whatever the share is."""
        small, draws = self.small.sample(rng, n), rng.random(n)
        return np.where(draws < self.share, self.large.sample(rng, n), small)


@dataclass(frozen=True, slots=True)
class Table:
    """A cumulative distribution: P(size <= sizes[i]) = cdf[i], linear in between.

    What cdf[0] has above 0 is an atom at sizes[0].
    """

    sizes: tuple[float, ...]
    cdf: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.sizes) != len(self.cdf) or not self.sizes:
            raise SizesError("a table needs as many sizes as shares, and at least one")
        if any(b <= a for a, b in zip(self.sizes, self.sizes[1:], strict=False)):
            raise SizesError("sizes of a table must grow from row to row")
        if any(b < a for a, b in zip(self.cdf, self.cdf[1:], strict=False)) or self.cdf[0] < 0:
            raise SizesError("shares of a table must not fall from row to row, nor be negative")
        if self.cdf[-1] != 1:
            raise SizesError(f"the last share of a table must be 1, not {self.cdf[-1]}")

    def mean(self) -> float:
        """Return the area above the distribution, bytes."""
        sizes, cdf = np.array(self.sizes), np.array(self.cdf)
        return float(cdf[0] * sizes[0] + np.sum(np.diff(cdf) * (sizes[1:] + sizes[:-1]) / 2))

    def sample(self, rng: np.random.Generator, n: int) -> NDArray[np.int64]:
        """Return *n* sizes by inversion of the distribution, rounded, shape (n,)."""
        return _whole(np.rint(np.interp(rng.random(n), self.cdf, self.sizes)))


def _whole(sizes: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.maximum(sizes, HEADER_BYTES).astype(np.int64)


def table_names() -> list[str]:
    """Return names of the published tables that come with Capstan."""
    return sorted(path.stem for path in TABLES.glob("*.csv"))


def table_source(name: str) -> str:
    """Return where a table's figures come from: the first comment line of its file."""
    return _read(name)[0]


@lru_cache(maxsize=64)
def _read(name: str) -> tuple[str, Table]:
    path = TABLES / f"{name}.csv"
    if name not in table_names():
        raise SizesError(f"flow-size table {name!r} is not known{did_you_mean(name, table_names())}")
    source, rows = "", []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("#"):
            source = source or line.lstrip("# ")
        elif line.strip() and line != "bytes,cdf":
            try:
                size, share = (float(cell) for cell in line.split(","))
            except ValueError:
                raise SizesError(f"{path}:{number}: expected 'bytes,cdf', got {line!r}") from None
            rows.append((size, share))
    return source, Table(tuple(size for size, _ in rows), tuple(share for _, share in rows))


def describe_sizes(sizes: Sizes) -> dict[str, str | float | None]:
    """Return what a run records of its flow sizes: kind, table and its source (None: no table), scale, mean in bytes.

    Raises:
        SizesError: as `distribution` does.
    """
    return {
        "kind": sizes.kind,
        "table": sizes.table,
        "source": None if sizes.table is None else table_source(sizes.table),
        "scale": sizes.scale,
        "mean_bytes": round(distribution(sizes).mean(), 1),
    }


def distribution(sizes: Sizes) -> SizeDistribution:
    """Return the distribution that a spec describes, scaled.

    Raises:
        SizesError: a field that the kind needs is missing, does not belong to it, or is out of range.
    """
    needed = _NEEDED[sizes.kind]
    for name in ("low_bytes", "high_bytes", "bytes", "large_share", "table"):
        given = getattr(sizes, name) is not None
        if given and name not in needed:
            raise SizesError(f"{name} does not belong to sizes of kind {sizes.kind!r}")
        if not given and name in needed:
            raise SizesError(f"sizes of kind {sizes.kind!r} need {name}")
    if not sizes.scale > 0:
        raise SizesError(f"scale must be above 0, not {sizes.scale}")
    if sizes.kind == "uniform":
        return _uniform(sizes)
    if sizes.kind == "fixed":
        return _fixed(sizes)
    if sizes.kind == "mix":
        assert sizes.large_share is not None
        if not 0 <= sizes.large_share <= 1:
            raise SizesError(f"large_share must lie between 0 and 1, not {sizes.large_share}")
        return Mix(_uniform(sizes), _fixed(sizes), sizes.large_share)
    assert sizes.table is not None
    table = _read(sizes.table)[1]
    return Table(tuple(_scaled(size, sizes.scale) for size in table.sizes), table.cdf)


def _uniform(sizes: Sizes) -> Uniform:
    assert sizes.low_bytes is not None
    assert sizes.high_bytes is not None
    if not 0 < sizes.low_bytes < sizes.high_bytes:
        raise SizesError(
            f"low_bytes ({sizes.low_bytes}) must be above 0 and below high_bytes ({sizes.high_bytes})"
        )
    return Uniform(_scaled(sizes.low_bytes, sizes.scale), _scaled(sizes.high_bytes, sizes.scale))


def _fixed(sizes: Sizes) -> Fixed:
    assert sizes.bytes is not None
    if sizes.bytes < 1:
        raise SizesError(f"bytes must be at least 1, not {sizes.bytes}")
    return Fixed(_scaled(sizes.bytes, sizes.scale))


def _scaled(size: float, scale: float) -> float:
    """Return a size times *scale*, bytes. Raise SizesError if it is more than is counted."""
    scaled = size * scale
    if scaled > MOST_BYTES:
        raise SizesError(f"a size of {scaled:.3g} B is above the largest ({MOST_BYTES:.3g} B)")
    return scaled
