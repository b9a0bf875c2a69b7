"""A switch made of one TCP connection: it answers as a switch does, but for what a test has it do otherwise."""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import threading
from collections.abc import Iterator

from os_ken.ofproto import ofproto_v1_5 as ofp

from controller.openflow.reading import HEADER
from tests.unit.switch_messages import features, hello, message, multipart, port
from tests.waiting import eventually


class RawSwitch:
    """Connects to loopback and shakes hands by itself, unless *silent*."""

    def __init__(
        self,
        controller_port: int,
        dpid: int,
        *,
        flows: bytes = b"",
        ports: int = 2,
        silent: bool = False,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.dpid = dpid
        self.answers_echo = True
        self.received: list[int] = []
        """Types of the messages that have come."""
        self.closed = threading.Event()
        self._bodies = {
            ofp.OFPMP_PORT_DESC: b"".join(port(n, b"p%d" % n) for n in range(1, ports + 1)),
            ofp.OFPMP_FLOW_DESC: flows,
        }
        self._silent = silent
        plain = socket.create_connection(("127.0.0.1", controller_port), timeout=60)
        # Else what is sent while something is not acknowledged yet waits for that, up to 40 ms.
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._sock = plain if tls is None else tls.wrap_socket(plain)
        if not silent:
            self.send(hello(6))  # before its thread reads: a TLS connection cannot do both at once
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def send(self, data: bytes) -> None:
        """Send bytes as they are; a controller that has closed the connection meanwhile is no error."""
        with contextlib.suppress(OSError):
            self._sock.sendall(data)

    def ready(self) -> None:
        """Wait until the controller has asked for the whole inventory."""
        eventually(lambda: self.received.count(ofp.OFPT_MULTIPART_REQUEST) >= 4, "the inventory's requests")

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._sock.close()

    def _run(self) -> None:
        data = b""
        try:
            while chunk := self._sock.recv(1 << 16):
                data += chunk
                while len(data) >= HEADER.size:
                    _, kind, length, xid = HEADER.unpack_from(data)
                    if len(data) < length:
                        break
                    one, data = data[:length], data[length:]
                    self.received.append(kind)
                    if not self._silent:
                        self.send(self._answer(kind, xid, one))
        except OSError:
            pass
        finally:
            self.closed.set()

    def _answer(self, kind: int, xid: int, one: bytes) -> bytes:
        if kind == ofp.OFPT_FEATURES_REQUEST:
            return features(xid, self.dpid)
        if kind == ofp.OFPT_MULTIPART_REQUEST:
            (what,) = struct.unpack_from("!H", one, 8)
            return multipart(what, xid, self._bodies.get(what, b""))
        if kind == ofp.OFPT_BARRIER_REQUEST:
            return message(ofp.OFPT_BARRIER_REPLY, xid)
        if kind == ofp.OFPT_ECHO_REQUEST and self.answers_echo:
            return message(ofp.OFPT_ECHO_REPLY, xid, one[8:])
        return b""


@contextlib.contextmanager
def raw_switch(
    controller_port: int,
    dpid: int,
    *,
    flows: bytes = b"",
    ports: int = 2,
    silent: bool = False,
    tls: ssl.SSLContext | None = None,
) -> Iterator[RawSwitch]:
    made = RawSwitch(controller_port, dpid, flows=flows, ports=ports, silent=silent, tls=tls)
    try:
        yield made
    finally:
        made.close()
