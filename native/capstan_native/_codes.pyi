"""Erasure codes on GF(256) and GF(2), by number: 1 xor, 2 rlc, 3 ldpc, 4 mds."""

from collections.abc import Sequence

from numpy import uint8
from numpy.typing import NDArray

class ContradictionError(ValueError):
    """Received symbols of one unit cannot all be right: no packet of it may be rebuilt."""

def kernels() -> list[str]:
    """Instruction sets that can be used here, slowest first: portable, ssse3, avx2, gfni, or neon."""

def encode_packets(
    code: int, packets: Sequence[bytes], r: int, seed: int, kernel: str | None = None
) -> list[bytes]:
    """Return the r repairs of a unit of packets (1..65535 B each, of any lengths).

    A packet's symbol is its length in 2 bytes (network byte order), the packet, and zeros up to the unit's longest.
    """

def decode_packets(
    code: int,
    packets: Sequence[bytes | None],
    repairs: dict[int, bytes],
    r: int,
    seed: int,
    kernel: str | None = None,
) -> list[tuple[int, bytes]]:
    """Return index and packet of what the received symbols determine, ascending.

    `packets` has None where one has not come; `repairs` are received symbols by index 0..r-1, of one length.

    Raises:
        ContradictionError: equations, a rebuilt length, its zeros or a packet's length do not agree.
    """

def encode(
    code: int, sources: NDArray[uint8], seed: int, out: NDArray[uint8], kernel: str | None = None
) -> None:
    """Write the repairs of sources (k, width) into out (r, width), both contiguous, used where they are."""

def decode(
    code: int,
    sources: NDArray[uint8],
    missing: Sequence[int],
    repairs: NDArray[uint8],
    indices: Sequence[int],
    r: int,
    seed: int,
    out: NDArray[uint8],
    kernel: str | None = None,
) -> list[int]:
    """Rebuild missing rows of sources (k, width) from repairs (len(indices), width), used where they are.

    Returns the sources that are determined, ascending; their symbols are the first rows of out (at least
    len(missing), width). Rows of `missing` are not read.

    Raises:
        ContradictionError: surplus equations do not agree.
    """

def worth_trying(code: int, missing: int, repairs: int) -> bool:
    """Return True if decoding is likely to find anything with so many sources missing and repairs at hand."""

def ldpc_rows(k: int, r: int, seed: int) -> list[list[int]]:
    """Return the sources in each of the r rows of the LDPC-staircase parity check matrix, ascending."""
