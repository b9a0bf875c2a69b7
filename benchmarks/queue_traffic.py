"""Programs that run on a lab's hosts to load priority queues: ``python -m benchmarks.queue_traffic WHAT ...``.

All use ordinary sockets between underlay addresses, with the DSCP of the short class and a priority.
"""

from __future__ import annotations

import json
import socket
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from protocol.underlay import TrafficClass, dscp

PAYLOAD: Final = 1472
"""Bytes of UDP payload in a frame of 1514 B."""
FRAME_BITS: Final = 1514 * 8
MOST_AT_ONCE: Final = 16
"""Datagrams of one priority in a row."""


def _say(value: object) -> None:
    print(value if isinstance(value, str) else json.dumps(value), flush=True)


def _mark(sock: socket.socket, priority: int) -> None:
    sock.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, dscp(TrafficClass.SHORT, priority) << 2)


def flood(destination: str, port: int, seconds: float, rates: Sequence[tuple[int, float]]) -> None:
    """Send datagrams of full size at a steady rate for each (priority, Mbit/s on the wire); print how many of
    each.

    What a pause of this process has cost is not made up for by a burst: that would not be a steady rate.
    """
    streams = list[tuple[socket.socket, float]]()
    for priority, mbps in rates:
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        _mark(sock, priority)
        sock.connect((destination, port))
        streams.append((sock, mbps * 1e6 / FRAME_BITS))
    sent, due = [0] * len(streams), [0.0] * len(streams)
    data = bytes(PAYLOAD)
    _say("sending")
    last = began = time.monotonic()
    while (now := time.monotonic()) - began < seconds:
        for number, (sock, per_second) in enumerate(streams):
            due[number] = min(due[number] + per_second * (now - last), MOST_AT_ONCE)
            while due[number] >= 1:
                with suppress(ConnectionRefusedError):
                    sock.send(data)
                sent[number] += 1
                due[number] -= 1
        last = now
        time.sleep(0.0005)
    _say({str(priority): count for (priority, _), count in zip(rates, sent, strict=True)})


def drain(port: int) -> None:
    """Take datagrams and forget them, until ended."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind(("", port))
    _say("listening")
    while True:
        sock.recv(2048)


def echo(port: int, priority: int) -> None:
    """Send datagrams back, until ended."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    _mark(sock, priority)
    sock.bind(("", port))
    _say("listening")
    while True:
        data, sender = sock.recvfrom(2048)
        sock.sendto(data, sender)


def ping(destination: str, port: int, *, priority: int, count: int, interval: float) -> None:
    """Print round-trip times of small datagrams, in ms; null for one that has not come back in 20 seconds."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    _mark(sock, priority)
    sock.connect((destination, port))
    times: list[float | None] = []
    for number in range(count):
        sock.settimeout(20.0)
        began = time.perf_counter()
        sock.send(number.to_bytes(4, "big") + bytes(60))
        try:
            while int.from_bytes(sock.recv(2048)[:4], "big") != number:
                continue
        except TimeoutError:
            times.append(None)
        else:
            times.append((time.perf_counter() - began) * 1e3)
        time.sleep(interval)
    _say(times)


def receive(port: int, skip: float, seconds: float) -> None:
    """Take one TCP connection; prints Mbit/s of payload after the first *skip* seconds, for *seconds*."""
    listener = socket.create_server(("", port))
    _say("listening")
    sock = listener.accept()[0]
    buffer = bytearray(1 << 18)
    began = time.monotonic()
    while time.monotonic() - began < skip:
        sock.recv_into(buffer)
    began, got = time.monotonic(), 0
    while (passed := time.monotonic() - began) < seconds:
        got += sock.recv_into(buffer)
    _say(got * 8 / passed / 1e6)


def send(destination: str, port: int, priority: int, seconds: float) -> None:
    """Fill a TCP connection for so long."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    _mark(sock, priority)
    sock.connect((destination, port))
    _say("connected")
    data, end = bytes(1 << 16), time.monotonic() + seconds
    with suppress(ConnectionError):
        while time.monotonic() < end:
            sock.send(data)


def main(words: list[str]) -> None:
    match words:
        case ["flood", destination, port, seconds, *rates]:
            pairs = [(int(entry.split(":")[0]), float(entry.split(":")[1])) for entry in rates]
            flood(destination, int(port), float(seconds), pairs)
        case ["drain", port]:
            drain(int(port))
        case ["echo", port, priority]:
            echo(int(port), int(priority))
        case ["ping", destination, port, priority, count, interval]:
            ping(destination, int(port), priority=int(priority), count=int(count), interval=float(interval))
        case ["receive", port, skip, seconds]:
            receive(int(port), float(skip), float(seconds))
        case ["send", destination, port, priority, seconds]:
            send(destination, int(port), int(priority), float(seconds))
        case _:
            sys.exit(f"not known: {words}")


if __name__ == "__main__":
    main(sys.argv[1:])
