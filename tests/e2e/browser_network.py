"""A network of the browser's own, with ways into the machine's for the ports that it is to reach.

Chromium gives up what it is connecting to (`net::ERR_NETWORK_CHANGED`) whenever an address comes or goes, and labs
beside the test come and go all the time.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from tests.lab.openflow_rig import Netns

PIECE: Final = 1 << 16


class BrowserNetwork:
    """Its loopback, and an interface with an address, without which a browser would call itself offline."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._netns = Netns(f"browser{os.getpid()}")
        self._listeners: list[socket.socket] = []
        try:
            if Path("/proc/sys/net/ipv6").exists():  # its addresses come a second or two after their links
                off = (f"net.ipv6.conf.{links}.disable_ipv6=1" for links in ("all", "default"))
                self._netns("sysctl", "--quiet", "--write", *off)
            for words in (
                "link set lo up",
                "link add outside type veth peer name inside",
                "link set inside up",
                "link set outside up",
                "address add 192.0.2.1/24 dev outside",
                "route add default dev outside",
            ):
                self._netns("ip", *words.split())
        except BaseException:
            self.close()
            raise

    def program(self, path: str) -> Path:
        """Write a program that starts the one at *path* in this network; return its path."""
        script = self._directory / "program"
        script.write_text(f'#!/bin/sh\nexec nsenter --net=/run/netns/{self._netns.name} -- {path} "$@"\n')
        script.chmod(0o755)
        return script

    def let_through(self, port: int) -> None:
        """Have this network's 127.0.0.1:*port* be the machine's."""
        listener = self._netns.inside(lambda: socket.create_server(("127.0.0.1", port)))
        self._listeners.append(listener)
        threading.Thread(target=_serve, args=(listener, port), daemon=True).start()

    def close(self) -> None:
        for listener in self._listeners:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
            listener.close()
        self._netns.delete()


@contextmanager
def browser_network(directory: Path) -> Iterator[BrowserNetwork]:
    made = BrowserNetwork(directory)
    try:
        yield made
    finally:
        made.close()


def _serve(listener: socket.socket, port: int) -> None:
    with suppress(OSError):  # it was closed
        while True:
            near, _ = listener.accept()
            try:
                far = socket.create_connection(("127.0.0.1", port))
            except OSError:  # no program listens there: the browser learns it
                near.close()
                continue
            for ends in ((near, far), (far, near)):
                threading.Thread(target=_carry, args=ends, daemon=True).start()


def _carry(source: socket.socket, target: socket.socket) -> None:
    """Send all that comes from *source* to *target*, and then its end."""
    with suppress(OSError):
        while data := source.recv(PIECE):
            target.sendall(data)
    for end, how in ((target, socket.SHUT_WR), (source, socket.SHUT_RD)):
        with suppress(OSError):
            end.shutdown(how)
