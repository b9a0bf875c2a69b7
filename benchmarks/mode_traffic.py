"""Programs of the mode benchmark that run inside the lab's namespaces: ``python -m benchmarks.mode_traffic WHAT ...``.

``send`` puts agents' datagrams onto a host's link: a steady stream of the long class, and one of the short class for
every line on standard input. ``observe`` notes every such datagram that passes a leaf, with the kernel's time stamp,
and prints them as JSON when its standard input ends.
"""

from __future__ import annotations

import json
import os
import random
import select
import socket
import struct
import sys
import time
from contextlib import suppress
from typing import Final

from protocol.underlay import BASE_PORT, EV_FIRST, EV_LAST, FLOW_KEYS, TrafficClass, class_of_dscp, dscp

FLOW_KEY: Final = 5
PAYLOAD: Final = bytes(16)
"""Not what an agent sends: the receiving agent drops it as foreign."""
_ETHERNET: Final = bytes.fromhex("02ca00000002 02ca00000001 0800")
_IP: Final = struct.Struct("!BBHHHBBH4s4s")
_UDP: Final = struct.Struct("!HHHH")
_SO_RCVBUFFORCE: Final = 33
_SO_TIMESTAMPNS: Final = 35
_ALL_PROTOCOLS: Final = 3
_SNAPPED_BYTES: Final = 64


def frame(source: str, destination: str, kind: TrafficClass, entropy: int) -> bytes:
    """Return an Ethernet frame with an agent's outer headers; UDP without checksum."""
    udp = _UDP.pack(entropy, BASE_PORT + FLOW_KEY, _UDP.size + len(PAYLOAD), 0)
    length = _IP.size + len(udp) + len(PAYLOAD)
    addresses = (socket.inet_aton(source), socket.inet_aton(destination))
    ip = _IP.pack(0x45, dscp(kind) << 2, length, 0, 0, 64, socket.IPPROTO_UDP, 0, *addresses)
    total = sum(struct.unpack("!10H", ip))
    total = (total & 0xFFFF) + (total >> 16)
    checksum = struct.pack("!H", ~(total + (total >> 16)) & 0xFFFF)
    return _ETHERNET + ip[:10] + checksum + ip[12:] + udp + PAYLOAD


def send(interface: str, source: str, destination: str, per_second: float) -> None:
    """Send until standard input ends."""
    link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    link.bind((interface, 0))
    with suppress(
        PermissionError
    ):  # where the load leaves it no processor, there is no stream to see a mode in
        os.setpriority(os.PRIO_PROCESS, 0, -20)
    entropies = random.Random(1)
    sys.stdout.write("sending\n")
    sys.stdout.flush()
    due = time.monotonic()
    while True:
        kind = TrafficClass.LONG
        wait = max(0.0, due - time.monotonic())
        if select.select([sys.stdin], [], [], wait)[0]:
            if not sys.stdin.readline():
                return
            kind = TrafficClass.SHORT
        else:
            due += 1 / per_second
        link.send(frame(source, destination, kind, entropies.randint(EV_FIRST, EV_LAST)))


def observe() -> None:
    """Print [time in ns, interface, whether it leaves, class] of each datagram that was seen."""
    tap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ALL_PROTOCOLS))
    tap.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, 64 << 20)
    tap.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
    seen: list[tuple[int, str, bool, int]] = []
    sys.stdout.write("observing\n")
    sys.stdout.flush()
    while True:
        ready, _, _ = select.select([tap, sys.stdin], [], [])
        if tap not in ready:  # nothing that has passed is left unseen
            break
        data, ancillary, _, address = tap.recvmsg(_SNAPPED_BYTES, 128)
        kind = class_of(data)
        if kind is TrafficClass.NONE:
            continue
        seconds, nanoseconds = struct.unpack("qq", ancillary[0][2])
        leaves = address[2] == socket.PACKET_OUTGOING
        seen.append((seconds * 1_000_000_000 + nanoseconds, address[0], leaves, int(kind)))
    json.dump(seen, sys.stdout)


def class_of(data: bytes) -> TrafficClass:
    if len(data) < 42 or data[12:14] != b"\x08\0" or data[23] != socket.IPPROTO_UDP:
        return TrafficClass.NONE
    (port,) = struct.unpack_from("!H", data, 36)
    return class_of_dscp(data[15] >> 2) if BASE_PORT <= port < BASE_PORT + FLOW_KEYS else TrafficClass.NONE


if __name__ == "__main__":
    if sys.argv[1] == "send":
        send(sys.argv[2], sys.argv[3], sys.argv[4], float(sys.argv[5]))
    else:
        observe()
