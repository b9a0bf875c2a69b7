"""The erasure codes, by name and by number on the wire.

All are systematic and linear: a repair is a sum of multiples of the unit's symbols. A packet's symbol is its length in
2 bytes, the packet, and zeros up to the unit's longest. The kernels are in native/; docs/coding.md has the formulas.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from host_agent.coding.native import decode_packets, encode_packets, worth_trying
from protocol.datagram import CodeId
from protocol.policy import CodeName


@dataclass(frozen=True, slots=True)
class Code:
    """One code. Units have 1..255 sources, 1..255 repairs (mds: k + r <= 256), and an unsigned 32-bit seed."""

    name: CodeName
    id: CodeId

    def encode(self, packets: Sequence[bytes], r: int, seed: int) -> list[bytes]:
        """Return the r repairs' symbols, as long as the symbol of the longest packet.

        Raises:
            ValueError: a packet is empty or above 65535 B, or k or r is out of range.
        """
        return encode_packets(self.id, packets, r, seed)

    def worth_trying(self, missing: int, repairs: int) -> bool:
        """Return whether `decode` is likely to find anything with so many sources missing and repairs at
        hand.
        """
        return worth_trying(self.id, missing, repairs)

    def decode(
        self, packets: Sequence[bytes | None], repairs: Mapping[int, bytes], r: int, seed: int
    ) -> list[tuple[int, bytes]]:
        """Rebuild what the received symbols determine.

        Args:
            packets: the unit's k packets, None where one has not come.
            repairs: symbols of received repairs by index 0..r-1, at least one.
            r: repairs that the unit was sent with.
            seed: from the repairs' head.

        Returns:
            Index and packet of what is rebuilt, ascending; what is not determined yet is absent.

        Raises:
            ContradictionError: the symbols cannot all be right: there are more equations than unknowns and they do
                not agree, or a rebuilt symbol is not a packet and zeros, or a packet is longer than the symbols.
            ValueError: no unit can be like that (sizes, indices, k, r).
        """
        return decode_packets(self.id, packets, dict(repairs), r, seed)


_CODES: Final[tuple[Code, ...]] = (
    Code("xor", CodeId.XOR),
    Code("rlc", CodeId.RLC),
    Code("ldpc", CodeId.LDPC),
    Code("mds", CodeId.MDS),
)
_BY_NAME: Final[dict[str, Code]] = {code.name: code for code in _CODES}


def code_named(name: CodeName) -> Code:
    """Return the code of that name. Raise ValueError if there is none."""
    try:
        return _BY_NAME[name]
    except KeyError:
        raise ValueError(f"code {name!r} is not known; there are {', '.join(sorted(_BY_NAME))}") from None
