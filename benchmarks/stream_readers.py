"""Many readers of the controller's stream in one process: ``python -m benchmarks.stream_readers ADDRESS PORT COUNT``.

Says "reading" once all are served; when standard input ends, prints as JSON how many samples of the links each got, and
how many bytes came in all. Of ten readers one takes nothing at all, and one looks at what it gets; the others have the
kernel throw it away, for what is measured is the controller and not its readers.
"""

from __future__ import annotations

import json
import selectors
import socket
import sys
import time
from typing import Final

IDLE_EVERY: Final = 10
_REQUEST: Final = (
    b"GET /api/v1/events?topics=fabric,modes,links HTTP/1.1\r\n"
    b"Host: localhost\r\nAccept: text/event-stream\r\n\r\n"
)
_MARK: Final = b"event: links\n"


def read(address: str, port: int, count: int) -> None:
    """Read until standard input ends."""
    selector = selectors.DefaultSelector()
    samples = dict.fromkeys(range(count), 0)
    tails = dict.fromkeys(range(count), b"")
    idle = []
    for number in range(count):
        connection = socket.create_connection((address, port), timeout=10)
        connection.sendall(_REQUEST)
        head = connection.recv(65536)
        if not head.startswith(b"HTTP/1.1 200 "):
            raise SystemExit(f"reader {number} was refused: {head[:200]!r}")
        connection.setblocking(False)
        if number % IDLE_EVERY == IDLE_EVERY - 1:
            idle.append(connection)
        else:
            selector.register(connection, selectors.EVENT_READ, number)
    selector.register(sys.stdin, selectors.EVENT_READ, None)
    print("reading", flush=True)
    thrown_away = bytearray(1 << 18)
    octets, began = 0, time.monotonic()
    while True:
        for key, _ in selector.select():
            if key.data is None:
                active = [count for number, count in samples.items() if number % IDLE_EVERY == 0]
                seconds = time.monotonic() - began
                print(json.dumps({"samples": active, "bytes": octets, "seconds": seconds}), flush=True)
                return
            reader = key.fileobj
            assert isinstance(reader, socket.socket)
            if key.data % IDLE_EVERY:
                octets += reader.recv_into(thrown_away, 0, socket.MSG_TRUNC)
                continue
            data = reader.recv(1 << 18)
            if not data:
                raise SystemExit(f"the stream of reader {key.data} has ended")
            octets += len(data)
            text = tails[key.data] + data
            samples[key.data] += text.count(_MARK)
            tails[key.data] = text[-len(_MARK) + 1 :]


if __name__ == "__main__":
    read(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
