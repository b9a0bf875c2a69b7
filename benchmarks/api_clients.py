"""Many clients of the API at once, in one process: ``python -m benchmarks.api_clients ADDRESS PORT COUNT SECONDS``.

Each keeps its connection, and asks again as soon as it is answered, as wrk's do. Prints as JSON the milliseconds of
every answer, by path.
"""

from __future__ import annotations

import json
import selectors
import socket
import sys
import time
from dataclasses import dataclass
from typing import Final

PATHS: Final = (
    "/health",
    "/fabric",
    "/modes",
    "/agents",
    "/links",
    "/scheme",
    "/experiments",
    "/events?limit=100",
)


@dataclass
class _Client:
    connection: socket.socket
    turn: int
    asked_at: float = 0.0
    heard: bytes = b""
    wanted: int = -1
    """Bytes of the whole answer, once its head is there."""

    @property
    def path(self) -> str:
        return PATHS[self.turn % len(PATHS)]

    def ask(self) -> None:
        self.heard, self.wanted, self.asked_at = b"", -1, time.monotonic()
        self.connection.sendall(f"GET /api/v1{self.path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())

    def read(self) -> bool:
        """Whether the answer is there. Raises SystemExit for one that is no success."""
        data = self.connection.recv(1 << 18)
        self.heard += data
        if self.wanted < 0 and b"\r\n\r\n" in self.heard:
            head, _, _ = self.heard.partition(b"\r\n\r\n")
            if not head.startswith(b"HTTP/1.1 200 "):
                raise SystemExit(f"{self.path}: {head[:200]!r}")
            length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            self.wanted = len(head) + 4 + int(length.split(b":")[1])
        if not data:
            raise SystemExit(f"{self.path}: the connection has ended")
        return 0 <= self.wanted <= len(self.heard)


def load(address: str, port: int, count: int, seconds: float) -> dict[str, list[float]]:
    """Milliseconds of each answer, by path."""
    took: dict[str, list[float]] = {path: [] for path in PATHS}
    selector = selectors.DefaultSelector()
    for number in range(count):
        client = _Client(socket.create_connection((address, port), timeout=10), number)
        selector.register(client.connection, selectors.EVENT_READ, client)
        client.ask()
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        for key, _ in selector.select(1.0):
            client = key.data
            if client.read():
                took[client.path].append((time.monotonic() - client.asked_at) * 1e3)
                client.turn += 1
                client.ask()
    return took


if __name__ == "__main__":
    print(json.dumps(load(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))))
