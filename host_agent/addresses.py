"""Addresses as text and as bytes."""

from __future__ import annotations

import ipaddress


def packed(address: str) -> bytes:
    """Return an IPv4 or IPv6 address, with or without a prefix length, as 4 or 16 bytes. Raises ValueError."""
    return ipaddress.ip_interface(address).ip.packed


def text(address: bytes) -> str:
    """Return an address of 4 or 16 bytes as text."""
    return str(ipaddress.ip_address(address))
