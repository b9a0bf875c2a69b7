"""One agent's connection, from the challenge to its end. Runs in the agent server's event loop."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import os
import secrets
import socket
import struct
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from capstan_client.errors import CapstanError
from controller.agents.inbound import HalfFrames, HandlingTime, Inbound
from protocol.admission import Finished, Grant, Request, Stop
from protocol.control import (
    MOST_FLOWS,
    ActiveFlows,
    Challenge,
    Counters,
    FinishedFlows,
    FlowEntry,
    FlowReport,
    Hello,
    Message,
    PathLoad,
    Ping,
    PolicyApplied,
    Pong,
    Refused,
    Welcome,
    proof,
)
from protocol.frames import ControlError, any_kind, encode
from protocol.limits import ERROR_CHARS
from protocol.sent_again import SentAgain

OPENING_TIMEOUT_S: Final = 5.0
OPENING_BYTES: Final = 64 * 1024
"""Most that a peer may send before it has proved who it is."""
_CREDENTIALS: Final = struct.Struct("iII")
"""Of a Unix socket's other end: process, user, group."""
SEND_TIMEOUT_S: Final = 10.0
QUEUE_LENGTH: Final = 64
READ_BYTES: Final = 64 * 1024
"""Handled at once: other agents, and threads that ask the loop, wait for no longer."""
MOST_COUNTERS: Final = 512
LONGEST_COUNTER: Final = 100
"""Characters of a counter's name."""
DECISIONS_BYTES: Final = 64 * 1024
"""More than so much that the agent has not read, and decisions are not worth anything to it: it asks again."""


AgentReport = PathLoad | ActiveFlows | Request | Finished | FinishedFlows | SentAgain
"""What agents send of their own accord, for other parts of the controller."""


class SessionClosed(CapstanError, ConnectionError):
    """The channel ended before the answer came."""


@dataclass
class Timing:
    """How often agents are asked whether they live, and when silence means that they do not; seconds."""

    ping_s: float = 2.0
    dead_s: float = 10.0


