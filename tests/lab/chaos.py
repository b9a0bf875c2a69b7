"""Kills one part of a lab after the other, at random by a seed, and measures how long each takes to come back."""

from __future__ import annotations

import os
import random
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, Literal

from capstan_client.errors import ControllerError
from experiments.run.deployment import Deployment
from experiments.run.supervision import MOST_DEATHS, WITHIN_S
from tests.lab import overlay_transfer as programs
from tests.lab.lab_processes import pid_of
from tests.lab.test_openflow_takeover import held, wait_whole
from tests.waiting import PATIENCE_S, eventually

Kind = Literal["controller", "HTTP process", "agent", "ovs-vswitchd", "ovsdb-server"]
BOUNDS_S: Final[dict[Kind, float]] = {
    "controller": 3.0,
    "HTTP process": 3.0,
    "agent": 2.0,
    "ovs-vswitchd": 3.0,
    "ovsdb-server": 3.0,
}
"""Until: the API answers; the API answers; the controller has the agent's channel; the switch has flows and groups as
before; ovs-vswitchd has taken in a change of its database."""
PORT: Final = 7300
BYTES_PER_S: Final = 100_000


@dataclass(frozen=True, slots=True)
class Target:
    """A part that may be killed. name: of the host or switch."""

    kind: Kind
    name: str = ""


@dataclass(frozen=True, slots=True)
class Killed:
    """back_s: until the part was back; whole_s: until the controller had found everything again."""

    target: Target
    back_s: float
    whole_s: float


class Draw:
    """Which part is next: each kind once, then any; never so often that the lab gives a part up."""

    def __init__(self, targets: Iterable[Target], rng: random.Random) -> None:
        self._rng = rng
        self._targets = list(targets)
        kinds: list[Kind] = list(BOUNDS_S)
        rng.shuffle(kinds)
        self._first = kinds
        self._deaths: dict[Target, list[float]] = {}

    def next(self, now: float) -> Target:
        """Return the part to kill at *now* (seconds)."""
        possible = [one for one in self._targets if self._recent(one, now) < MOST_DEATHS - 1]
        kind = self._first.pop() if self._first else self._rng.choice(sorted({one.kind for one in possible}))
        target = self._rng.choice([one for one in possible if one.kind == kind])
        self._deaths.setdefault(target, []).append(now)
        return target

    def _recent(self, target: Target, now: float) -> int:
        """Count a target's deaths within the time that counts, and 2 s more for when each is noticed."""
        return sum(at > now - WITHIN_S - 2 for at in self._deaths.get(target, ()))


