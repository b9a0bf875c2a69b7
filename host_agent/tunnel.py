"""Rules of IP tunnels: the door to `native/datapath/src/tunnel.rs` (RFC 6040, RFC 1191, RFC 8201)."""

from __future__ import annotations

from typing import Final

from capstan_native import decapsulate_ecn, dont_fragment, ecn_of, fragment, too_big, unreachable

__all__ = [
    "CE",
    "ECT0",
    "ECT1",
    "NOT_ECT",
    "decapsulate_ecn",
    "dont_fragment",
    "ecn_of",
    "fragment",
    "too_big",
    "unreachable",
]

NOT_ECT: Final = 0b00
ECT1: Final = 0b01
ECT0: Final = 0b10
CE: Final = 0b11