@dataclass
class AgentSession:
    """``newest`` frames (directory, policy, types, paths) replace the one before them that was not sent yet;
    ``queue`` is kept in order and bounded: an agent that does not read is dropped, and delays no other agent."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    timing: Timing
    on_change: Callable[[], None]
    on_report: Callable[[AgentSession, AgentReport], None]
    halves: HalfFrames = field(default_factory=HalfFrames)
    handling: HandlingTime = field(default_factory=lambda: HandlingTime(time.monotonic()))
    asked: Callable[[str], bool] = any_kind
    """Whether messages of a type are asked for; others that need to be are not decoded."""
    hello: Hello | None = None
    connected_at: float = field(default_factory=time.time)
    applied_version: int = -1
    applied_error: str = ""
    error_version: int = -1
    counters: dict[str, float] = field(default_factory=dict)
    counters_at: float | None = None
    round_trip_s: float | None = None
    end_reason: str = ""
    bad_frame: bool = False
    """Whether it ended for what the agent sent."""
    _newest: dict[str, bytes] = field(default_factory=dict)
    _queue: deque[bytes] = field(default_factory=deque)
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _reports: dict[int, asyncio.Future[list[FlowEntry]]] = field(default_factory=dict)
    _parts: dict[int, list[FlowEntry]] = field(default_factory=dict)
    """What has come of answers to reports."""
    _pings: dict[int, tuple[float, asyncio.Future[None] | None]] = field(default_factory=dict)
    _last_id: int = 0
    _received_at: float = field(default_factory=time.monotonic)
    _paused: bool = False
    """Whether it is not read for a while: that is no silence of the agent's."""
    _early: list[Message] = field(default_factory=list)
    _closed: bool = False
    _welcomed: bool = False
    """Whether the welcome has gone out: the agent expects nothing before it."""

    def __post_init__(self) -> None:
        self._inbound = Inbound(
            lambda: bool(self._reports), self.halves, self.close, time.monotonic(), asked=self.asked
        )

    @property
    def peer(self) -> str:
        """Return who shares a share with this connection: its address, an IPv6 /64 network, or user of this
        machine; or "".

        "": root and our own user, whose agents all come from here.
        """
        connection = self.writer.get_extra_info("socket")
        if connection is None:
            return "unknown"
        if connection.family == socket.AF_UNIX:
            _, user, _ = _CREDENTIALS.unpack(
                connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
            )
            return "" if user in (0, os.geteuid()) else f"user {user}"
        host = str((self.writer.get_extra_info("peername") or ("unknown",))[0]).partition("%")[0]
        if ":" not in host:
            return host
        return str(ipaddress.ip_network((host, 64), strict=False))

    async def open(self, token_of: Callable[[str], str]) -> Hello | None:
        """Return the hello of an agent that proves that it has its host's token; None (it is refused) otherwise.

        Raises:
            ControlError, OSError, TimeoutError: it does not speak our language, or not in time.
        """
        with suppress(OSError, AttributeError):
            sock = self.writer.get_extra_info("socket")
            if sock.family != socket.AF_UNIX:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        nonce = secrets.token_hex(16)
        self.writer.write(encode(Challenge(nonce)))
        async with asyncio.timeout(OPENING_TIMEOUT_S):
            hello = await self._first_message()
        if not isinstance(hello, Hello):
            raise ControlError(f"a hello was expected, got a {hello.type}")
        wanted = proof(token_of(hello.host), "agent", nonce)
        if not hmac.compare_digest(hello.proof.encode(), wanted.encode()):
            await self.refuse(
                "the proof does not match: do both sides have the same token file, for this host?"
            )
            return None
        self.hello = hello
        return hello

    def welcome(self, token: str) -> None:
        """Prove to the agent that we know the token too: before all that is queued. Raises SessionClosed."""
        assert self.hello is not None
        if self._closed:
            raise SessionClosed(f"the channel ended: {self.end_reason}")
        self._queue.appendleft(encode(Welcome(proof(token, "controller", self.hello.nonce))))
        self._wake.set()

    async def refuse(self, reason: str) -> None:
        """Say why, and close."""
        with suppress(OSError, TimeoutError):
            self.writer.write(encode(Refused(reason)))
            async with asyncio.timeout(1.0):
                await self.writer.drain()
        self.close(reason)

    async def run(self) -> None:
        """Serve the agent until the channel ends, for whatever reason (`end_reason`)."""
        tasks = [asyncio.create_task(job()) for job in (self._receive, self._send, self._keep_alive)]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                error = task.exception()
                self.bad_frame |= task is tasks[0] and isinstance(error, ControlError)
                self.end_reason = self.end_reason or (str(error) or repr(error) if error else "ended")
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self.close(self.end_reason)

    def close(self, reason: str) -> None:
        """End the channel; those who wait for an answer get SessionClosed. Harmless when it is closed."""
        self.end_reason = self.end_reason or reason
        self._inbound.end()  # each time: what had arrived when it was closed has been taken meanwhile
        if self._closed:
            return
        self._closed = True
        self.writer.transport.abort() if self.writer.transport.get_write_buffer_size() else self.writer.close()
        waiting: list[asyncio.Future[Any]] = [*self._reports.values()]
        waiting += [future for _, future in self._pings.values() if future is not None]
        for future in waiting:
            if not future.done():
                future.set_exception(SessionClosed(f"the channel ended: {self.end_reason}"))
                future.exception()  # taken: that nothing waits for it any more is no error
        self._reports.clear()
        self._parts.clear()
        self._pings.clear()

    def put_newest(self, kind: str, frame: bytes) -> None:
        """Send *frame* soon, instead of an older one of its kind that still waits."""
        self._newest[kind] = frame
        self._wake.set()

    def queue(self, message: Message) -> None:
        """Send *message* after all that is queued; too much of it closes the channel."""
        if self._closed:
            raise SessionClosed(f"the channel ended: {self.end_reason}")
        if len(self._queue) >= QUEUE_LENGTH:
            self.close(f"the agent does not read: {len(self._queue)} messages wait")
            raise SessionClosed(self.end_reason)
        self._queue.append(encode(message))
        self._wake.set()

    def decide(self, message: Grant | Stop) -> None:
        """Send a decision before all that is queued; none before the welcome, or where the agent does not read."""
        if not self._welcomed or self._closed:
            return
        if self.writer.transport.get_write_buffer_size() < DECISIONS_BYTES:
            self.writer.write(encode(message))

    def new_report(self) -> tuple[int, asyncio.Future[list[FlowEntry]]]:
        """Return a number for a Report, and the future of its answer."""
        self._last_id += 1
        future: asyncio.Future[list[FlowEntry]] = asyncio.get_running_loop().create_future()
        self._reports[self._last_id] = future
        return self._last_id, future

    def drop_report(self, number: int) -> None:
        """Wait no more for the answer to a report that was asked for."""
        self._reports.pop(number, None)
        self._parts.pop(number, None)

    def ping(self, wait: bool = False) -> asyncio.Future[None] | None:
        """Ask for a Pong, by which all earlier messages were handled; return its future (None unless *wait*)."""
        self._last_id += 1
        future: asyncio.Future[None] | None = asyncio.get_running_loop().create_future() if wait else None
        self._pings[self._last_id] = (time.monotonic(), future)
        self.queue(Ping(self._last_id))
        return future

    async def _first_message(self) -> Message:
        received = 0
        while True:
            data = await self.reader.read(4096)
            if not data:
                raise ConnectionError("closed before a hello came")
            received += len(data)
            if received > OPENING_BYTES:
                raise ControlError(f"more than {OPENING_BYTES} B before a hello")
            messages = self._inbound.take(data)
            if messages:
                self._early = messages[1:]
                return messages[0]

    async def _receive(self) -> None:
        for message in self._early:
            self._handle(message)
        while data := await self.reader.read(READ_BYTES):
            async with self.handling.turn():
                self._received_at = time.monotonic()
                for message in self._inbound.take(data):
                    self._handle(message)
                now = time.monotonic()
            wait_s = self._inbound.wait_s(self._received_at)
            with self.handling.pause(now - self._received_at, now) as pause_s:
                if (wait_s := max(wait_s, pause_s)) > 0:
                    self._paused = True
                    await asyncio.sleep(wait_s)
                    self._paused, self._received_at = False, time.monotonic()
        self.end_reason = self.end_reason or "the agent closed it"

    def _handle(self, message: Message) -> None:
        match message:
            case PolicyApplied(version, error):
                if error:
                    self.error_version, self.applied_error = version, error[:ERROR_CHARS]
                else:
                    self.applied_version, self.applied_error = version, ""
                self.on_change()
            case Counters(values):
                _check_names(values)
                self.counters, self.counters_at = values, time.time()
            case PathLoad() | ActiveFlows() | Request() | Finished() | FinishedFlows() | SentAgain():
                self.on_report(self, message)
            case FlowReport():
                self._reported(message)
            case Ping(number):
                self.queue(Pong(number))
            case Pong(number):
                self._answered(number)
            case _:
                raise ControlError(f"an agent does not send a {message.type}")

    def _answered(self, number: int) -> None:
        """Note the answer to a ping, which answers those before it, too: an agent drops answers that find no room."""
        if number not in self._pings:
            return
        self.round_trip_s = time.monotonic() - self._pings[number][0]
        for earlier in [ping for ping in self._pings if ping <= number]:
            _, future = self._pings.pop(earlier)
            if future is not None and not future.done():
                future.set_result(None)

    def _reported(self, part: FlowReport) -> None:
        """Take a part of an answer; one that nothing waits for is dropped."""
        report = self._reports.get(part.id)
        if report is None or report.done():
            return
        flows = self._parts.setdefault(part.id, [])
        flows += part.flows
        if len(flows) > MOST_FLOWS:
            raise ControlError(f"flows: {len(flows)} are more than the {MOST_FLOWS} of a report")
        if not part.more:
            self.drop_report(part.id)
            report.set_result(flows)

    async def _send(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._newest or self._queue:
                # The welcome is queued before this runs, and must be first.
                if self.hello is not None and self._queue:
                    frame = self._queue.popleft()
                else:
                    frame = self._newest.pop(next(iter(self._newest)))
                self.writer.write(frame)
                self._welcomed = True
                try:
                    async with asyncio.timeout(SEND_TIMEOUT_S):
                        await self.writer.drain()
                except TimeoutError:
                    raise ControlError(f"the agent has read nothing for {SEND_TIMEOUT_S:g} s") from None

    async def _keep_alive(self) -> None:
        while True:
            due = time.monotonic() + self.timing.ping_s
            await asyncio.sleep(self.timing.ping_s)
            # What came while the loop did not run is not read yet: that time is no silence of the agent's.
            self._received_at += max(0.0, time.monotonic() - max(due, self._received_at))
            silent = time.monotonic() - self._received_at
            if silent > self.timing.dead_s and not self._paused:
                raise ControlError(f"nothing came from the agent for {silent:.0f} s")
            if len(self._pings) < QUEUE_LENGTH // 2:
                self.ping()


def _check_names(values: Mapping[str, float]) -> None:
    """Raise ControlError for counters that no agent has: they are kept, listed and exported as metrics."""
    if len(values) > MOST_COUNTERS:
        raise ControlError(
            f"counters: {len(values)} are more than the {MOST_COUNTERS} that an agent may have"
        )
    for name in values:
        if len(name) > LONGEST_COUNTER:
            raise ControlError(f"counters: a name of {len(name)} characters is longer than {LONGEST_COUNTER}")
