"""A range of UDP ports as masked values, as flow entries match them."""

from __future__ import annotations

from controller.openflow.wanted import Masked

_BITS = 16


def prefixes(first: int, last: int) -> tuple[Masked, ...]:
    """Return the fewest (value, mask) pairs that together match exactly the ports *first* to *last*, both included.

    Raises:
        ValueError: no such range of 16-bit ports.
    """
    if not 0 <= first <= last < 1 << _BITS:
        raise ValueError(f"ports {first}..{last} are not a range within 0..65535")
    pairs: list[Masked] = []
    while first <= last:
        # The largest block that begins here: as aligned as `first` is, no longer than what is left.
        bits = min((first & -first).bit_length() - 1 if first else _BITS, (last - first + 1).bit_length() - 1)
        pairs.append((first, (1 << _BITS) - (1 << bits)))
        first += 1 << bits
    return tuple(pairs)
