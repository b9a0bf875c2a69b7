"""A fabric of minimal switches that measures its mode switches: ``python -m benchmarks.overload_fabric PORT``.

Two leaves and four spines, each a connection to the controller at 127.0.0.1:PORT; what a switch is to send out of a
port that has a link comes in at the link's other end. Says "ready" once the controller has given the leaf its state by
mode; then, for each line ``COUNT SECONDS`` on standard input, turns a leaf ON and waits until it is OFF, so often or so
long, and prints as JSON the milliseconds from each short packet to the leaf's update, and from that to the next one.
"""

from __future__ import annotations

import json
import random
import selectors
import socket
import struct
import sys
import time
from dataclasses import dataclass
from typing import IO, Final

from benchmarks.openflow_peer import Committed, FrameOut, OpenFlowPeer, packet_in
from benchmarks.overload_floor import APART_S
from capstan_client.errors import CapstanError
from controller.openflow.cookies import Rule

LEAVES: Final = 2
SPINES: Final = 4
LINKS: Final = LEAVES * SPINES
HOST_PORT: Final = 100
PATIENCE_S: Final = 10.0
"""A change that has not come so long after its cause counts as this long, and the next cycle begins."""
_DPID: Final = 0xFAB000
_RECEIVE: Final = 1 << 18
LINES_EVERY_S: Final = 600.0
"""A bench that says nothing for this long is gone."""


class FabricError(CapstanError, RuntimeError):
    """The controller does not serve the fabric; the text says what is missing."""


@dataclass(slots=True)
class _Switch:
    peer: OpenFlowPeer
    sock: socket.socket
    index: int


class Fabric:
    """The switches' connections, in one thread."""

    def __init__(self, port: int) -> None:
        self._selector = selectors.DefaultSelector()
        self._switches = [self._connect(port, index) for index in range(LEAVES + SPINES)]
        self._changed_at: float | None = None
        """When the first leaf's entries by mode were last updated."""

    def _connect(self, port: int, index: int) -> _Switch:
        leaf = index < LEAVES
        others = SPINES if leaf else LEAVES
        ports = [*range(1, others + 1), *([HOST_PORT] if leaf else [])]
        sock = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        switch = _Switch(OpenFlowPeer(_DPID + index + 1, ports), sock, index)
        self._selector.register(sock, selectors.EVENT_READ, switch)
        sock.sendall(switch.peer.data_to_send())
        return switch

    def watch(self, stdin: IO[str]) -> None:
        """Have `run` return when there is something to read."""
        self._selector.register(stdin, selectors.EVENT_READ, None)

    def announce_hosts(self) -> None:
        """Have each leaf's host ask for itself (ARP), as one that has just come up."""
        for index in range(LEAVES):
            mac, address = bytes((2, 0, 0, 0, 9, index + 1)), bytes((10, 99, 0, index + 1))
            frame = b"\xff" * 6 + mac + b"\x08\x06" + struct.pack("!HHBBH", 1, 0x0800, 6, 4, 1)
            self.send(index, HOST_PORT, Rule.ARP, frame + mac + address + bytes(6) + address)

    def send(self, index: int, port: int, rule: Rule, frame: bytes) -> None:
        """Send a packet up from a switch."""
        self._switches[index].sock.sendall(packet_in(port, rule, frame))

    def run(self, until: float, changed: bool = False) -> bool:
        """Serve the controller until *until* (seconds, monotonic), or, with *changed*, a change of the leaf's entries
        by mode, or a line on standard input. Return whether there was a change."""
        self._changed_at = None
        while (remaining_s := until - time.monotonic()) > 0:
            for key, _ in self._selector.select(remaining_s):
                if key.data is None:
                    return False
                self._serve(key.data)
            if changed and self._changed_at is not None:
                return True
        return self._changed_at is not None

    @property
    def changed_at(self) -> float:
        """Return when the change came that `run` has seen, seconds, monotonic."""
        assert self._changed_at is not None
        return self._changed_at

    def _serve(self, switch: _Switch) -> None:
        data = switch.sock.recv(_RECEIVE)
        if not data:
            raise FabricError(f"the controller has closed the connection of switch {switch.peer.dpid:#x}")
        for event in switch.peer.receive(data):
            match event:
                case FrameOut(port, frame):
                    self._carry(switch.index, port, frame)
                case Committed(rules) if switch.index == 0 and rules & {Rule.FIRST_SHORT, Rule.CLASS}:
                    self._changed_at = time.monotonic()
        if answer := switch.peer.data_to_send():
            switch.sock.sendall(answer)

    def _carry(self, index: int, port: int, frame: bytes) -> None:
        """Carry a frame that leaves a switch: LLDP comes in at the other end of a link, and goes up."""
        if port == HOST_PORT:
            return
        other, other_port = (
            (LEAVES + port - 1, index + 1) if index < LEAVES else (port - 1, index - LEAVES + 1)
        )
        self.send(other, other_port, Rule.LLDP, frame)


def cycles(fabric: Fabric, count: int, seconds: float, rng: random.Random) -> dict[str, list[float]]:
    """Return the milliseconds of so many changes each way, of fewer if the time is over before."""
    on_ms: list[float] = []
    off_ms: list[float] = []
    end = time.monotonic() + seconds
    while len(on_ms) < count and time.monotonic() < end:
        fabric.run(time.monotonic() + rng.uniform(*APART_S))
        began = time.monotonic()
        fabric.send(0, HOST_PORT, Rule.FIRST_SHORT, bytes(64))
        if not fabric.run(began + PATIENCE_S, changed=True):
            on_ms.append(PATIENCE_S * 1e3)
            continue
        on_at = fabric.changed_at
        on_ms.append((on_at - began) * 1e3)
        changed = fabric.run(on_at + PATIENCE_S, changed=True)
        off_ms.append((fabric.changed_at - on_at if changed else PATIENCE_S) * 1e3)
    return {"on": on_ms, "off": off_ms}


def main(port: int) -> None:
    """Serve until standard input ends. Raises FabricError."""
    fabric = Fabric(port)
    fabric.run(time.monotonic() + 3.0)
    fabric.announce_hosts()
    if not fabric.run(time.monotonic() + PATIENCE_S, changed=True):
        raise FabricError("the controller sent the leaf no entries by mode")
    fabric.run(time.monotonic() + 2.0)
    print("ready", flush=True)
    fabric.watch(sys.stdin)
    rng = random.Random(1)
    while True:
        fabric.run(time.monotonic() + LINES_EVERY_S)
        line = sys.stdin.readline()
        if not line:
            return
        count, seconds = line.split()
        # A line is read once it is whole, and the next one comes after its answer: the selector is free of it.
        print(json.dumps(cycles(fabric, int(count), float(seconds), rng)), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
