"""Rings into which the kernel copies the headers of agents' datagrams as they come to a node of the lab.

A packet socket (packet(7)) of a node's namespace with a ring of slots and a filter: until it is read, nothing in this
process runs for a packet. A full ring takes no more and counts what it missed.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import socket
import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from experiments.results.captured import FRAME_BYTES
from protocol.underlay import BASE_PORT, FLOW_KEYS

_SOL_PACKET: Final = 263
_RX_RING, _STATISTICS, _VERSION, _IGNORE_OUTGOING = 5, 6, 10, 23
_TPACKET_V2: Final = 1
_SO_ATTACH_FILTER: Final = 26
_ETH_P_ALL: Final = 0x0003
_SLOT_BYTES: Final = 192
"""A head, its address and FRAME_BYTES: a multiple of 16, as the kernel asks."""
_BLOCK_BYTES: Final = 1 << 16
_SLOTS_A_BLOCK: Final = _BLOCK_BYTES // _SLOT_BYTES
_HEAD: Final = struct.Struct("=IIIHHII")
"""linux/if_packet.h, tpacket2_hdr: status, length, captured length, offsets of frame and IP header, seconds, ns."""
_ADDRESS_OFFSET: Final = 32
_ADDRESS: Final = struct.Struct("=HHiHBB8s")
"""sockaddr_ll: family, protocol, interface, kind of hardware, kind of packet, length, address."""
_READY: Final = 1
_LOAD_HALF, _LOAD_BYTE, _EQUAL, _AT_LEAST, _RETURN = 0x28, 0x30, 0x15, 0x35, 0x06

_libc = ctypes.CDLL(None, use_errno=True)


class RingFrame(NamedTuple):
    """A frame in a ring. at_ns: Unix time; interface: its index; head: its first FRAME_BYTES; size: of all of it."""

    at_ns: int
    interface: int
    head: bytes
    size: int


def datagram_filter() -> bytes:
    """Return a classic BPF program that takes FRAME_BYTES of UDP over IPv4 to the ports of agents, and nothing else."""
    program = [
        (_LOAD_HALF, 0, 0, 12),
        (_EQUAL, 0, 8, 0x0800),
        (_LOAD_BYTE, 0, 0, 14),
        (_EQUAL, 0, 6, 0x45),
        (_LOAD_BYTE, 0, 0, 23),
        (_EQUAL, 0, 4, 17),
        (_LOAD_HALF, 0, 0, 36),
        (_AT_LEAST, 0, 2, BASE_PORT),
        (_AT_LEAST, 1, 0, BASE_PORT + FLOW_KEYS),
        (_RETURN, 0, 0, FRAME_BYTES),
        (_RETURN, 0, 0, 0),
    ]
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in program)


class PacketRing:
    """A ring of the network namespace in which it is made. slots: how many frames it holds. Raises OSError."""

    def __init__(self, slots: int) -> None:
        blocks = max(1, -(-slots // _SLOTS_A_BLOCK))
        self._slots = blocks * _SLOTS_A_BLOCK
        self._seen = 0
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)  # 0: nothing comes before start()
        try:
            self._socket.setsockopt(_SOL_PACKET, _VERSION, _TPACKET_V2)
            self._socket.setsockopt(_SOL_PACKET, _IGNORE_OUTGOING, 1)
            self._filter(datagram_filter())
            request = struct.pack("=IIII", _BLOCK_BYTES, blocks, _SLOT_BYTES, self._slots)
            self._socket.setsockopt(_SOL_PACKET, _RX_RING, request)
            self._ring = mmap.mmap(self._socket.fileno(), blocks * _BLOCK_BYTES)
        except BaseException:
            self._socket.close()
            raise

    def start(self) -> None:
        """Have the kernel copy from now on, from all interfaces of the namespace."""
        address = _ADDRESS.pack(socket.AF_PACKET, socket.htons(_ETH_P_ALL), 0, 0, 0, 0, b"")
        if _libc.bind(self._socket.fileno(), address, len(address)):
            code = ctypes.get_errno()
            raise OSError(code, f"cannot capture: {os.strerror(code)}")

    def stop(self) -> None:
        """Have it copy no more."""
        self._filter(struct.pack("=HBBI", _RETURN, 0, 0, 0))

    def missed(self) -> int:
        """Return how many frames found the ring full since the last call."""
        counts: tuple[int, int] = struct.unpack("=II", self._socket.getsockopt(_SOL_PACKET, _STATISTICS, 8))
        return counts[1]

    def grew(self) -> bool:
        """Return True if frames came since the last call."""
        before = self._seen
        while self._seen < self._slots and _HEAD.unpack_from(self._ring, _begin(self._seen))[0] & _READY:
            self._seen += 1
        return self._seen > before

    def frames(self) -> Iterator[RingFrame]:
        """Yield what the ring has, in the order in which it came."""
        for slot in range(self._slots):
            begin = _begin(slot)
            status, size, taken, offset, _, seconds, nanoseconds = _HEAD.unpack_from(self._ring, begin)
            if not status & _READY:
                return
            interface = _ADDRESS.unpack_from(self._ring, begin + _ADDRESS_OFFSET)[2]
            head = self._ring[begin + offset : begin + offset + taken]
            yield RingFrame(seconds * 10**9 + nanoseconds, interface, head, size)

    def close(self) -> None:
        """Give the ring back."""
        self._ring.close()
        self._socket.close()

    def _filter(self, program: bytes) -> None:
        instructions = ctypes.create_string_buffer(program, len(program))
        setting = struct.pack("HP", len(program) // 8, ctypes.addressof(instructions))
        self._socket.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, setting)


def _begin(slot: int) -> int:
    """Return where a slot begins in its ring: slots do not go beyond their block."""
    return slot // _SLOTS_A_BLOCK * _BLOCK_BYTES + slot % _SLOTS_A_BLOCK * _SLOT_BYTES
