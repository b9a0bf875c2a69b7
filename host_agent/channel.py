"""The agent's end of the control channel: one connection, made again whenever it is lost.

A thread of its own connects and shakes hands, so that neither a slow controller nor TLS ever holds up a packet. Then
the agent's loop itself reads and writes, without waiting: a thread between the two would cost a request of CAPTON's two
more switches of threads, each of which may wait for the interpreter's lock. A lock keeps both from using an OpenSSL
connection at the same time; neither holds it while it waits.
"""

from __future__ import annotations

import contextlib
import hmac
import logging
import os
import secrets
import select
import socket
import ssl
import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import Final

from host_agent.config import AgentConfig, ConfigError
from protocol.control import (
    Challenge,
    FinishedFlows,
    FlowReport,
    Hello,
    Message,
    Ping,
    PolicyApplied,
    Pong,
    Refused,
    Welcome,
    proof,
)
from protocol.frames import ControlError, FrameReader, encode
from protocol.sent_again import SentAgain

_LOG: Final = logging.getLogger(__name__)
FIRST_RETRY_S: Final = 0.1
LAST_RETRY_S: Final = 2.0
HANDSHAKE_S: Final = 5.0
SILENCE_S: Final = 10.0
"""A controller that said nothing for this long is gone, whatever TCP thinks: it pings every 2 s."""
OUTGOING_LIMIT: Final = 64
_LASTING: Final = (FinishedFlows,)
"""Messages that hold on the next connection, too. The others answer, or describe, the one that they are sent on."""
_SAID_ONCE: Final = (*_LASTING, FlowReport, PolicyApplied, SentAgain)
"""Messages that nothing makes good, as answers to pings are: all others are sent again, or followed by newer ones."""
_CHUNK_BYTES: Final = 65536


class Connected:
    """Among the messages whenever the controller has welcomed us."""


class Disconnected:
    """Among the messages whenever a connection has ended that began with `Connected`."""


Received = Message | Connected | Disconnected


@dataclass(frozen=True, slots=True)
class _Outgoing:
    """A frame that waits. lasting: where the connection ends before all of it was written, the next one gets it.
    once: others make room for it.
    """

    frame: bytes
    lasting: bool = False
    once: bool = False


