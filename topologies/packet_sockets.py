"""Room for the packet sockets of a userspace datapath, without touching the machine's sysctls.

ovs-vswitchd reads and writes its ports through packet sockets: one to receive for each port, and a single
one to send on all of them, made at the first packet sent. With the kernel's default of 212992 bytes
(`net.core.wmem_default`, for the whole machine) the sending socket is full with about 90 packets in all
the ports' queues together, and drops before any queue does. The sysctl would have to be large at the moment
when the socket is made and be put back afterwards. Instead the socket itself is borrowed (pidfd_getfd,
Linux 5.6) and made larger.
"""

from __future__ import annotations

import ctypes
import os
import socket
from typing import Final

SYS_PIDFD_GETFD: Final = 438  # the same on every architecture
SO_SNDBUFFORCE: Final = 32
SO_RCVBUFFORCE: Final = 33
SEND_BYTES: Final = 128 << 20
"""The kernel doubles it. No limit in effect: each port's own queue is the one that drops."""
RECEIVE_BYTES: Final = 2 << 20
"""Some 1800 full packets a port: rides out a moment without CPU, hides no overload for long."""

_libc = ctypes.CDLL(None, use_errno=True)


def _packet_sockets(pid: int) -> dict[int, bool]:
    """Return the descriptors of a process's packet sockets; True for one that receives (it is bound to a protocol)."""
    with open(f"/proc/{pid}/net/packet", encoding="ascii") as file:
        rows = [line.split() for line in file.readlines()[1:]]
    receives = {row[-1]: row[3] != "0000" for row in rows}
    sockets = {}
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            target = os.readlink(f"/proc/{pid}/fd/{name}")
        except FileNotFoundError:
            continue
        inode = target.removeprefix("socket:[").rstrip("]")
        if target.startswith("socket:[") and inode in receives:
            sockets[int(name)] = receives[inode]
    return sockets


def enlarge_packet_sockets(pid: int) -> tuple[int, int]:
    """Make the packet sockets of a process larger; return how many send and how many receive.

    Raises OSError where another process's sockets may not be borrowed (a container without SYS_PTRACE).
    """
    counts = [0, 0]
    handle = os.pidfd_open(pid)
    try:
        for descriptor, receives in _packet_sockets(pid).items():
            copy = _libc.syscall(SYS_PIDFD_GETFD, handle, descriptor, 0)
            if copy < 0:
                code = ctypes.get_errno()
                raise OSError(code, f"pidfd_getfd of process {pid}: {os.strerror(code)}")
            with socket.socket(fileno=copy) as sock:
                sock.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, SEND_BYTES)
                sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, RECEIVE_BYTES)
            counts[receives] += 1
    finally:
        os.close(handle)
    return counts[0], counts[1]
