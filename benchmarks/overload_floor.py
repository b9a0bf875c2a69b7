"""What the machine alone makes of a mode switch: ``python -m benchmarks.overload_floor``.

Two processes. One asks the other by TCP now and then, as a leaf asks for its update; the other computes for as
long as the controller does when nothing else is asked of it, and answers. Neither shares a lock, a thread or a
connection with the controller: what makes this slower beside a load is that the processors have other work.
Says "ready"; then, for each line ``COUNT SECONDS`` on standard input, asks so often or so long, and prints the
milliseconds of each answer as JSON.
"""

from __future__ import annotations

import json
import os
import random
import socket
import sys
import time
from typing import Final

WORK_S: Final = 0.0008
"""Of a processor: what a mode switch takes in the median, alone."""
APART_S: Final = (0.25, 0.35)
"""From a leaf's turning OFF to the next short packet: longer than a leaf is held ON for coming back soon."""


def connected() -> tuple[socket.socket, socket.socket]:
    """Return both ends of a TCP connection on loopback: the load's packets go through the same queues of the kernel."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        asking = socket.create_connection(server.getsockname())
        answering, _ = server.accept()
    for end in (asking, answering):
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return asking, answering


def answer(answering: socket.socket, work_s: float = WORK_S) -> None:
    """Answer each byte after so many seconds of computing, until the other end closes."""
    while word := answering.recv(1):
        end = time.process_time() + work_s
        while time.process_time() < end:
            pass
        answering.sendall(word)


def ask(asking: socket.socket, count: int, seconds: float, rng: random.Random) -> list[float]:
    """Return the milliseconds until each of so many answers came, of fewer if the time is over before."""
    took_ms: list[float] = []
    end = time.monotonic() + seconds
    while len(took_ms) < count and time.monotonic() < end:
        time.sleep(rng.uniform(*APART_S))
        began = time.monotonic()
        asking.sendall(b"?")
        asking.recv(1)
        took_ms.append((time.monotonic() - began) * 1e3)
    return took_ms


def main() -> None:
    """Serve until standard input ends."""
    asking, answering = connected()
    if os.fork() == 0:
        asking.close()
        answer(answering)
        os._exit(0)
    answering.close()
    print("ready", flush=True)
    rng = random.Random(1)
    for line in sys.stdin:
        count, seconds = line.split()
        print(json.dumps(ask(asking, int(count), float(seconds), rng)), flush=True)
    asking.close()
    os.wait()


if __name__ == "__main__":
    main()
