"""Announces flow sizes to the host agent, for schemes that know them beforehand (`host_agent.announcements`)."""

from __future__ import annotations

import json
import socket
from typing import Final

NAME: Final = "\0capstan-announcements"
"""Abstract Unix socket of the agent in this network namespace."""
PATIENCE_S: Final = 0.05
"""For room at the agent: in a network namespace the kernel lets eleven announcements wait, and where more flows begin
at once the agent may not have run meanwhile."""


def announce(source: tuple[str, int], destination: tuple[str, int], size: int | None) -> bool:
    """Announce that a TCP connection will carry *size* bytes to *destination*; None: it has no end.

    Returns whether an agent took it: False if none listens here, or it has had too many to read for `PATIENCE_S`.
    """
    announcement = {
        "protocol": "tcp",
        "source": source[0],
        "source_port": source[1],
        "destination": destination[0],
        "destination_port": destination[1],
        "bytes": size,
    }
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as out:
        out.settimeout(PATIENCE_S)
        try:
            out.connect(NAME)  # of a socket without a peer poll() says that it may send, whatever waits there
            out.send(json.dumps(announcement).encode())
        except OSError:
            return False
    return True
