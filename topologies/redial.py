"""Switches that call a controller as soon as it listens.

A switch that finds no controller tries again after 1, 2, 4 and then every 8 s. The `max_backoff` that should
bound this is ignored by Open vSwitch 3.1 (Debian 12), so a controller started again would wait 8 s for its
switches. Here the lab watches the kernel's table of TCP connections for a listener at the controller's
endpoint, and has those switches dial at once that do not call by themselves.
"""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Final

ESTABLISHED: Final = 0x01
LISTEN: Final = 0x0A
WATCH_SECONDS: Final = 0.3
"""While a switch is missing."""
SETTLED_SECONDS: Final = 1.0
"""While all switches are connected: to read the table takes the kernel 1 to 4 ms of CPU, for its hash table is large
however few connections there are. A controller that is started again takes longer than this until it listens."""
PATIENCE_SECONDS: Final = 0.25
"""A switch that has lost its connection and dials by itself has another by then."""
AGAIN_SECONDS: Final = 1.5


class RedialPolicy:
    """Decides which switches should dial: those without a connection while a controller listens.

    One that was not there at the last look is dialled at once: switches that waited for it would go on waiting.
    """

    def __init__(self, addresses: Mapping[str, str]) -> None:
        """Take addresses: a switch's name to its address on the management network."""
        self._addresses = dict(addresses)
        self._missing_since: dict[str, float] = {}
        self._dialled: dict[str, float] = {}
        self._listened = False

    def watch_s(self, listening: bool, callers: Iterable[str]) -> float:
        """Return after how many seconds to look again."""
        settled = listening and set(self._addresses.values()) <= set(callers)
        return SETTLED_SECONDS if settled else WATCH_SECONDS

    def is_connected(self, name: str, callers: Iterable[str]) -> bool:
        """Return whether a switch is among the addresses that are connected."""
        return self._addresses[name] in callers

    def observe(self, now: float, listening: bool, callers: Iterable[str]) -> list[str]:
        """Return names of the switches to have dial, given who is connected at time *now* (seconds)."""
        connected = set(callers)
        begins = listening and not self._listened
        self._listened = listening
        due = []
        for name, address in self._addresses.items():
            if not listening or address in connected:
                self._missing_since.pop(name, None)
                continue
            missing = now - self._missing_since.setdefault(name, now)
            waits = begins or missing >= PATIENCE_SECONDS
            if waits and now - self._dialled.get(name, float("-inf")) >= AGAIN_SECONDS:
                self._dialled[name] = now
                due.append(name)
        return due


def _address(word: str) -> tuple[str, int]:
    """Return the address and port as the kernel's table writes them: the address as a number of this machine."""
    digits, _, port = word.partition(":")
    return socket.inet_ntoa(int(digits, 16).to_bytes(4, sys.byteorder)), int(port, 16)


def read_table(text: str, endpoint: tuple[str, int]) -> tuple[bool, set[str]]:
    """Return whether a process listens at *endpoint*, and the addresses that are connected to it.

    text: /proc/net/tcp.
    """
    listening, callers = False, set()
    for line in text.splitlines()[1:]:
        words = line.split()
        state = int(words[3], 16)
        if state not in (ESTABLISHED, LISTEN):
            continue
        address, port = _address(words[1])
        if port != endpoint[1]:
            continue
        if state == LISTEN and address in (endpoint[0], "0.0.0.0"):
            listening = True
        elif state == ESTABLISHED and address == endpoint[0]:
            callers.add(_address(words[2])[0])
    return listening, callers


class Redialer:
    """The thread that watches and has switches dial, until stop()."""

    def __init__(
        self, endpoint: tuple[str, int], addresses: Mapping[str, str], dial: Callable[[str], None]
    ) -> None:
        """Take dial: it makes the switch with this name dial; its errors are for the next round to mend."""
        self._endpoint = endpoint
        self._policy = RedialPolicy(addresses)
        self._dial = dial
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="capstan-redialer", daemon=True)

    def start(self) -> None:
        """Start watching."""
        self._thread.start()

    def stop(self) -> None:
        """Stop watching and wait for the thread's end."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join()

    def _watch(self) -> None:
        pause_s = WATCH_SECONDS
        while not self._stopped.wait(pause_s):
            pause_s = WATCH_SECONDS
            # No file can be opened, or no program started, just now: the next round does it.
            with suppress(OSError):
                pause_s = self._look()

    def _look(self) -> float:
        """Have those dial that should; return after how many seconds to look again. Raises OSError."""
        listening, callers = self._read()
        for switch in self._policy.observe(monotonic(), listening, callers):
            if self._stopped.is_set():
                break
            # the one before took its time on a busy machine, and to dial ends a connection that is there
            if not self._policy.is_connected(switch, self._read()[1]):
                self._dial(switch)
        return self._policy.watch_s(listening, callers)

    def _read(self) -> tuple[bool, set[str]]:
        text = Path("/proc/thread-self/net/tcp").read_text(encoding="ascii")
        return read_table(text, self._endpoint)
