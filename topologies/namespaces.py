"""Work inside other network namespaces, without a process per command.

A thread can enter a network namespace on its own; what it starts there stays there. Only worker threads may:
a Ctrl-C in the main thread could otherwise leave the whole program in the wrong namespace.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Final

from capstan_client.errors import CapstanError
from topologies.children import end_child, start_child

CLONE_NEWNET: Final = 0x40000000
COMMAND_S: Final = 60.0
"""No program that sets up the network takes as long, on a busy machine either: one that does never answers."""
SIOCETHTOOL: Final = 0x8946
# include/uapi/linux/ethtool.h: ETHTOOL_SRXCSUM, STXCSUM, STSO, SGSO, SGRO
OFFLOAD_COMMANDS: Final = {"rx": 0x15, "tx": 0x17, "tso": 0x1F, "gso": 0x24, "gro": 0x2C}
_LOOPBACK: Final = 1
"""The index of `lo` in every namespace."""
# include/uapi/linux/netlink.h, rtnetlink.h and if_link.h
_NETLINK_HEADER: Final = struct.Struct("=IHHII")
_LINK_HEADER: Final = struct.Struct("=BxHiII")
_ATTRIBUTE: Final = struct.Struct("=HH")
_REQUEST, _NEW_LINK, _GET_LINK, _ALIAS = 1, 16, 18, 20
_ANSWER_BYTES: Final = 1 << 16

_libc = ctypes.CDLL(None, use_errno=True)


class CommandError(CapstanError, RuntimeError):
    """A program that sets up the network failed; the text says which, on what and what it said."""


class ProgramMissingError(CapstanError, FileNotFoundError):
    """A program is not on PATH."""


def _setns(fd: int) -> None:
    if _libc.setns(fd, CLONE_NEWNET):
        code = ctypes.get_errno()
        raise OSError(code, f"cannot enter a network namespace: {os.strerror(code)}")


class Namespace:
    """A network namespace, held open from a process in it until close()."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.fd = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)

    @property
    def network(self) -> int:
        """Return the inode of the namespace, as `topologies.processes` names it."""
        return os.fstat(self.fd).st_ino

    def close(self) -> None:
        """Release the namespace; it ends with the last process in it."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Put this (worker) thread inside the namespace for the block."""
        if threading.current_thread() is threading.main_thread():
            raise RuntimeError("only worker threads may enter a namespace")
        home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            _setns(self.fd)
            try:
                yield
            finally:
                _setns(home)
        finally:
            os.close(home)


def complete(
    argv: Sequence[str], env: Mapping[str, str] | None = None, text: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a program where this thread is; return it with its output, whatever its exit code.

    An exception that a signal's handler raises meanwhile ends the program. Raises CommandError if it does not end.
    """

    started: list[subprocess.Popen[str]] = []

    def start() -> subprocess.Popen[str]:
        stdin = None if text is None else subprocess.PIPE
        process = subprocess.Popen(
            argv, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env
        )
        started.append(process)
        return process

    if threading.current_thread() is not threading.main_thread():
        return _completed(start(), argv, text)
    try:
        # Signals' handlers run in the main thread: one that raises there within `Popen()`, after the fork, or between
        # two calls, would leave a child that no variable holds.
        with ThreadPoolExecutor(1) as thread:
            return _completed(start_child(start, thread), argv, text)
    except BaseException:
        for process in started:
            end_child(process)
        raise


def _completed(
    process: subprocess.Popen[str], argv: Sequence[str], text: str | None
) -> subprocess.CompletedProcess[str]:
    with process:
        try:
            output, errors = process.communicate(text, COMMAND_S)
        except BaseException as error:
            end_child(process)
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            raise CommandError(
                f"`{' '.join(argv)}` did not end within {COMMAND_S:g} s: run it by hand to see what it waits for"
            ) from None
    return subprocess.CompletedProcess(argv, process.returncode, output, errors)


def run(argv: Sequence[str], env: Mapping[str, str] | None = None) -> str:
    """Run a program where this thread is, return its output. Raises CommandError with what it said."""
    done = complete(argv, env)
    if done.returncode:
        raise CommandError(f"`{' '.join(argv)}` failed ({done.returncode}): {done.stderr.strip()}")
    return done.stdout


def run_batch(program: str, lines: Sequence[str]) -> None:
    """Give many commands to one `ip` or `tc`. Raises CommandError with the line that failed."""
    if not lines:
        return
    done = complete([program, "-batch", "-"], text="\n".join(lines) + "\n")
    if done.returncode:
        errors = done.stderr.strip()
        number = errors.rpartition("-:")[2]
        line = lines[int(number) - 1] if number.isdigit() and int(number) <= len(lines) else ""
        raise CommandError(f"`{program} {line}` failed ({done.returncode}): {errors}")


def disable_offloads(interface: str) -> None:
    """Turn TX and RX checksum, TSO, GSO and GRO off, so that packet sockets see what a wire would carry."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for name, command in OFFLOAD_COMMANDS.items():
            value = bytearray(struct.pack("II", command, 0))
            address = (ctypes.c_char * len(value)).from_buffer(value)
            request = struct.pack("16sP", interface.encode(), ctypes.addressof(address))
            try:
                fcntl.ioctl(sock, SIOCETHTOOL, request.ljust(40, b"\0"))
            except OSError as error:
                raise CommandError(f"cannot switch {name} off on {interface}: {error}") from error


def loopback_alias() -> str:
    """Return the alias of `lo` in the namespace that this thread is in; empty if it has none. Raises OSError."""
    request = _NETLINK_HEADER.pack(_NETLINK_HEADER.size + _LINK_HEADER.size, _GET_LINK, _REQUEST, 0, 0)
    request += _LINK_HEADER.pack(socket.AF_UNSPEC, 0, _LOOPBACK, 0, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as sock:
        sock.send(request)
        # The kernel has answered before send() returned.
        answer = sock.recv(_ANSWER_BYTES, socket.MSG_DONTWAIT)
    if _NETLINK_HEADER.unpack_from(answer)[1] != _NEW_LINK:
        return ""
    offset = _NETLINK_HEADER.size + _LINK_HEADER.size
    while offset + _ATTRIBUTE.size <= len(answer):
        size, kind = _ATTRIBUTE.unpack_from(answer, offset)
        if kind == _ALIAS:
            return answer[offset + _ATTRIBUTE.size : offset + size].rstrip(b"\0").decode(errors="replace")
        if size < _ATTRIBUTE.size:
            break
        offset += (size + 3) & ~3
    return ""


def write_sysctls(values: Mapping[str, str]) -> list[str]:
    """Set sysctls of the namespace this thread is in; return the names of those that could not be set."""
    refused = []
    for name, value in values.items():
        try:
            with open(f"/proc/sys/{name}", "w", encoding="ascii") as file:
                file.write(value)
        except OSError:
            refused.append(name.replace("/", "."))
    return refused
