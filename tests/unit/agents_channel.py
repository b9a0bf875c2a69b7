"""Both ends of the agents' channel for tests: a server with a record of who came, and raw clients."""

from __future__ import annotations

import select
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from controller.agents.listeners import TcpListener
from controller.agents.membership import Member
from controller.agents.server import AgentServer
from controller.agents.session import Timing
from controller.agents.settings import ChannelSettings
from host_agent.channel import Channel, Received
from host_agent.config import AgentConfig, Endpoint
from protocol.control import (
    Challenge,
    FinishedFlows,
    Hello,
    Message,
    Welcome,
    proof,
)
from protocol.frames import FrameReader, encode
from tests.waiting import eventually

TOKEN = "the token that both sides know"
PATIENCE_S = 60.0


@dataclass
class Served:
    """A server that runs, and what it said of its members."""

    server: AgentServer
    socket_path: Path
    joined: list[Member] = field(default_factory=list)
    left: list[Member] = field(default_factory=list)
    finished: list[FinishedFlows] = field(default_factory=list)

    def connected(self) -> list[str]:
        return [agent.host for agent in self.server.agents() if agent.connected]


@contextmanager
def served(
    directory: Path,
    tcp: TcpListener | None = None,
    grace_s: float = 15.0,
    timing: Timing | None = None,
    token: str = TOKEN,
) -> Iterator[Served]:
    """Yield an agents' server at ``directory/agents.sock``; stop it at the end."""
    joined: list[Member] = []
    left: list[Member] = []
    finished: list[FinishedFlows] = []
    path = directory / "agents.sock"
    settings = ChannelSettings(path, directory / "members.json", tcp, grace_s, timing or Timing())
    server = AgentServer(settings, token)
    server.joined.subscribe(joined.append)
    server.left.subscribe(left.append)
    server.finished_flows.subscribe(lambda host, owners, flows: finished.append(flows))
    server.start()
    try:
        yield Served(server, path, joined, left, finished)
    finally:
        server.stop()


def hello(number: int, nonce: str, token: str = TOKEN, **changes: Any) -> Hello:
    """Return what agent h*number* says, with the proof for the challenge *nonce*."""
    plain: dict[str, Any] = {
        "proof": proof(token, "agent", nonce),
        "nonce": "ab" * 16,
        "host": f"h{number}",
        "underlay_ip": f"10.0.1.{number}",
        "underlay_mac": f"00:00:00:00:01:{number:02x}",
        "overlay": [f"10.128.1.{number}", f"fd00:ca::1:{number:x}"],
        "session": 1000 + number,
        "version": "0.1.0",
    }
    return Hello(**(plain | changes))


class RawAgent:
    """The agent's end of one connection, by hand."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        connection.settimeout(PATIENCE_S)
        self._reader = FrameReader()
        self._waiting: list[Message] = []

    @classmethod
    def unix(cls, path: Path) -> RawAgent:
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(str(path))
        return cls(connection)

    @classmethod
    def tls(cls, port: int, context: ssl.SSLContext, name: str = "127.0.0.1") -> RawAgent:
        plain = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
        return cls(context.wrap_socket(plain, server_hostname=name))

    @classmethod
    def joined(cls, path: Path, number: int = 1, **changes: Any) -> RawAgent:
        """Return an agent that has been welcomed."""
        agent = cls.unix(path)
        agent.register(number, **changes)
        return agent

    def register(self, number: int = 1, **changes: Any) -> None:
        challenge = self.next(Challenge)
        self.send(hello(number, challenge.nonce, **changes))
        welcome = self.next(Welcome)
        assert welcome.proof == proof(TOKEN, "controller", "ab" * 16)

    def send(self, message: Message) -> None:
        self.connection.sendall(encode(message))

    def message(self) -> Message | None:
        """Return the next message of any kind, or None if the other side has closed."""
        while not self._waiting:
            try:
                data = self.connection.recv(65536)
            except ConnectionResetError:
                return None
            if not data:
                return None
            self._waiting += self._reader.feed(data)
        return self._waiting.pop(0)

    def next(self, kind: type[Any]) -> Any:
        """Return the next message of this kind, passing others over; fail if the connection ends before."""
        while (message := self.message()) is not None:
            if isinstance(message, kind):
                return message
        raise AssertionError(f"closed before a {kind.__name__} came")

    def all(self) -> list[Message]:
        """Return every message until the other side closes."""
        return list(iter(self.message, None))

    def close(self) -> None:
        self.connection.close()


def agent_config(controller: str, number: int = 1, token: str = TOKEN, ca: Path | None = None) -> AgentConfig:
    return AgentConfig(
        host=f"h{number}",
        interface="lo",
        underlay_ip=f"10.0.1.{number}",
        overlay=(f"10.128.1.{number}/9",),
        controller=Endpoint.parse(controller),
        token=token,
        ca=ca,
    )


class RunningChannel:
    """An agent's `Channel`, read as an agent's loop does, whose messages are kept."""

    def __init__(self, config: AgentConfig, session: int = 1) -> None:
        self.channel = Channel(config, session, f"00:00:00:00:01:{session:02x}", "0.1.0")
        self.got: list[Received] = []
        self.channel.start()
        self._ending = False
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._ending = True
        self._thread.join()
        self.channel.stop()

    def _read(self) -> None:
        while not self._ending:
            if select.select([self.channel.wake_fd], [], [], 0.02)[0]:
                self.got += self.channel.messages()

    def has(self, kind: type[Any], count: int = 1) -> list[Any]:
        """Return the messages of this kind so far, once there are *count*; else an empty list."""
        found = [message for message in self.got if isinstance(message, kind)]
        return found if len(found) >= count else []

    def wait(self, kind: type[Any], count: int = 1) -> list[Any]:
        found: list[Any] = eventually(lambda: self.has(kind, count), f"{count} {kind.__name__}")
        return found


@contextmanager
def running_channel(config: AgentConfig, session: int = 1) -> Iterator[RunningChannel]:
    one = RunningChannel(config, session)
    try:
        yield one
    finally:
        one.stop()


@contextmanager
def impostor(path: Path, behave: Callable[[socket.socket, int], None]) -> Iterator[list[float]]:
    """Yield the times of the connections to *path*, where something that is not our controller accepts them.

    *behave* gets each connection and its number. Times are in seconds of the monotonic clock, one for each connection.
    """
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()
    times: list[float] = []
    kept: list[socket.socket] = []

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            times.append(time.monotonic())
            kept.append(connection)
            try:
                behave(connection, len(times))
            except OSError:
                continue

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield times
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for connection in kept:
            connection.close()
        path.unlink(missing_ok=True)
        thread.join(PATIENCE_S)


def frame(length: int, form: int, body: bytes) -> bytes:
    """Return a frame with this length and form in its head, whether they fit the body or not."""
    return struct.pack("!IB", length, form) + body
