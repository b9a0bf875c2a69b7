"""Cookies of our flow entries: what rule each is.

On the wire a cookie is 16 bits of generation, which the shell sets and reads (`controller.openflow.codec`), and 48 bits
of `Flow.cookie`, of which the lowest 8 are a `Rule`. A packet-in carries the cookie of the entry that sent it, so the
rule says why the packet came, whichever generation of state it is of.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

_RULE_MASK: Final = 0xFF


class Rule(IntEnum):
    """What a flow entry is for. The first three, and ARP_ANSWERED, send packets to the controller."""

    LLDP = 1
    ARP = 2
    FIRST_SHORT = 3
    """The short class of a leaf that is OFF: forwards, and copies to the controller."""
    CLASSIFY = 4
    DELIVER = 5
    REMOTE = 6
    """A host of another leaf: which leaf."""
    CLASS = 7
    """Which group serves a class."""
    CHOOSE = 8
    GUARD = 9
    """Drops what must not go on: forged stamps and source addresses, and at a leaf what is for another one's hosts and
    does not come from its own."""
    SOURCE = 10
    """Lets packets by whose source address is not another host's."""
    ARP_ANSWERED = 11
    """Answers a unicast ARP request, and copies it to the controller."""


def rule_of(cookie: int) -> Rule | None:
    """Return the rule of an entry's cookie, with or without a generation; None if no controller of ours wrote it."""
    number = cookie & _RULE_MASK
    return Rule(number) if number in Rule.__members__.values() else None
