"""The receiving side: reads everything that comes and says when it has it all."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterable
from functools import partial
from time import monotonic
from typing import Final

from workloads.flow_header import ACKNOWLEDGEMENT, ENDLESS, HEADER_BYTES, decode_header
from workloads.loop import READ, Loop
from workloads.records import ReceivedFlow
from workloads.tcp_info import tcp_info

WAKE_BYTES: Final = 16 * 1024
"""The kernel wakes a sink for this much at a time (SO_RCVLOWAT): a wake-up per packet would cost a core."""
ACCEPT_AGAIN_S: Final = 0.1
"""After an accept that failed: a process without a descriptor left would be asked again at once, and for ever."""
_CHUNK: Final = 256 * 1024
_KEEPALIVE: Final = {socket.TCP_KEEPIDLE: 10, socket.TCP_KEEPINTVL: 2, socket.TCP_KEEPCNT: 3}
"""Seconds, seconds, probes: of a copy that gave way before its header, nothing may ever show but a lost RST."""


class Sink:
    """Listens on one port, or on others too, and swallows generated flows."""

    def __init__(self, loop: Loop, port: int) -> None:
        self._loop = loop
        self._others: dict[int, socket.socket] = {}
        self._buffer = bytearray(_CHUNK)
        self._open: set[_Incoming] = set()
        self._closed: dict[tuple[int, int], ReceivedFlow] = {}
        self._listener = _listen(port)
        self._resting: set[socket.socket] = set()
        """Listeners that are not watched for a moment."""
        self.port: int = self._listener.getsockname()[1]
        self._watch(self._listener)

    def listen_also(self, ports: Iterable[int]) -> None:
        """Listen on these ports too, and on no others but the first. Raise OSError if one is taken."""
        wanted = set(ports) - {self.port}
        for port in set(self._others) - wanted:
            listener = self._others.pop(port)
            self._resting.discard(listener)
            self._loop.forget(listener)
            listener.close()
        for port in sorted(wanted - set(self._others)):
            try:
                self._others[port] = listener = _listen(port)
            except OSError as error:
                raise OSError(error.errno, f"the sink cannot listen on TCP port {port}: {error}") from None
            self._watch(listener)

    def _watch(self, listener: socket.socket) -> None:
        self._loop.watch(listener, READ, partial(self._accept, listener))

    def _rest(self, listener: socket.socket) -> None:
        self._loop.forget(listener)
        self._resting.add(listener)
        self._loop.at(monotonic() + ACCEPT_AGAIN_S, partial(self._go_on, listener))

    def _go_on(self, listener: socket.socket) -> None:
        if listener in self._resting:
            self._resting.remove(listener)
            self._watch(listener)

    def _accept(self, listener: socket.socket, _: int) -> None:
        for _ in range(64):
            try:
                connection, _address = listener.accept()
            except BlockingIOError:
                return
            except ConnectionAbortedError:
                continue  # the peer gave up between its SYN and now
            except OSError:
                self._rest(listener)
                return
            connection.setblocking(False)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for option, value in _KEEPALIVE.items():
                connection.setsockopt(socket.IPPROTO_TCP, option, value)
            incoming = _Incoming(self, connection)
            self._open.add(incoming)
            self._loop.watch(connection, READ, incoming.read)

    def close_flow(self, incoming: _Incoming) -> None:
        """Keep what is known of a flow and close its connection."""
        self._note(incoming)
        self._open.discard(incoming)
        self._loop.forget(incoming.connection)
        incoming.connection.close()

    def close_copies(self, flow: int) -> None:
        """Abort the other copies of a flow that has ended by one, whatever became of the sender's RST."""
        for incoming in [copy for copy in self._open if copy.flow == flow]:
            abort_on_close(incoming.connection)
            self.close_flow(incoming)

    def _note(self, incoming: _Incoming) -> None:
        if incoming.flow is not None:
            info = tcp_info(incoming.connection)
            self._closed[incoming.flow, incoming.copy] = ReceivedFlow(
                incoming.flow, incoming.received, info.out_of_order, incoming.copy
            )

    def snapshot(self) -> list[ReceivedFlow]:
        """Return all flows since the last `reset`, open ones with what they have so far."""
        for incoming in self._open:
            self._note(incoming)
        return [self._closed[flow] for flow in sorted(self._closed)]

    def reset(self) -> None:
        """Abort what is open and forget all flows; the listener stays."""
        for incoming in list(self._open):
            abort_on_close(incoming.connection)
            self.close_flow(incoming)
        self._closed.clear()
        # What was to end their rest may have been dropped with the run's timers.
        for listener in list(self._resting):
            self._go_on(listener)

    @property
    def buffer(self) -> bytearray:
        """Return the buffer into which discarded bytes are read; all flows share it."""
        return self._buffer


class _Incoming:
    def __init__(self, sink: Sink, connection: socket.socket) -> None:
        self._sink = sink
        self.connection = connection
        self.flow: int | None = None
        self.copy = 0
        self.received = 0
        self._header = b""
        self._left = HEADER_BYTES
        self._acknowledged = False

    def read(self, _: int) -> None:
        try:
            self._read()
        except BlockingIOError:
            self._wake_later()
        except OSError:
            self._sink.close_flow(self)

    def _read(self) -> None:
        if self._acknowledged:
            if not self.connection.recv(HEADER_BYTES):
                self._sink.close_flow(self)
                assert self.flow is not None
                self._sink.close_copies(self.flow)
            return
        if self.flow is None and not self._read_header():
            return
        while self._left:
            # MSG_TRUNC: the kernel drops the bytes instead of copying them.
            n = self.connection.recv_into(self._sink.buffer, min(self._left, _CHUNK), socket.MSG_TRUNC)
            if n == 0:
                self._sink.close_flow(self)
                return
            self.received += n
            if self._left != ENDLESS:
                self._left -= n
        self._acknowledged = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)
        self.connection.send(ACKNOWLEDGEMENT)
        # The receiver closes first, so that TIME_WAIT stays here and the sender may use its port again.
        self.connection.shutdown(socket.SHUT_WR)

    def _read_header(self) -> bool:
        """Return whether the flow is known now."""
        while len(self._header) < HEADER_BYTES:
            data = self.connection.recv(HEADER_BYTES - len(self._header))
            if not data:
                self._sink.close_flow(self)
                return False
            self._header += data
        known = decode_header(self._header)
        if known is None:
            abort_on_close(self.connection)
            self._sink.close_flow(self)
            return False
        # from here on a flow that is idle is a flow that waits; copies that gave way are known by its number
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 0)
        self.flow, size, self.copy = known
        self.received = HEADER_BYTES
        self._left = size if size == ENDLESS else size - HEADER_BYTES
        return True

    def _wake_later(self) -> None:
        if self.flow is not None and not self._acknowledged:
            self.connection.setsockopt(
                socket.SOL_SOCKET, socket.SO_RCVLOWAT, max(1, min(self._left, WAKE_BYTES))
            )


def abort_on_close(connection: socket.socket) -> None:
    """Let close() send RST and drop what is queued, instead of delivering it first."""
    with contextlib.suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")


def _listen(port: int) -> socket.socket:
    """Return a listener for both IP versions, or for IPv4 where the kernel has no IPv6."""
    if socket.has_dualstack_ipv6():
        listener = socket.create_server(
            ("::", port), family=socket.AF_INET6, backlog=1024, dualstack_ipv6=True
        )
    else:
        listener = socket.create_server(("0.0.0.0", port), backlog=1024)
    listener.setblocking(False)
    return listener
