"""The agent's end of the control channel: one connection, made again whenever it is lost.

Two threads of its own, so that neither a slow controller nor TLS ever holds up a packet; what comes is put into a
queue, and a byte into a pipe wakes the agent's loop.
"""

from __future__ import annotations

import contextlib
import hmac
import logging
import os
import queue
import secrets
import socket
import ssl
import threading
from typing import Final

from host_agent.config import AgentConfig
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
_OUTGOING_LIMIT: Final = 64


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
        self._outgoing: queue.Queue[bytes | None] = queue.Queue(_OUTGOING_LIMIT)
        self._stop = threading.Event()
        self._socket: socket.socket | None = None
        self.dropped = 0
        """Messages that found no room: the controller was away or slow."""

    def start(self) -> None:
        """Connect, and stay connected."""
        threading.Thread(target=self._run, name="channel", daemon=True).start()

    def stop(self) -> None:
        """End the connection for good."""
        self._stop.set()
        self._shut()

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
        try:
            self._outgoing.put_nowait(encode(message))
        except queue.Full:
            self.dropped += 1

    def _run(self) -> None:
        wait = FIRST_RETRY_S
        while not self._stop.is_set():
            try:
                with self._connect() as connection:
                    self._socket = connection
                    reader, early = self._shake_hands(connection)
                    wait = FIRST_RETRY_S
                    self._serve(connection, reader, early)
            except (OSError, ControlError, ssl.SSLError) as error:
                _LOG.info(
                    "controller at %s: %s; trying again in %.1f s", self._config.controller, error, wait
                )
            finally:
                self._socket = None
            self._stop.wait(wait)
            wait = min(wait * 2, LAST_RETRY_S)

    def _connect(self) -> socket.socket:
        endpoint = self._config.controller
        if endpoint.unix is not None:
            connection = socket.socket(socket.AF_UNIX)
            connection.settimeout(HANDSHAKE_S)
            connection.connect(str(endpoint.unix))
            return connection
        plain = socket.create_connection((endpoint.host, endpoint.port), timeout=HANDSHAKE_S)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        context = ssl.create_default_context(cafile=str(self._config.ca) if self._config.ca else None)
        return context.wrap_socket(plain, server_hostname=endpoint.host)

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
        connection.settimeout(None)
        return reader, waiting

    def _serve(self, connection: socket.socket, reader: FrameReader, early: list[Message]) -> None:
        while not self._outgoing.empty():
            self._outgoing.get_nowait()  # said to a connection that is gone
        self._put(Connected())
        writer = threading.Thread(target=self._write, args=(connection,), name="channel-writer", daemon=True)
        writer.start()
        try:
            messages = early
            while True:
                for message in messages:
                    if isinstance(message, Ping):
                        self.send(Pong(message.id))
                    else:
                        self._put(message)
                data = connection.recv(65536)
                if not data:
                    raise ControlError("the controller closed the connection")
                messages = reader.feed(data)
        finally:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            self._outgoing.put(None)
            writer.join()

    def _write(self, connection: socket.socket) -> None:
        while (frame := self._outgoing.get()) is not None:
            try:
                connection.sendall(frame)
            except OSError:
                while self._outgoing.get() is not None:
                    continue
                return

    def _put(self, message: Message | Connected) -> None:
        self._incoming.put(message)
        with contextlib.suppress(BlockingIOError):
            os.write(self._wake_write, b"\0")

    def _shut(self) -> None:
        connection = self._socket
        if connection is not None:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


def _next(connection: socket.socket, reader: FrameReader, waiting: list[Message]) -> Message:
    while not waiting:
        data = connection.recv(65536)
        if not data:
            raise ControlError("the connection ended during the handshake")
        waiting += reader.feed(data)
    return waiting.pop(0)