class Chaos:
    """Transfers over the overlay of a lab with several spines, and kills meanwhile."""

    def __init__(self, lab: Deployment, rng: random.Random) -> None:
        self._lab = lab
        switches = lab.lab.switches
        self.draw = Draw(
            [
                Target("controller"),
                Target("HTTP process"),
                *(Target("agent", host) for host in lab.lab.hosts),
                # a leaf is the last path of its hosts
                *(Target("ovs-vswitchd", name) for name in switches if name.startswith("s")),
                *(Target("ovsdb-server", name) for name in switches),
            ],
            rng,
        )
        self._transfers: list[tuple[subprocess.Popen[str], subprocess.Popen[str]]] = []

    def start_transfers(self) -> None:
        """Start a transfer from each host to the next one of the other leaf; they last until `end_transfers`."""
        places = self._lab.spec.fabric.hosts()
        half = len(places) // 2
        for index, source in enumerate(places):
            target = places[(index + half) % len(places)]
            receiver = self._program(target.name, programs.RECEIVE, PORT + index)
            _line(receiver)
            sender = self._program(source.name, programs.SEND, target.overlay, PORT + index, 0, BYTES_PER_S)
            _line(sender)
            self._transfers.append((sender, receiver))

    def end_transfers(self) -> int:
        """Return the bytes that went over, once each transfer has ended in order and both ends have the same."""
        total = 0
        for sender, receiver in self._transfers:
            said, trouble = sender.communicate("end\n", timeout=PATIENCE_S)
            assert sender.returncode == 0, trouble
            received, trouble = receiver.communicate(timeout=PATIENCE_S)
            assert receiver.returncode == 0, trouble
            assert said.split() == received.split()
            total += int(said.split()[1])
        return total

    def kill_next(self) -> Killed:
        """Kill a part; return once everything is whole again, and every transfer goes on."""
        target = self.draw.next(time.monotonic())
        process, is_back = self._of(target)
        restarts = len(self._lab.restarts)
        at = time.monotonic()
        os.kill(process, signal.SIGKILL)
        eventually(is_back, f"{target.kind} {target.name} is back")
        back = time.monotonic() - at
        if target.kind != "HTTP process":  # the controller's own
            eventually(lambda: len(self._lab.restarts) > restarts)
        eventually(lambda: self._lab.complete)
        wait_whole(self._lab)
        self._lab.check()
        for sender, receiver in self._transfers:
            assert (sender.poll(), receiver.poll()) == (None, None), "a transfer has ended"
        return Killed(target, back, time.monotonic() - at)

    def _of(self, target: Target) -> tuple[int, Callable[[], bool]]:
        """Return the PID of a part's process, and a function that returns whether the part is back."""
        lab = self._lab
        if target.kind == "controller":
            part = lab.part("controller")
            assert part.newest is not None
            return part.newest.pid, self._answers
        if target.kind == "HTTP process":
            return pid_of(lab.lab.lab_id, "controller.api.front"), self._answers
        if target.kind == "agent":
            agent, began = lab.part(f"agent {target.name}"), time.time()
            assert agent.newest is not None
            return agent.newest.pid, lambda: self._connected(target.name, began)
        switch = lab.lab.switch(target.name)
        if target.kind == "ovs-vswitchd":
            before, daemon = held(lab, target.name), switch.daemon
            assert daemon is not None
            return daemon.pid, lambda: switch.daemon is not daemon and self._has_state(target.name, before)
        server = switch.database_server
        assert server is not None
        return server.pid, lambda: switch.database_server is not server and self._configured(target.name)

    def _answers(self) -> bool:
        try:
            return bool(self._lab.client.health(1.0).version)
        except ControllerError:
            return False

    def _connected(self, host: str, since: float) -> bool:
        return any(
            one["host"] == host and one["connected"] and one["connected_at"] >= since
            for one in self._lab.client.agents()
        )

    def _has_state(self, name: str, before: tuple[list[str], list[str]]) -> bool:
        try:
            return held(self._lab, name) == before
        except RuntimeError:  # it does not listen yet
            return False

    def _configured(self, name: str) -> bool:
        try:
            self._lab.lab.switch(name).vsctl("set", "open_vswitch", ".", "external_ids:seen=yes", timeout_s=1)
        except RuntimeError:
            return False
        return True

    def _program(self, host: str, program: str, *arguments: object) -> subprocess.Popen[str]:
        return self._lab.lab.popen(
            host,
            [sys.executable, "-S", "-c", program, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


def _line(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    assert process.stdout.readline(), process.communicate()[1]


def report(kills: Iterable[Killed]) -> str:
    """Return the times until parts were back, as a table."""
    kills = list(kills)
    lines = [
        f"{'part':<14} {'kills':>5} {'back: median':>13} {'worst':>8} {'bound':>8} {'whole: worst':>13}",
    ]
    for kind, bound in BOUNDS_S.items():
        ours = [one for one in kills if one.target.kind == kind]
        if ours:
            back = [one.back_s for one in ours]
            whole = max(one.whole_s for one in ours)
            lines.append(
                f"{kind:<14} {len(ours):>5} {statistics.median(back):>11.2f} s {max(back):>6.2f} s "
                f"{bound:>6.1f} s {whole:>11.2f} s"
            )
    return "\n".join(lines)


def late(kills: Iterable[Killed]) -> list[Killed]:
    """Return the kills after which a part took longer than it may."""
    return [one for one in kills if one.back_s > BOUNDS_S[one.target.kind]]
