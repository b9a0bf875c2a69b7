"""Addresses as text and as bytes."""

from __future__ import annotations

import ipaddress


def packed(address: str) -> bytes:
    """An IPv4 or IPv6 address, with or without a prefix length, as 4 or 16 bytes. Raises ValueError."""
    return ipaddress.ip_interface(address).ip.packed


def text(address: bytes) -> str:
    """An address of 4 or 16 bytes as text."""
    return str(ipaddress.ip_address(address))
