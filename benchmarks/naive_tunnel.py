"""The least that a tunnel can do: one packet at a time from a TUN device into UDP and back, and nothing else.

What the agent's figures are compared with: python -m benchmarks.naive_tunnel ADDRESS/LENGTH FROM TO [compiled]
The loop of the compiled one is Rust's: what processor time the kernel takes for a packet, and waking up.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import socket
import struct
import subprocess
import sys
from typing import Final

import capstan_native

PORT: Final = 46999
_TUNSETIFF: Final = 0x400454CA
_IFF_TUN, _IFF_NO_PI = 0x0001, 0x1000


def main(address: str, source: str, destination: str, loop: str = "interpreted") -> None:
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, _TUNSETIFF, struct.pack("16sH22x", b"naive0", _IFF_TUN | _IFF_NO_PI))
    lines = f"link set naive0 mtu 1426 txqueuelen 64 up\naddr add {address} dev naive0\n"
    subprocess.run(["ip", "-batch", "-"], input=lines, text=True, check=True)
    wire = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    wire.bind((source, PORT))
    wire.connect((destination, PORT))
    wire.setblocking(False)
    if loop == "compiled":
        capstan_native.carry_undecided(device, wire.fileno())
    poll = select.epoll()
    poll.register(device, select.EPOLLIN)
    poll.register(wire, select.EPOLLIN)
    while True:
        for fd, _ in poll.poll():
            with contextlib.suppress(OSError):  # no room, or the other end is not there yet
                if fd == device:
                    wire.send(os.read(device, 2000))
                else:
                    os.write(device, wire.recv(2000))


if __name__ == "__main__":
    main(*sys.argv[1:])
