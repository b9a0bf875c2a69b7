"""Datagrams on their way between the core and its shell."""

from __future__ import annotations

from typing import NamedTuple


class Outgoing(NamedTuple):
    """A datagram for the underlay. ``tos``: DSCP and ECN, as in an IPv4 header."""

    underlay_ip: str
    source_port: int
    destination_port: int
    tos: int
    data: bytes


class Arrived(NamedTuple):
    """A datagram from the underlay. ``source_port``: path stamp or EV."""

    data: bytes
    underlay_ip: str
    source_port: int
    tos: int
