"""How many repairs of a unit the codes allow. Apart from the codes, so that formulas need no native kernels."""

from __future__ import annotations

from typing import Final

from protocol.policy import CodeName

_MOST_REPAIRS: Final = 255
"""A repair's index is one byte on the wire."""
_FIELD: Final = 256
"""Elements of GF(256): a Cauchy matrix has at most so many rows and columns together."""


def most_repairs(code: CodeName, k: int) -> int:
    """Repairs beyond this number would be of no use for *k* sources, or cannot be."""
    if code == "xor":
        return k
    return min(_MOST_REPAIRS, _FIELD - k) if code == "mds" else _MOST_REPAIRS
