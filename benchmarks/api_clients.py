"""Clients of the API in one process: ``python -m benchmarks.api_clients ADDRESS PORT COUNT SECONDS [apart]``.

Where wrk is not at hand, they ask as it does with `api_mix.lua`, and print the same.
"""

from __future__ import annotations

import json
import re
import selectors
import socket
import sys
import time
from collections import Counter
from dataclasses import dataclass
from itertools import count as numbers
from pathlib import Path
from typing import Any, Final

SCRIPT: Final = Path(__file__).parent / "api_mix.lua"
PATHS: Final = tuple(
    re.findall(r'"(/[^"]+)"', SCRIPT.read_text().partition("local paths = {")[2].partition("}")[0])
)
_NUMBERS: Final = numbers()


@dataclass
class _Client:
    connection: socket.socket
    turn: int
    apart: bool
    asked_at: float = 0.0
    received: bytes = b""
    wanted: int = -1
    """Bytes of the whole answer, once its head is there."""
    refused: bool = False

    def ask(self) -> None:
        self.received, self.wanted, self.asked_at = b"", -1, time.monotonic()
        path = PATHS[self.turn % len(PATHS)]
        header = f"X-Number: {next(_NUMBERS)}\r\n" if self.apart else ""
        self.connection.sendall(f"GET /api/v1{path} HTTP/1.1\r\nHost: localhost\r\n{header}\r\n".encode())
        self.turn += 1

    def read(self) -> bool:
        """Return whether the answer is there. Raises ConnectionError if none comes."""
        data = self.connection.recv(1 << 18)
        if not data:
            raise ConnectionError
        self.received += data
        if self.wanted < 0 and b"\r\n\r\n" in self.received:
            head, _, _ = self.received.partition(b"\r\n\r\n")
            self.refused = not head.startswith((b"HTTP/1.1 2", b"HTTP/1.1 3"))
            length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            self.wanted = len(head) + 4 + int(length.split(b":")[1])
        return 0 <= self.wanted <= len(self.received)


def ask(address: str, port: int, *, count: int, seconds: float, apart: bool) -> dict[str, Any]:
    """Return what `benchmarks.api_load.parse` takes."""
    us: Counter[int] = Counter()
    refused = broken = 0
    selector = selectors.DefaultSelector()
    for number in range(count):
        client = _Client(socket.create_connection((address, port), timeout=10), number, apart)
        selector.register(client.connection, selectors.EVENT_READ, client)
        client.ask()
    began = time.monotonic()
    while time.monotonic() < began + seconds and selector.get_map():
        for key, _ in selector.select(1.0):
            client = key.data
            try:
                if not client.read():
                    continue
            except OSError:
                broken += 1
                selector.unregister(client.connection)
                continue
            us[round((time.monotonic() - client.asked_at) * 1e6)] += 1
            refused += client.refused
            client.ask()
    return {
        "seconds": time.monotonic() - began,
        "requests": us.total(),
        "refused": refused,
        "broken": broken,
        "us": sorted(us.items()),
    }


if __name__ == "__main__":
    counts = ask(
        sys.argv[1],
        int(sys.argv[2]),
        count=int(sys.argv[3]),
        seconds=float(sys.argv[4]),
        apart="apart" in sys.argv[5:],
    )
    print(json.dumps(counts))
