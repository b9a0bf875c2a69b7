"""Congestion control of a sender's socket; the rest of a host's TCP settings is the lab's."""

from __future__ import annotations

import socket
from pathlib import Path

from capstan_client.errors import CapstanError


class TransportError(CapstanError, RuntimeError):
    """A TCP setting cannot be made; the text says which and why."""


def set_congestion_control(connection: socket.socket, name: str) -> None:
    """Set a socket's congestion control (root may use any that the kernel has, whatever is allowed).

    Raises:
        TransportError: this kernel does not have it.
    """
    try:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())
    except OSError as error:
        available = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().strip()
        raise TransportError(
            f"congestion control {name!r} is refused: {error}", remedy=f"available: {available}"
        ) from None
