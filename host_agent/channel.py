"""The agent's end of the control channel: one connection, made again whenever it is lost.

A thread of its own, so that neither a slow controller nor TLS ever holds up a packet; what comes is put into a queue,
and a byte into a pipe wakes the agent's loop. One thread and not two, because an OpenSSL connection must not be read
and written at the same time.
"""

from __future__ import annotations

import contextlib
import hmac
import logging
import os
import queue
import secrets
import select
import socket
import ssl
import threading
import time
from collections import deque
from typing import Final

from host_agent.config import AgentConfig, ConfigError
from protocol.control import (
    Challenge,
    ControlError,
    FrameReader,
    Hello,
    Message,
    Ping,
    Pong,
    Refused,
    Welcome,
    encode,
    proof,
)

_LOG: Final = logging.getLogger(__name__)
FIRST_RETRY_S: Final = 0.1
LAST_RETRY_S: Final = 2.0
HANDSHAKE_S: Final = 5.0
SILENCE_S: Final = 10.0
"""A controller that said nothing for this long is gone, whatever TCP thinks: it pings every 2 s."""
OUTGOING_LIMIT: Final = 64
_CHUNK_BYTES: Final = 65536


class Connected:
    """Put into the queue of messages whenever the controller has welcomed us."""


class Channel:
    """Start with `start`; read `wake_fd`, then `messages`; `send` never blocks."""

    def __init__(self, config: AgentConfig, session: int, mac: str, version: str) -> None:
        self._config = config
        self._session = session
        self._mac = mac
        self._version = version
        self.wake_fd, self._wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._incoming: queue.SimpleQueue[Message | Connected] = queue.SimpleQueue()
        self._outgoing: deque[bytes] = deque()
        self._stir = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._stop = threading.Event()
        self.dropped = 0
        """Messages that found no room: the controller was away or slow."""
        if config.controller.unix is None:
            self._tls()

    def start(self) -> None:
        """Connect, and stay connected."""
        threading.Thread(target=self._run, name="channel", daemon=True).start()

    def stop(self) -> None:
        """End the connection for good."""
        self._stop.set()
        os.eventfd_write(self._stir, 1)

    def messages(self) -> list[Message | Connected]:
        """All that came since the last call."""
        with contextlib.suppress(BlockingIOError):
            while os.read(self.wake_fd, 4096):
                pass
        got = []
        with contextlib.suppress(queue.Empty):
            while True:
                got.append(self._incoming.get_nowait())
        return got

    def send(self, message: Message) -> None:
        """Send, or drop and count when too much waits already."""
        if len(self._outgoing) >= OUTGOING_LIMIT:
            self.dropped += 1
            return
        try:
            frame = encode(message)
        except ControlError as error:  # more flows than a frame can hold
            _LOG.error("not sent: %s", error)
            self.dropped += 1
            return
        self._outgoing.append(frame)
        os.eventfd_write(self._stir, 1)

    def _run(self) -> None:
        wait = FIRST_RETRY_S
        while not self._stop.is_set():
            try:
                with self._connect() as connection:
                    reader, early = self._shake_hands(connection)
                    wait = FIRST_RETRY_S
                    self._serve(connection, reader, early)
            except (OSError, ControlError, ConfigError) as error:
                _LOG.info(
                    "controller at %s: %s; trying again in %.1f s", self._config.controller, error, wait
                )
            self._stop.wait(wait)
            wait = min(wait * 2, LAST_RETRY_S)

    def _connect(self) -> socket.socket:
        endpoint = self._config.controller
        if endpoint.unix is not None:
            connection = socket.socket(socket.AF_UNIX)
            connection.settimeout(HANDSHAKE_S)
            try:
                connection.connect(str(endpoint.unix))
            except OSError:
                connection.close()
                raise
            return connection
        context = self._tls()
        plain = socket.create_connection((endpoint.host, endpoint.port), timeout=HANDSHAKE_S)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return context.wrap_socket(plain, server_hostname=endpoint.host)

    def _tls(self) -> ssl.SSLContext:
        """Made anew for each connection, so that a renewed authority is used. Raises ConfigError."""
        authority = self._config.ca
        try:
            return ssl.create_default_context(cafile=None if authority is None else str(authority))
        except OSError as error:  # among them ssl.SSLError: no certificate in it
            raise ConfigError(f"certificate authority {authority}: {error}") from None

    def _shake_hands(self, connection: socket.socket) -> tuple[FrameReader, list[Message]]:
        reader = FrameReader()
        waiting: list[Message] = []
        challenge = _next(connection, reader, waiting)
        if not isinstance(challenge, Challenge):
            raise ControlError(f"expected a challenge, got {challenge.type}")
        nonce = secrets.token_hex(16)
        connection.sendall(
            encode(
                Hello(
                    proof=proof(self._config.token, "agent", challenge.nonce),
                    nonce=nonce,
                    host=self._config.host,
                    underlay_ip=self._config.underlay_ip,
                    underlay_mac=self._mac,
                    overlay=[address.partition("/")[0] for address in self._config.overlay],
                    session=self._session,
                    version=self._version,
                )
            )
        )
        answer = _next(connection, reader, waiting)
        if isinstance(answer, Refused):
            raise ControlError(f"refused: {answer.reason}")
        if not isinstance(answer, Welcome):
            raise ControlError(f"expected a welcome, got {answer.type}")
        if not hmac.compare_digest(answer.proof, proof(self._config.token, "controller", nonce)):
            raise ControlError("whoever answers does not know the token: not our controller")
        return reader, waiting

    def _serve(self, connection: socket.socket, reader: FrameReader, early: list[Message]) -> None:
        self._outgoing.clear()  # said to a connection that is gone
        self._put(Connected())
        connection.setblocking(False)
        poll = select.poll()
        poll.register(self._stir, select.POLLIN)
        writing = bytearray()
        heard = time.monotonic()
        self._take(early)
        while not self._stop.is_set():
            wanted = 0
            while not wanted and (writing or self._outgoing):
                if not writing:
                    writing += self._outgoing.popleft()
                wanted = _write(connection, writing)
            poll.register(connection, select.POLLIN | wanted)
            left = heard + SILENCE_S - time.monotonic()
            if left <= 0:
                raise ControlError(f"nothing was heard of it for {SILENCE_S:g} s")
            poll.poll(left * 1000)
            with contextlib.suppress(BlockingIOError):
                os.eventfd_read(self._stir)
            for data in iter(lambda: _read(connection), None):
                heard = time.monotonic()
                self._take(reader.feed(data))

    def _take(self, messages: list[Message]) -> None:
        for message in messages:
            if isinstance(message, Ping):
                self.send(Pong(message.id))
            else:
                self._put(message)

    def _put(self, message: Message | Connected) -> None:
        self._incoming.put(message)
        with contextlib.suppress(BlockingIOError):
            os.write(self._wake_write, b"\0")


def _write(connection: socket.socket, data: bytearray) -> int:
    """Send what goes without waiting, and remove it from *data*; what to poll for if not all went, else 0."""
    while data:
        try:
            sent = connection.send(data[:_CHUNK_BYTES])
        except (BlockingIOError, ssl.SSLWantWriteError):
            return select.POLLOUT
        except ssl.SSLWantReadError:
            return select.POLLIN
        del data[:sent]
    return 0


def _read(connection: socket.socket) -> bytes | None:
    """What has come; None: nothing more yet. Raises ControlError at the end of the stream."""
    try:
        data = connection.recv(_CHUNK_BYTES)
    except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
        return None
    if not data:
        raise ControlError("the controller closed the connection")
    return data


def _next(connection: socket.socket, reader: FrameReader, waiting: list[Message]) -> Message:
    while not waiting:
        data = connection.recv(65536)
        if not data:
            raise ControlError("the connection ended during the handshake")
        waiting += reader.feed(data)
    return waiting.pop(0)
