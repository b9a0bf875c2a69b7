"""Many datagrams in one call of the kernel: sendmmsg and recvmmsg, which Python's socket module lacks."""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import struct
from typing import Final

import numpy as np
import numpy.typing as npt

from host_agent.wire import Rows

MOST: Final = 64
"""Datagrams in one call."""
_CONTROL_BYTES: Final = 32
_ADDRESS_BYTES: Final = 16
_TOS_AT: Final = 16
"""Offset of the data in a control message."""
_libc: Final = ctypes.CDLL(None, use_errno=True)
_POINTER: Final = np.dtype(np.uintp)
_IOVEC: Final = np.dtype([("base", _POINTER), ("length", _POINTER)])
_SOCKADDR_IN: Final = struct.Struct("=H2s4s8x")


class _Message(ctypes.Structure):
    """struct msghdr of Linux, pointers as numbers."""

    _fields_ = (
        ("name", ctypes.c_size_t),
        ("name_bytes", ctypes.c_uint32),
        ("iovecs", ctypes.c_size_t),
        ("iovec_count", ctypes.c_size_t),
        ("control", ctypes.c_size_t),
        ("control_bytes", ctypes.c_size_t),
        ("flags", ctypes.c_int),
    )


class _ManyMessage(ctypes.Structure):
    """struct mmsghdr."""

    _fields_ = (("message", _Message), ("received", ctypes.c_uint32))


_MESSAGE: Final = np.dtype(_ManyMessage)


class ManySender:
    """Sends rows of one matrix to one address over a raw socket."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._messages = np.zeros(MOST, _MESSAGE)
        headers = self._messages["message"]
        self._iovecs = np.zeros(MOST, _IOVEC)
        self._address = np.zeros(_ADDRESS_BYTES, np.uint8)
        headers["name"] = self._address.ctypes.data
        headers["name_bytes"] = _ADDRESS_BYTES
        at = self._iovecs.ctypes.data
        headers["iovecs"] = at + np.arange(MOST) * _IOVEC.itemsize
        headers["iovec_count"] = 1
        self._at = self._messages.ctypes.data
        self._steps = np.arange(MOST, dtype=_POINTER)

    def send(self, address: bytes, rows: Rows, last_bytes: int) -> int:
        """Send whole rows, of the last one *last_bytes*, to an IPv4 address of 4 bytes; how many were sent."""
        self._address[:] = np.frombuffer(_SOCKADDR_IN.pack(socket.AF_INET, b"\0\0", address), np.uint8)
        count, width = rows.shape
        base, sent = rows.ctypes.data, 0
        for begin in range(0, count, MOST):
            some = min(MOST, count - begin)
            self._iovecs["base"][:some] = base + begin * width + self._steps[:some] * width
            self._iovecs["length"][:some] = width
            if begin + some == count:
                self._iovecs["length"][some - 1] = last_bytes
            sent += self._send(some)
        return sent

    def _send(self, count: int) -> int:
        at, sent = 0, 0
        while at < count:
            done = _libc.sendmmsg(self._fd, ctypes.c_void_p(self._at + at * _MESSAGE.itemsize), count - at, 0)
            if done > 0:
                at += done
                sent += done
                continue
            code = ctypes.get_errno()
            if code == errno.EINTR:
                continue
            if code in (errno.EAGAIN, errno.ENOBUFS):
                break
            at += 1  # this one cannot be sent at all
        return sent


class ManyReceiver:
    """Receives what waits at a UDP socket, up to MOST at a time.

    Args:
        datagram_bytes: a longer datagram is cut off, and so found damaged.
    """

    def __init__(self, datagram_bytes: int) -> None:
        self._width = -(-(datagram_bytes + 1) // 64) * 64
        self._data = bytearray(MOST * self._width)
        self._view = memoryview(self._data)
        self._names = bytearray(MOST * _ADDRESS_BYTES)
        self._control = bytearray(MOST * _CONTROL_BYTES)
        self._messages = np.zeros(MOST, _MESSAGE)
        headers = self._messages["message"]
        steps = np.arange(MOST, dtype=_POINTER)
        self._iovecs = np.zeros(MOST, _IOVEC)
        self._iovecs["base"] = _address_of(self._data) + steps * self._width
        self._iovecs["length"] = self._width
        headers["name"] = _address_of(self._names) + steps * _ADDRESS_BYTES
        headers["iovecs"] = self._iovecs.ctypes.data + steps * _IOVEC.itemsize
        headers["iovec_count"] = 1
        headers["control"] = _address_of(self._control) + steps * _CONTROL_BYTES
        self._at = ctypes.c_void_p(self._messages.ctypes.data)
        self._name_bytes: npt.NDArray[np.uint32] = headers["name_bytes"]
        self._control_bytes: npt.NDArray[np.uintp] = headers["control_bytes"]
        self._received: npt.NDArray[np.uint32] = self._messages["received"]

    def receive(self, fd: int) -> list[tuple[bytes, bytes, int, int]]:
        """Datagram, source address (4 bytes), source port and TOS of each; none where none waits.

        Raises:
            OSError: an error is pending at the socket, or it is closed.
        """
        self._name_bytes[:] = _ADDRESS_BYTES
        self._control_bytes[:] = _CONTROL_BYTES
        count = _libc.recvmmsg(fd, self._at, MOST, socket.MSG_DONTWAIT, None)
        if count < 0:
            code = ctypes.get_errno()
            if code in (errno.EAGAIN, errno.EINTR):
                return []
            raise OSError(code, os.strerror(code))
        view, width, names, control = self._view, self._width, self._names, self._control
        lengths = self._received[:count].tolist()
        controls = self._control_bytes[:count].tolist()
        got = []
        for index, length in enumerate(lengths):
            at, name = index * width, index * _ADDRESS_BYTES
            tos = control[index * _CONTROL_BYTES + _TOS_AT] if controls[index] > _TOS_AT else 0
            got.append(
                (
                    bytes(view[at : at + length]),
                    bytes(names[name + 4 : name + 8]),
                    names[name + 2] << 8 | names[name + 3],
                    tos,
                )
            )
        return got


def _address_of(buffer: bytearray) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(buffer))
