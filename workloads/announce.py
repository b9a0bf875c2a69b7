"""Announces flow sizes to the host agent, for schemes that know them beforehand (`host_agent.announcements`)."""

from __future__ import annotations

import json
import socket
from typing import Final

NAME: Final = "\0capstan-announcements"
"""Abstract Unix socket of the agent in this network namespace."""


def announce(source: tuple[str, int], destination: tuple[str, int], size: int | None) -> bool:
    """Announce that a TCP connection will carry *size* bytes to *destination*; None: it has no end.

    Returns whether an agent took it: False if none listens here, or it has too many to read.
    """
    announcement = {
        "protocol": "tcp",
        "source": source[0],
        "source_port": source[1],
        "destination": destination[0],
        "destination_port": destination[1],
        "bytes": size,
    }
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as out:
        try:
            out.sendto(json.dumps(announcement).encode(), NAME)
        except OSError:
            return False
    return True