class Channel:
    """Start with `start`; when `wake_fd` is readable, take `messages`; `send` never blocks."""

    def __init__(self, config: AgentConfig, session: int, mac: str, version: str) -> None:
        self._config = config
        self._session = session
        self._mac = mac
        self._version = version
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._watch = select.epoll()
        """Of `_wake` and the connection; an epoll is itself readable when one of its descriptors is ready."""
        self._watch.register(self._wake, select.EPOLLIN)
        self._lock = threading.Lock()
        """Of all below."""
        self._connection: socket.socket | None = None
        """While it lives."""
        self._reader = FrameReader()
        self._incoming: list[Received] = []
        self._outgoing: deque[_Outgoing] = deque()
        """The first of them is the one being written."""
        self._written = 0
        """Bytes of it that have gone."""
        self._received_at = 0.0
        self._failure: Exception | None = None
        """Why the connection ended."""
        self._ended = threading.Event()
        """The connection has, or is to."""
        self._stop = threading.Event()
        self.dropped = 0
        """Messages that found no room, or were lost with their connection: the controller was away or slow."""
        if config.controller.unix is None:
            self._tls()

    @property
    def wake_fd(self) -> int:
        """Return a descriptor that is readable while there is something for `messages` to do."""
        return self._watch.fileno()

    @property
    def has_room(self) -> bool:
        """Return whether `send` takes what is not said once."""
        return len(self._outgoing) < OUTGOING_LIMIT

    def start(self) -> None:
        """Connect, and stay connected."""
        threading.Thread(target=self._run, name="channel", daemon=True).start()

    def stop(self) -> None:
        """End the connection for good."""
        self._stop.set()
        self._ended.set()

    def messages(self) -> list[Received]:
        """Return all that came since the last call; what waits is sent as far as it goes."""
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._wake)
        with self._lock:
            self._exchange(True)
            got, self._incoming = self._incoming, []
        return got

    def send(self, *parts: Message) -> None:
        """Send one message, or the parts of one: all of it, or it is dropped and counted when too much waits already.
        What is said once takes the room of what is not. Records of finished flows outlive a lost connection.
        """
        lasting, once = isinstance(parts[0], _LASTING), isinstance(parts[0], _SAID_ONCE)
        if len(self._outgoing) >= OUTGOING_LIMIT and not once:
            self.dropped += 1
            return
        try:
            frame = b"".join(map(encode, parts))
        except ControlError as error:  # more than a frame can hold
            _LOG.error("not sent: %s", error)
            self.dropped += 1
            return
        with self._lock:
            self._put(_Outgoing(frame, lasting, once))
            self._exchange(False)

    def _run(self) -> None:
        wait = FIRST_RETRY_S
        while not self._stop.is_set():
            try:
                with self._connect() as connection:
                    reader, early = self._shake_hands(connection)
                    began = time.monotonic()
                    try:
                        self._keep(connection, reader, early)
                    finally:
                        # one that ends sooner is not let in for long: another agent may have taken our host's place
                        if time.monotonic() - began >= LAST_RETRY_S:
                            wait = FIRST_RETRY_S
            except (OSError, ControlError, ConfigError) as error:
                _LOG.info(
                    "controller at %s: %s; trying again in %.1f s", self._config.controller, error, wait
                )
            except Exception:  # of ours, but the agent must find its controller again all the same
                _LOG.exception("controller at %s: trying again in %.1f s", self._config.controller, wait)
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
        """Return a context, made anew for each connection, so that a renewed authority is used. Raise
        ConfigError.
        """
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
        wanted = proof(self._config.token, "controller", nonce)
        if not hmac.compare_digest(answer.proof.encode(), wanted.encode()):  # as text it must be ASCII
            raise ControlError("its other end does not know the token: not our controller")
        return reader, waiting

    def _keep(self, connection: socket.socket, reader: FrameReader, early: list[Message]) -> None:
        """Give the connection to the caller of `messages` and `send`, until it ends. Raises what ended it."""
        connection.setblocking(False)
        with self._lock:
            lasting = [waiting for waiting in self._outgoing if waiting.lasting]
            self.dropped += len(self._outgoing) - len(lasting)
            self._outgoing = deque(lasting)
            self._written = 0
            self._ended.clear()
            self._failure = None
            self._connection, self._reader = connection, reader
            self._received_at = time.monotonic()
            self._incoming.append(Connected())
            self._watch.register(connection, select.EPOLLIN)
            self._take(early)
        os.eventfd_write(self._wake, 1)  # who takes messages now also sends what waits
        while not self._stop.is_set():
            remaining_s = self._received_at + SILENCE_S - time.monotonic()
            if remaining_s <= 0:
                self._failure = ControlError(f"nothing was received of it for {SILENCE_S:g} s")
            if remaining_s <= 0 or self._ended.wait(remaining_s):
                break
        with self._lock:
            self._lose()
        if self._failure is not None:
            raise self._failure

    def _put(self, waiting: _Outgoing) -> None:
        """Have a message wait, where there is no room in that of another; one of the two is dropped then."""
        if len(self._outgoing) >= OUTGOING_LIMIT:
            self.dropped += 1
            if not self._make_room():
                return
        self._outgoing.append(waiting)

    def _make_room(self) -> bool:
        """Remove the oldest waiting message that would not outlive the connection, of those that are said again if any
        are; return False if none may go.

        The first stays while there is a connection: TLS may have begun it though none of its bytes count as written.
        """
        first = 0 if self._connection is None else 1
        brief = [index for index in range(first, len(self._outgoing)) if not self._outgoing[index].lasting]
        again = [index for index in brief if not self._outgoing[index].once]
        for index in (again or brief)[:1]:
            del self._outgoing[index]
        return bool(brief)

    def _exchange(self, reading: bool) -> None:
        """Read and write all that goes without waiting, while there is a connection."""
        connection = self._connection
        if connection is None:
            return
        try:
            for data in iter(lambda: _read(connection), None) if reading else ():
                self._received_at = time.monotonic()
                self._take(self._reader.feed(data))
            wanted = 0
            while not wanted and self._outgoing:
                frame = self._outgoing[0].frame
                sent, wanted = _write(connection, memoryview(frame)[self._written :])
                self._written += sent
                if self._written == len(frame):
                    self._outgoing.popleft()
                    self._written = 0
            self._watch.modify(connection, select.EPOLLIN | wanted)
        except Exception as error:  # whatever a controller sends ends its own connection only
            self._failure = error
            self._lose()

    def _lose(self) -> None:
        """Read and write the connection no more; its thread ends it."""
        if self._connection is not None:
            self._watch.unregister(self._connection)
            self._connection = None
            self._incoming.append(Disconnected())
            os.eventfd_write(self._wake, 1)
        self._ended.set()

    def _take(self, messages: list[Message]) -> None:
        for message in messages:
            if isinstance(message, Ping):
                self._put(_Outgoing(encode(Pong(message.id)), once=True))
            elif isinstance(message, Refused):  # the end of the connection follows, and says nothing
                _LOG.warning("controller at %s: %s", self._config.controller, message.reason)
            else:
                self._incoming.append(message)


def _write(connection: socket.socket, data: memoryview) -> tuple[int, int]:
    """Send what goes without waiting; return the bytes sent, and what to poll for if that is not all, else 0."""
    sent = 0
    while sent < len(data):
        try:
            sent += connection.send(data[sent : sent + _CHUNK_BYTES])
        except (BlockingIOError, ssl.SSLWantWriteError):
            return sent, select.EPOLLOUT
        except ssl.SSLWantReadError:
            return sent, select.EPOLLIN
    return sent, 0


def _read(connection: socket.socket) -> bytes | None:
    """Return what has come; None: nothing more yet. Raises ControlError at the end of the stream."""
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
