"""Agents that send what they can: ``python -m benchmarks.overload_agents SOCKET TOKEN_FILE``.

200 with the token, each of which sends counters, loads of paths and finished flows as fast as they are taken, and 300
connections without it: a third silent, a third with a wrong proof, a third with half a frame. Each begins again when it
is refused. Says "loading" once the agents have been welcomed; when standard input ends, prints as JSON what there was.
All come from the controller's own user, who may have all places of connections that have not said who they are.
"""

from __future__ import annotations

import asyncio
import struct
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from benchmarks.overload_load import repeated, run_load
from protocol.control import Challenge, Counters, FinishedFlows, Hello, PathLoad, Welcome, proof
from protocol.frames import FrameReader, encode

AGENTS: Final = 200
UNPROVED: Final = 300
UNDER_WAY_S: Final = 20.0
FLOWS: Final = 512
"""Finished flows in a message, as an agent sends them."""
_LEAF: Final = "0000000000fab001"


class AgentsOverload:
    """Counts what there was. path: of the agents' socket."""

    def __init__(self, path: str, token: str) -> None:
        self._path, self._token = path, token
        self.counts: Counter[str] = Counter()
        self._welcomed = 0

    async def run(self, loading: Callable[[], None]) -> None:
        """Load until cancelled. loading: called once the agents have been welcomed, after 20 s in any case."""
        unproved = (self._silent, self._liar, self._half)
        async with asyncio.TaskGroup() as tasks:
            for number in range(AGENTS):
                tasks.create_task(repeated(self._agent_of(number)))
            end = time.monotonic() + UNDER_WAY_S
            while self._welcomed < AGENTS and time.monotonic() < end:
                await asyncio.sleep(0.1)
            for number in range(UNPROVED):
                tasks.create_task(repeated(unproved[number % len(unproved)]))
            loading()

    def _agent_of(self, number: int) -> Callable[[], Awaitable[None]]:
        async def work() -> None:
            await self._agent(number)

        return work

    async def _agent(self, number: int) -> None:
        """Be an agent that sends all the time, and reads all that it is sent."""
        reader, writer = await asyncio.open_unix_connection(self._path)
        messages = _messages(number)
        frames = b"".join(messages)
        try:
            await self._greet(reader, writer, number, self._token)
            self._welcomed += 1
            taking = asyncio.create_task(_take(reader))
            try:
                while not taking.done():
                    writer.write(frames)
                    await writer.drain()
                    self.counts["sent_bytes"] += len(frames)
                    self.counts["messages"] += len(messages)
            finally:
                taking.cancel()
        finally:
            writer.transport.abort()

    async def _greet(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int, token: str
    ) -> None:
        """Say who we are. Raises ConnectionError unless we are welcome."""
        frames = FrameReader()
        while data := await reader.read(1 << 16):
            for message in frames.feed(data):
                if isinstance(message, Challenge):
                    writer.write(encode(_hello(number, message.nonce, token)))
                elif isinstance(message, Welcome):
                    self.counts["welcomes"] += 1
                    return
        self.counts["refusals"] += 1
        raise ConnectionResetError("not welcome")

    async def _silent(self) -> None:
        """Connect, and say nothing."""
        await self._wait(b"", "silent")

    async def _half(self) -> None:
        """Say half of a hello, as long as one may be."""
        await self._wait(struct.pack("!IB", 60_000, 0x4A) + b"{" + b" " * 50_000, "halves")

    async def _liar(self) -> None:
        """Say who we are without the token."""
        reader, writer = await asyncio.open_unix_connection(self._path)
        try:
            await self._greet(reader, writer, AGENTS, "x" * 32)
        finally:
            writer.transport.abort()

    async def _wait(self, opening: bytes, name: str) -> None:
        reader, writer = await asyncio.open_unix_connection(self._path)
        try:
            writer.write(opening)
            self.counts[name] += 1
            await _take(reader)
        finally:
            writer.transport.abort()


async def _take(reader: asyncio.StreamReader) -> None:
    while await reader.read(1 << 16):
        pass


def _hello(number: int, nonce: str, token: str) -> Hello:
    own = f"{number // 200}.{number % 200 + 1}"
    return Hello(
        proof=proof(token, "agent", nonce),
        nonce="ab" * 16,
        host=f"x{number}",
        underlay_ip=f"10.77.{own}",
        underlay_mac=f"02:00:00:77:{number // 200:02x}:{number % 200 + 1:02x}",
        overlay=[f"10.177.{own}"],
        session=number + 1,
        version="0.2.0",
    )


def _messages(number: int) -> list[bytes]:
    """Return what an agent sends each time, as large as a busy one's."""
    own = _hello(number, "", "").overlay[0]
    flows = list(range(FLOWS))
    times = [float(flow) for flow in flows]
    delays = {str(stamp): 0.0001 * stamp for stamp in range(1025, 1041)}
    return [
        encode(message)
        for message in (
            Counters({f"counter_{name}": float(name) for name in range(200)}),
            PathLoad({"1025": 3, "1026": 4}, {f"{leaf:016x}": delays for leaf in range(64)}),
            FinishedFlows(
                1000.0, [6] * FLOWS, [own] * FLOWS, flows, [own] * FLOWS, flows, flows, times, times
            ),
        )
    ]


if __name__ == "__main__":
    run_load(AgentsOverload(sys.argv[1], Path(sys.argv[2]).read_text(encoding="ascii").strip()))
