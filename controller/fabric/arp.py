"""ARP frames (RFC 826) over Ethernet and IPv4."""

from __future__ import annotations

import ipaddress
import struct
from dataclasses import dataclass
from typing import Final, Literal

from controller.fabric.lldp import CONTROLLER_MAC

ETH_ARP: Final = 0x0806
BROADCAST_MAC: Final = "ff:ff:ff:ff:ff:ff"
NO_MAC: Final = "00:00:00:00:00:00"
NO_ADDRESS: Final = "0.0.0.0"
REQUEST: Final = 1
REPLY: Final = 2
_FRAME: Final = struct.Struct("!6s6sHHHBBH6s4s6s4s")


@dataclass(frozen=True, slots=True)
class Arp:
    """One ARP packet and the Ethernet addresses that it travels under."""

    eth_dst: str
    eth_src: str
    operation: Literal[1, 2]
    sender_mac: str
    sender_ip: str
    target_mac: str
    target_ip: str

    def encode(self) -> bytes:
        """Return the whole Ethernet frame."""
        return _FRAME.pack(
            _mac(self.eth_dst),
            _mac(self.eth_src),
            ETH_ARP,
            1,
            0x0800,
            6,
            4,
            self.operation,
            _mac(self.sender_mac),
            ipaddress.IPv4Address(self.sender_ip).packed,
            _mac(self.target_mac),
            ipaddress.IPv4Address(self.target_ip).packed,
        )


def decode_arp(frame: bytes) -> Arp | None:
    """Return the ARP request or reply for IPv4 over Ethernet in *frame*; None for any other, or if it is cut short."""
    if len(frame) < _FRAME.size:
        return None
    dst, src, kind, hardware, protocol, hlen, plen, op, sha, spa, tha, tpa = _FRAME.unpack_from(frame)
    if (kind, hardware, protocol, hlen, plen) != (ETH_ARP, 1, 0x0800, 6, 4) or op not in (REQUEST, REPLY):
        return None
    return Arp(
        _text(dst),
        _text(src),
        op,
        _text(sha),
        str(ipaddress.IPv4Address(spa)),
        _text(tha),
        str(ipaddress.IPv4Address(tpa)),
    )


def is_host_mac(mac: str) -> bool:
    """Return whether *mac* can be the address of one host: not a group's, not empty, not the controller's."""
    raw = _mac(mac)
    return not raw[0] & 1 and any(raw) and raw != CONTROLLER_MAC


def is_host_address(ipv4: str) -> bool:
    """Return whether *ipv4* can be the address of one host."""
    address = ipaddress.IPv4Address(ipv4)
    return not (
        address.is_multicast or address.is_unspecified or address.is_loopback or address.packed[0] >= 240
    )


def _mac(text: str) -> bytes:
    return bytes.fromhex(text.replace(":", ""))


def _text(mac: bytes) -> str:
    return mac.hex(":")
