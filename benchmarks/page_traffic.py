"""One host's part of the traffic that a page looks at: ``python -m benchmarks.page_traffic PORT COUNT PEER...``.

Takes what comes at PORT, and opens COUNT flows to the peers in turn. Each sends a small message every ten seconds or
so: an agent reports 32 flows every half second, those that have sent the most first, and of more some would never be
seen. The first flow to each peer sends a larger one every second, so that links carry something. Says "open" when all
are; ends with its standard input.
"""

from __future__ import annotations

import asyncio
import random
import sys
from typing import Final

MESSAGE: Final = 400
LARGE: Final = 12_000
EVERY_S: Final = 10.0
LARGE_EVERY_S: Final = 1.0
PATIENCE_S: Final = 60.0


async def _take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while await reader.read(1 << 16):
        pass
    writer.close()


async def _open(address: str, port: int) -> asyncio.StreamWriter:
    """Return a flow to a peer, which may not listen yet. Raises TimeoutError."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                _, writer = await asyncio.open_connection(address, port)
                return writer
            except ConnectionError:
                await asyncio.sleep(0.2)


async def _talk(writer: asyncio.StreamWriter, size: int, every_s: float, rng: random.Random) -> None:
    while True:
        await asyncio.sleep(every_s * rng.uniform(0.2, 1.8))
        writer.write(bytes(size))
        await writer.drain()


async def _run(port: int, count: int, peers: list[str]) -> None:
    server = await asyncio.start_server(_take, "0.0.0.0", port, backlog=count)
    writers = []
    for number in range(count):
        writers.append(await _open(peers[number % len(peers)], port))
    talks = []
    for number, writer in enumerate(writers):
        size, every_s = (LARGE, LARGE_EVERY_S) if number < len(peers) else (MESSAGE, EVERY_S)
        talks.append(asyncio.create_task(_talk(writer, size, every_s, random.Random(number))))
    print("open", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    for talk in talks:
        talk.cancel()
    server.close()


if __name__ == "__main__":
    asyncio.run(_run(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]))
