"""All kinds of overload at once: ``python -m benchmarks.overload_load OPENFLOW_PORT API_PORT``, both on loopback.

Says "loading" once all of it is under way, after 20 s in any case; when standard input ends, prints as JSON what of it
there was. It is on the machine that it loads, so it runs only where a processor has nothing else to do (SCHED_IDLE):
what is measured is what it costs the controller, not what it costs all others that share its processor.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, Protocol

from benchmarks.openflow_peer import OpenFlowPeer, packet_in
from controller.openflow.cookies import Rule

PACKET_INS_PER_S: Final = 60_000
DPIDS: Final = 5000
PORTS: Final = 300_000
PORTS_OF_ONE: Final = 4000
READERS: Final = 1000
UPLOADS: Final = 8
BODY_BYTES: Final = 64 << 20
PIPELINES: Final = 8
PIPELINED: Final = 500
UNDER_WAY_S: Final = 20.0
_HOST: Final = "127.0.0.1"
_DPID: Final = 0x5000_0000
_FLOOD_DPID: Final = 0x6000_0000
_TICK_S: Final = 0.005
_AGAIN_S: Final = 0.2
"""After a connection that was refused or ended, the next one."""
_STEPS: Final = 50
"""Connections of switches that are begun at a time."""
_ARP: Final = bytes.fromhex(
    "ffffffffffff 020000000001 0806 0001 0800 06 04 0001 020000000001 0a000101 000000000000 0a000102"
)
_STREAM: Final = b"GET /api/v1/events?topics=fabric,modes,links HTTP/1.1\r\nHost: localhost\r\n\r\n"
_REQUEST: Final = b"GET /api/v1/fabric HTTP/1.1\r\nHost: localhost\r\n\r\n"
_UPLOAD: Final = (
    b"POST /api/v1/experiments HTTP/1.1\r\nHost: rebound.example\r\nContent-Type: application/json\r\n"
    b"Content-Length: %d\r\n\r\n" % BODY_BYTES
)


class Overload:
    """Counts what there was."""

    def __init__(self, openflow_port: int, api_port: int) -> None:
        self._openflow, self._api = openflow_port, api_port
        self.counts: Counter[str] = Counter()

    async def run(self, loading: Callable[[], None]) -> None:
        """Load until cancelled. loading: called once all of it is under way."""
        async with asyncio.TaskGroup() as tasks:
            again = [self._flood, *[self._upload] * UPLOADS, *[self._pipeline] * PIPELINES]
            again += [self._reader if number % 2 else self._silent for number in range(READERS)]
            for work in again:
                tasks.create_task(repeated(work))
            step = asyncio.Semaphore(_STEPS)
            switches = [asyncio.Event() for _ in range(DPIDS)]
            for number, tried in enumerate(switches):
                tasks.create_task(self._switch(number, step, tried))
            with suppress(TimeoutError):
                async with asyncio.timeout(UNDER_WAY_S):
                    for tried in switches:
                        await tried.wait()
            loading()

    async def _switch(self, number: int, step: asyncio.Semaphore, tried: asyncio.Event) -> None:
        """Be a switch of its own datapath id, with 4000 ports while there are ports left; it stays."""
        count = max(0, min(PORTS_OF_ONE, PORTS - number * PORTS_OF_ONE)) or 1
        peer = OpenFlowPeer(_DPID + number, range(1, count + 1))
        with suppress(OSError):
            async with step:
                try:
                    reader, writer = await asyncio.open_connection(_HOST, self._openflow)
                    writer.write(peer.data_to_send())
                    await self._serve_until(peer, reader, writer, time.monotonic() + 1.0)
                finally:
                    tried.set()
            self.counts["dpids"] += 1
            self.counts["ports"] += count
            await self._serve(peer, reader, writer)
            self.counts["switches_closed"] += 1

    async def _serve_until(
        self, peer: OpenFlowPeer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, end: float
    ) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout_at(asyncio.get_running_loop().time() + end - time.monotonic()):
                await self._serve(peer, reader, writer)

    async def _serve(
        self, peer: OpenFlowPeer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        while data := await reader.read(1 << 18):
            for _ in peer.receive(data):
                self.counts["asked_of_switches"] += 1
            writer.write(peer.data_to_send())

    async def _flood(self) -> None:
        """Be a switch that sends up packets at a steady rate, as far as they are taken."""
        peer = OpenFlowPeer(_FLOOD_DPID, [1])
        reader, writer = await asyncio.open_connection(_HOST, self._openflow)
        writer.write(peer.data_to_send())
        serving = asyncio.create_task(self._serve(peer, reader, writer))
        packet = packet_in(1, Rule.ARP, _ARP)
        last = time.monotonic()
        try:
            while not serving.done():
                await asyncio.sleep(_TICK_S)
                await writer.drain()
                now = time.monotonic()
                count = int(min(now - last, 1.0) * PACKET_INS_PER_S)
                last = now
                writer.write(packet * count)
                self.counts["packet_ins"] += count
        finally:
            serving.cancel()
            writer.transport.abort()

    async def _reader(self) -> None:
        """Ask for the stream, and take nothing of it."""
        await self._ask_and_wait(_STREAM, "readers")

    async def _silent(self) -> None:
        """Connect, and ask for nothing."""
        await self._ask_and_wait(b"", "silent")

    async def _pipeline(self) -> None:
        """Ask 500 times, and take no answer."""
        await self._ask_and_wait(_REQUEST * PIPELINED, "pipelines")

    async def _ask_and_wait(self, request: bytes, name: str) -> None:
        ended = asyncio.get_running_loop().create_future()
        transport, _ = await asyncio.get_running_loop().create_connection(
            lambda: _NotReading(ended), _HOST, self._api
        )
        try:
            transport.write(request)
            self.counts[name] += 1
            await ended
        finally:
            transport.abort()

    async def _upload(self) -> None:
        """Send a long body that is for another host, for as long as it is taken."""
        _, writer = await asyncio.open_connection(_HOST, self._api)
        piece = bytes(1 << 16)
        try:
            writer.write(_UPLOAD)
            self.counts["uploads"] += 1
            for _ in range(BODY_BYTES // len(piece)):
                writer.write(piece)
                await writer.drain()
                self.counts["uploaded_bytes"] += len(piece)
        finally:
            writer.transport.abort()


class _NotReading(asyncio.Protocol):
    """Takes nothing; the end of the connection shows when something is written, or never."""

    def __init__(self, ended: asyncio.Future[None]) -> None:
        self._ended = ended

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.pause_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._ended.done():
            self._ended.set_result(None)


async def repeated(work: Callable[[], Awaitable[None]]) -> None:
    """Do *work* again and again, a moment after it ended or its connection broke."""
    while True:
        with suppress(OSError):
            await work()
        await asyncio.sleep(_AGAIN_S)


class Load(Protocol):
    """Something that loads a controller."""

    counts: Counter[str]

    async def run(self, loading: Callable[[], None]) -> None:
        """Load until cancelled; call *loading* once all of it is under way."""


async def _until_stdin_ends(load: Load) -> None:
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_reader(sys.stdin, ended.set)
    task = asyncio.create_task(load.run(lambda: print("loading", flush=True)))
    waiting = asyncio.create_task(ended.wait())
    await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


def run_load(load: Load) -> None:
    """Load until standard input ends; print as JSON what there was, and the seconds that it took."""
    os.sched_setscheduler(
        0, os.SCHED_IDLE, os.sched_param(0)
    )  # nice 19 would still take whole ticks from others
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    began = time.monotonic()
    asyncio.run(_until_stdin_ends(load))
    print(json.dumps({**load.counts, "seconds": time.monotonic() - began}), flush=True)


if __name__ == "__main__":
    run_load(Overload(int(sys.argv[1]), int(sys.argv[2])))
