"""Clients that may send results, and send what they can: ``python -m benchmarks.overload_bodies PORT``, on loopback.

Four that send runs of 5000 flows (4 MB), four whose bodies of 64 MiB are no run; each begins its next as soon as it has
an answer. Says "loading" once an experiment is there for them; when standard input ends, prints as JSON what there was.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

from benchmarks.overload_load import BODY_BYTES, repeated, run_load

SENDERS: Final = 4
FLOWS: Final = 5000
_PIECE: Final = 1 << 18
_TEXT_BYTES: Final = 1 << 20
_FLOW: Final = {
    "flow": 1,
    "source": "h1",
    "destination": "h5",
    "traffic_class": "short",
    "state": "finished",
    "size_bytes": 52_000,
    "started_s": 1.2,
    "finished_s": 1.27,
    "fct_s": 0.07,
    "retransmissions": 0,
    "packets": 36,
    "paths": {"1025": 12, "1026": 12, "1027": 12},
}


class BodiesOverload:
    """Counts what there was."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.counts: Counter[str] = Counter()
        self._repeats = itertools.count()
        self._experiment = 0
        flows = json.dumps([_FLOW] * FLOWS)
        self._flows = flows
        texts = ", ".join(
            f'"{number:02}": "{"x" * _TEXT_BYTES}"' for number in range(BODY_BYTES // _TEXT_BYTES - 1)
        )
        head, tail = f'{{"measures": {{{texts}, "last": "'.encode(), b'"}}'
        self._no_run = head + b"x" * (BODY_BYTES - len(head) - len(tail)) + tail

    async def run(self, loading: Callable[[], None]) -> None:
        """Load until cancelled. loading: called once all of it can begin."""
        begun = json.dumps({"name": "overload", "seed": 1, "spec": {}}).encode()
        status, answer = await self._post("/experiments/recorded", begun)
        if status != 201:
            raise RuntimeError(f"the experiment was not begun: {status} {answer!r}")
        self._experiment = json.loads(answer)["id"]
        async with asyncio.TaskGroup() as tasks:
            for _ in range(SENDERS):
                tasks.create_task(repeated(self._send_run))
                tasks.create_task(repeated(self._send_no_run))
            loading()

    async def _send_run(self) -> None:
        run: dict[str, Any] = {"scheme": "ecmp", "repeat": next(self._repeats), "seed": 1, "started_at": 1.0}
        head = json.dumps(run | {"finished_at": 2.0, "measures": {}})[:-1]
        await self._send(f'{head}, "flows": {self._flows}}}'.encode())

    async def _send_no_run(self) -> None:
        await self._send(self._no_run)

    async def _send(self, body: bytes) -> None:
        status, _ = await self._post(f"/experiments/{self._experiment}/runs", body)
        self.counts[f"answers_{status}"] += 1
        if status != 429:
            self.counts["sent_bytes"] += len(body)

    async def _post(self, path: str, body: bytes) -> tuple[int, bytes]:
        """Return status and body of the answer. Raises ConnectionError where there is none."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        try:
            head = f"POST /api/v1{path} HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\nConnection: close\r\n"
            head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            writer.write(head.encode())
            for start in range(0, len(body), _PIECE):
                writer.write(body[start : start + _PIECE])
                await writer.drain()
            answer = await reader.read()
            answer_head, _, content = answer.partition(b"\r\n\r\n")
            if not answer_head.startswith(b"HTTP/1.1 "):
                raise ConnectionResetError("no answer")
            return int(answer_head[9:12]), content
        finally:
            writer.transport.abort()


if __name__ == "__main__":
    run_load(BodiesOverload(int(sys.argv[1])))
