"""Ports for what is started later, or where no program is to listen."""

from __future__ import annotations

import random
import socket
from contextlib import suppress
from pathlib import Path


def free_port() -> int:
    """Return a TCP port that is free, and that the kernel gives to no program of those that ask for any."""
    first, last = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    choices = [port for port in range(10_000, 65_536) if not first <= port <= last]
    while True:
        port = random.SystemRandom().choice(choices)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("0.0.0.0", port))
            return port
