"""What the kernel says of the host's TCP sockets (`sock_diag(7)`): what they hold unsent, for sizes of flows that
are not announced; and what their SYNs agreed, for connections that are older than the scheme, or than the agent.
"""

from __future__ import annotations

import errno
import socket
import struct
from dataclasses import dataclass
from typing import Final

from host_agent.inner_packet import addresses, ports

_SOCK_DIAG: Final = 4
_BY_FAMILY: Final = 20
_REQUEST: Final = 1
_ERROR: Final = 2
_HEADER: Final = struct.Struct("=IHHII")
_QUESTION: Final = struct.Struct("=BBBxI")
_ENDS: Final = struct.Struct("!HH16s16s")
_ANY: Final = struct.pack("=III", 0, 0xFFFFFFFF, 0xFFFFFFFF)
"""Of any interface, and of any cookie (INET_DIAG_NOCOOKIE)."""
_ANSWER_BYTES: Final = 72
_INFO: Final = 2
_MEMORY: Final = 7
_STATE_AT, _OPTIONS_AT, _SCALES_AT, _SEGMENT_AT, _ADVERTISED_AT = 0, 5, 6, 16, 84
_SENDING: Final = (1, 8)
"""TCP_ESTABLISHED and TCP_CLOSE_WAIT."""
_SCALED: Final = 4
"""TCPI_OPT_WSCALE."""
_NOT_SENT_AT: Final = 144
"""Where tcpi_notsent_bytes is in struct tcp_info (Linux 4.6 and later)."""
_SNDBUF, _QUEUED = 3, 5
"""In the array of SK_MEMINFO."""


@dataclass(frozen=True, slots=True)
class Unsent:
    """``more``: whether the buffer is so full that the program is being kept waiting: it has more than that."""

    bytes: int
    more: bool
    scale: int = 0
    """Of the windows that the peer advertises (RFC 7323)."""
    segment_bytes: int = 0
    """Most payload of a segment now; 0: nothing new can be sent, or not yet. Linux makes segments of half the largest
    window that was ever advertised to it, at most, and goes on with that for a while when windows have become large."""
    most_segment_bytes: int = 0
    """The same once windows are large; more only if the peer wants smaller ones."""


class UnsentBytes:
    """Asks the kernel, in the network namespace in which this is made. Raises OSError where it cannot be asked."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_NONBLOCK, _SOCK_DIAG)
        self._sequence = 0

    def of(self, flow: bytes) -> Unsent | None:
        """Return what is unsent of a TCP flow of this host (`InnerPacket.flow`); None: no such socket here,
        or no answer.
        """
        source, destination = addresses(flow)
        family = socket.AF_INET if len(source) == 4 else socket.AF_INET6
        self._sequence += 1
        body = _QUESTION.pack(family, socket.IPPROTO_TCP, 1 << (_INFO - 1) | 1 << (_MEMORY - 1), 0xFFFFFFFF)
        body += _ENDS.pack(*ports(flow), source.ljust(16, b"\0"), destination.ljust(16, b"\0")) + _ANY
        head = _HEADER.pack(_HEADER.size + len(body), _BY_FAMILY, _REQUEST, self._sequence, 0)
        try:
            self._socket.send(head + body)
            while True:
                data = self._socket.recv(8192)  # the kernel has answered before send() returned
                _, kind, _, sequence, _ = _HEADER.unpack_from(data)
                if sequence == self._sequence:
                    return None if kind == _ERROR else _read(data[_HEADER.size :])
        except OSError as error:
            if error.errno in (errno.EAGAIN, errno.ENOBUFS):
                return None
            raise

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


def _read(answer: bytes) -> Unsent | None:
    attributes: dict[int, bytes] = {}
    offset = _ANSWER_BYTES
    while offset + 4 <= len(answer):
        size, kind = struct.unpack_from("=HH", answer, offset)
        if size < 4:
            break
        attributes[kind] = answer[offset + 4 : offset + size]
        offset += (size + 3) & ~3
    info, memory = attributes.get(_INFO, b""), attributes.get(_MEMORY, b"")
    if len(info) < _NOT_SENT_AT + 4:
        return None
    (not_sent,) = struct.unpack_from("=I", info, _NOT_SENT_AT)
    more = False
    if len(memory) >= 4 * (_QUEUED + 1):
        values = struct.unpack_from(f"={_QUEUED + 1}I", memory)
        more = 3 * values[_QUEUED] > 2 * values[_SNDBUF]  # sk_stream_is_writeable() says no
    scale = (
        info[_SCALES_AT] & 0xF if info[_OPTIONS_AT] & _SCALED else 0
    )  # the low half: of what the peer advertises
    (segment,) = struct.unpack_from("=I", info, _SEGMENT_AT)
    (most,) = struct.unpack_from("=I", info, _ADVERTISED_AT)
    return Unsent(not_sent, more, scale, segment if info[_STATE_AT] in _SENDING else 0, max(segment, most))
