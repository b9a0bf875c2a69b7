"""Where agents connect: a Unix socket of this machine, or TCP with TLS. Opening them, or saying why not."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import ssl
import stat
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from capstan_client.errors import CapstanError
from controller.process.server_tls import CertificateError, server_context

BACKLOG: Final = 256
TLS_HANDSHAKE_S: Final = 5.0
"""A peer that has not finished the handshake of TLS by then is dropped."""

Accept = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class ChannelError(CapstanError, RuntimeError):
    """The channel cannot be opened, or an agent cannot be asked; the text says what to do."""


@dataclass(frozen=True)
class TcpListener:
    """Where agents on other machines connect, with TLS."""

    address: str
    port: int
    certificate: Path
    key: Path

    def __str__(self) -> str:
        return f"tls:{self.address}:{self.port}"


class Listeners:
    """Listening sockets, from `open` to `close`; all in the event loop."""

    def __init__(self) -> None:
        self._servers: list[asyncio.Server] = []
        self._socket: tuple[Path, int] | None = None
        self.tcp_port: int | None = None
        """Port of the TCP listener once open (the settings may say 0: any)."""

    async def open(self, socket_path: Path | None, tcp: TcpListener | None, accept: Accept) -> None:
        """Listen. Raises ChannelError, OSError; what was opened until then is closed by `close`."""
        if socket_path is not None:
            listener = _unix_listener(socket_path)
            self._socket = socket_path, socket_path.stat().st_ino
            self._servers.append(await asyncio.start_unix_server(accept, sock=listener, backlog=BACKLOG))
        if tcp is not None:
            try:
                server = await asyncio.start_server(
                    accept,
                    tcp.address,
                    tcp.port,
                    ssl=_tls(tcp),
                    ssl_handshake_timeout=TLS_HANDSHAKE_S,
                    backlog=BACKLOG,
                    reuse_address=True,
                )
            except OSError as error:
                why = error.strerror or str(error)
                raise ChannelError(f"agents cannot be listened for at {tcp}: {why}") from None
            self._servers.append(server)
            self.tcp_port = server.sockets[0].getsockname()[1]

    def close(self) -> None:
        """Stop listening; remove the Unix socket, unless another process has replaced it."""
        for server in self._servers:
            server.close()
        if self._socket is not None:
            path, inode = self._socket
            with suppress(OSError):
                if path.stat().st_ino == inode:
                    path.unlink()


def _tls(tcp: TcpListener) -> ssl.SSLContext:
    try:
        return server_context(tcp.certificate, tcp.key)
    except CertificateError as error:
        raise ChannelError(f"TLS {error}") from None


def _unix_listener(path: Path) -> socket.socket:
    """Return a socket bound to *path*, mode 0660, that does not listen yet: no client can connect before the mode is
    set."""
    _clear_stale(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(str(path))
        os.chmod(path, 0o660)
    except OSError as error:
        listener.close()
        why = "the path is too long" if "too long" in str(error) else error.strerror or str(error)
        raise ChannelError(f"socket {path} cannot be made: {why}") from None
    return listener


def _clear_stale(path: Path) -> None:
    try:
        if not stat.S_ISSOCK(path.stat().st_mode):
            raise ChannelError(f"{path} is there and is not a socket: remove it or give another path")
    except FileNotFoundError:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(path))
        except OSError as error:
            if error.errno in (errno.ECONNREFUSED, errno.ENOENT):
                path.unlink(missing_ok=True)
                return
            raise ChannelError(f"socket {path} cannot be taken over: {error}") from None
    raise ChannelError(f"another controller listens on {path}: stop it or give another path")
