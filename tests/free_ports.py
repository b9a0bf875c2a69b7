"""Ports for what is started later, or where no program is to listen."""

from __future__ import annotations

import itertools
import os
import socket
from contextlib import suppress
from pathlib import Path

_first, _last = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
_ports = itertools.cycle(port for port in range(10_000, 65_536) if not _first <= port <= _last)
for _ in range(os.getpid() * 97 % 20_000):  # each process of the tests begins elsewhere
    next(_ports)


def free_port() -> int:
    """Return a port that is free, another each time, and that the kernel gives to no program that asks for any."""
    while True:
        port = next(_ports)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("", port))
            return port
