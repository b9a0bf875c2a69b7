"""The sending side of one generated flow."""

from __future__ import annotations

import errno
import os
import socket
import time
from collections.abc import Callable
from typing import Final

from workloads.announce import announce
from workloads.flow_header import ACKNOWLEDGEMENT, encode_header
from workloads.loop import READ, WRITE, Loop
from workloads.records import FlowOrder, FlowState, SentFlow
from workloads.sink import abort_on_close
from workloads.tcp_info import TcpInfo, tcp_info
from workloads.transport import set_congestion_control

_PAYLOAD: Final = memoryview(os.urandom(64 * 1024))
_NOTHING: Final = TcpInfo(0, 0, 0, 0, 0, 0, 0.0, 0.0)


class Sender:
    """One flow, from before connect() to the receiver's acknowledgement or to its failure.

    epoch: monotonic time of the run's start; on_end: called once, when the flow is finished or has failed.
    copy: which copy of a replicated flow this is; on_connected: called once, before the first byte is sent.
    """

    def __init__(
        self,
        loop: Loop,
        order: FlowOrder,
        port: int,
        *,
        congestion_control: str,
        epoch: float,
        on_end: Callable[[Sender], None],
        copy: int = 0,
        on_connected: Callable[[Sender], None] | None = None,
    ) -> None:
        self.order = order
        self.state: FlowState | None = None
        self.gave_way = False
        self._loop = loop
        self._port = port
        self._congestion_control = congestion_control
        self._epoch = epoch
        self._on_end = on_end
        self._on_connected = on_connected
        self._error = ""
        self._connection: socket.socket | None = None
        self._local: tuple[str, int] = ("", order.source_port)
        self._begun: float | None = None
        self._ended: float | None = None
        self._header = encode_header(order.id, order.size_bytes, copy)
        self._sent = 0
        self._info = _NOTHING
        self._window: list[tuple[float, int]] = []

    def begin(self) -> None:
        """Connect; the flow's time runs from here."""
        if self.state is not None:
            return
        family = socket.AF_INET6 if ":" in self.order.address else socket.AF_INET
        try:
            self._begun = time.monotonic()
            self._connection = connection = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
            set_congestion_control(connection, self._congestion_control)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            connection.bind(("", self.order.source_port))
            begun = connection.connect_ex((self.order.address, self._port))
            if begun not in (0, errno.EINPROGRESS):
                raise OSError(begun, os.strerror(begun))
            self._local = connection.getsockname()[:2]
            # the SYN has left, but no data goes before its answer
            announce(self._local, (self.order.address, self._port), self.order.size_bytes)
        except (OSError, RuntimeError) as error:
            self._end("failed", f"connect: {error}")
            return
        self._loop.watch(connection, WRITE, self._ready)

    def _ready(self, events: int) -> None:
        try:
            if events & READ:
                self._read()
            if events & WRITE and self.state is None:
                self._note_connected()
                self._write()
        except BlockingIOError:
            return
        except OSError as error:
            self._end("failed", f"after {self._sent} B: {error}")

    def _note_connected(self) -> None:
        if self._on_connected is None:
            return
        assert self._connection is not None
        error = self._connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if error:
            raise OSError(error, os.strerror(error))
        on_connected, self._on_connected = self._on_connected, None
        on_connected(self)

    def _write(self) -> None:
        assert self._connection is not None
        size = self.order.size_bytes
        while size is None or self._sent < size:
            if self._sent < len(self._header):
                chunk = memoryview(self._header + bytes(_PAYLOAD[:1400]))[self._sent :]
            else:
                chunk = _PAYLOAD
            if size is not None:
                chunk = chunk[: size - self._sent]
            self._sent += self._connection.send(chunk)
        self._loop.watch(self._connection, READ, self._ready)

    def _read(self) -> None:
        assert self._connection is not None
        data = self._connection.recv(16)
        now = time.monotonic()
        if data == ACKNOWLEDGEMENT:
            self._end("finished", "", now)
        else:
            reaction = f"sent {data!r}" if data else "closed"
            self._end("failed", f"after {self._sent} B: the receiver {reaction} before all bytes were read")

    def note_window(self) -> None:
        """Begin or end the measuring window: note the bytes acknowledged until now, or until the flow failed in it."""
        if self._connection is not None:
            self._window.append((time.monotonic(), tcp_info(self._connection).bytes_acked))
        elif self._window:  # the window goes on without it: its rate is one of the whole
            self._window.append((time.monotonic(), self._window[-1][1]))

    def give_up(self, reason: str) -> None:
        """End without delivering what is queued; harmless after the end."""
        if self.state is None:
            self.gave_way = True
            self._end("failed", reason)

    def stop(self) -> None:
        """End the run: a background flow ends well, any other that is not finished has failed."""
        if self.state is not None:
            return
        if self.order.size_bytes is None and self._begun is not None and self._sent > 0:
            self._end("background", "")
            return
        acked = tcp_info(self._connection).bytes_acked if self._connection else 0
        text = "was not started" if self._begun is None else f"not finished: {acked} B acknowledged"
        self._end("failed", f"{text} at the run's end")

    def _end(self, state: FlowState, error: str, now: float | None = None) -> None:
        self.state, self._error = state, error
        self._ended = time.monotonic() if now is None else now
        if self._connection is not None:
            if (
                len(self._window) == 1
            ):  # it ends within the window, or the loop was held up at the window's end
                self.note_window()
            self._info = tcp_info(self._connection)
            self._loop.forget(self._connection)
            if state != "finished":
                abort_on_close(self._connection)
            self._connection.close()
            self._connection = None
        self._on_end(self)

    def record(self) -> SentFlow:
        """Return what was measured; only after the end."""
        assert self.state is not None
        info, finished = self._info, self.state == "finished"
        window_s, window_bytes = 0.0, 0
        if len(self._window) >= 2:
            (begin, bytes_before), (end, bytes_after) = self._window[0], self._window[-1]
            window_s, window_bytes = end - begin, bytes_after - bytes_before
        return SentFlow(
            id=self.order.id,
            state=self.state,
            error=self._error,
            traffic_class=self.order.traffic_class,
            size_bytes=self.order.size_bytes,
            source_address=self._local[0],
            source_port=self._local[1],
            address=self.order.address,
            port=self._port,
            planned_s=self.order.start_s,
            started_s=None if self._begun is None else round(self._begun - self._epoch, 6),
            finished_s=None if self._ended is None else round(self._ended - self._epoch, 6),
            fct_s=round(self._ended - self._begun, 6) if finished and self._ended and self._begun else None,
            bytes_acked=max(0, info.bytes_acked - 1),  # the kernel counts the SYN
            window_bytes=window_bytes,
            window_s=round(window_s, 6),
            retransmissions=info.retransmissions,
            bytes_retransmitted=info.bytes_retransmitted,
            reordering_events=info.reordering_events,
            duplicates_reported=info.duplicates_reported,
            rtt_ms=info.rtt_ms,
            min_rtt_ms=info.min_rtt_ms,
        )
