"""What os-ken's native threads get wrong, and that the shell does not: each defect beside its cover.

os-ken is run as it comes, against the same switches. A test that fails in its first half says that os-ken has mended
a defect; one that fails in its second half says that the shell has it.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from os_ken.base.app_manager import (
    Datapath,
)  # first: os_ken.controller.controller cannot be imported before it
from os_ken.lib import hub

from controller.openflow import connection
from controller.openflow.shell import OpenFlowShell
from controller.openflow.wanted import Bucket, Flow, Group, Match, Output
from tests.lab.openflow_plane import ScriptedPlane, state, whole
from tests.lab.openflow_rig import switch
from tests.waiting import eventually

ROOT = Path(__file__).parents[2]
DPID = 0x21


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("0.0.0.0", 0))
        return sock.getsockname()[1]


class Bare:
    """os-ken in a process of its own, and what it says."""

    def __init__(self, port: int) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.lab.osken_bare", str(port)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.states: list[str] = []
        self.threads = 0
        threading.Thread(target=self._read, daemon=True).start()
        eventually(lambda: self.threads, "os-ken's first words")

    def _read(self) -> None:
        for line in self.process.stdout:
            said = json.loads(line)
            self.threads = said.get("threads", self.threads)
            if "state" in said:
                self.states.append(said["state"])


@contextmanager
def bare(port: int) -> Iterator[Bare]:
    running = Bare(port)
    try:
        yield running
    finally:
        running.process.kill()
        running.process.wait()


@contextmanager
def ours(plane: ScriptedPlane) -> Iterator[OpenFlowShell]:
    shell = OpenFlowShell(plane, "0.0.0.0", 0, lambda _: None)
    shell.start()
    try:
        yield shell
    finally:
        shell.stop()


def test_os_ken_reports_a_lost_switch_only_when_it_is_back_and_leaks_threads() -> None:
    port = free_port()
    with bare(port) as running, switch(DPID, port) as real:
        eventually(lambda: running.states == ["main"], "the switch at os-ken")
        time.sleep(0.2)
        with_one = running.threads
        real.kill()
        time.sleep(2.0)
        assert "dead" not in running.states
        assert running.threads == with_one  # none has ended
        real.start()
        eventually(lambda: running.states.count("main") == 2, "the switch back at os-ken")
        eventually(lambda: running.threads >= with_one + 2, "two threads more")


def test_a_lost_switch_is_reported_at_once_and_leaks_nothing() -> None:
    plane = ScriptedPlane()
    with ours(plane) as shell, switch(DPID, shell.port) as real:
        eventually(lambda: len(plane.of("connected")) == 1, "the switch")
        threads, files = threading.active_count(), len(os.listdir("/proc/self/fd"))
        for times in range(1, 4):
            real.kill()
            eventually(lambda times=times: len(plane.of("disconnected")) == times, "the report")
            eventually(lambda: len(os.listdir("/proc/self/fd")) == files - 1, "its socket closed")
            real.start()
            eventually(lambda times=times: len(plane.of("connected")) == times + 1, "the switch")
        eventually(lambda: threading.active_count() == threads, "as many threads as before")
        assert len(os.listdir("/proc/self/fd")) == files


def test_os_ken_crashes_when_interrupted() -> None:
    with bare(free_port()) as running:
        eventually(lambda: running.threads, "its threads")
        time.sleep(0.3)
        running.process.send_signal(signal.SIGINT)
        said = "AttributeError: 'HubThread' object has no attribute 'kill'"
        assert any(said in line for line in running.process.stderr), "it ended without saying so"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_us_cleanly(number: signal.Signals) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "controller.openflow", "--listen", "0.0.0.0:0"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        port = 0
        while not port:
            said = json.loads(process.stdout.readline())
            port = said.get("port", 0)
        with switch(DPID, port) as real:
            while json.loads(process.stdout.readline())["event"] != "SwitchUp":
                continue
            process.send_signal(number)
            assert process.wait(60) == 0
            assert "Traceback" not in process.stderr.read()
            assert "NORMAL" not in "\n".join(real.tables())
            assert real.tables(), "the switch keeps what it has"
    finally:
        process.kill()
        process.wait()


def test_os_ken_ignores_time_outs() -> None:
    waiting = threading.Thread(target=lambda: hub.Event().wait(timeout=0.1), daemon=True)
    waiting.start()
    waiting.join(1.0)
    assert waiting.is_alive()


def test_our_waits_end_in_time() -> None:
    plane = ScriptedPlane(states={DPID: state()})
    with ours(plane) as shell, switch(DPID, shell.port) as real:
        eventually(lambda: plane.of("connected"), "the switch")
        shell.wait_applied(60)
        real.send_signal(signal.SIGSTOP)
        shell.call(lambda: whole(DPID, state([Flow(0, 1, Match(), (Output(1),))])))
        begin = time.monotonic()
        with pytest.raises(
            TimeoutError, match="switches 0x21 did not confirm an update within 0.3 s".replace(".", r"\.")
        ):
            shell.wait_applied(0.3)
        assert time.monotonic() - begin >= 0.3
        real.send_signal(signal.SIGCONT)
        shell.wait_applied(60)


def test_os_ken_blocks_the_sender_behind_a_switch_that_does_not_read() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = socket.create_connection(server.getsockname())
        accepted, address = server.accept()
        datapath = Datapath(accepted, address)
        datapath.socket.settimeout(None)
        threading.Thread(target=datapath._send_loop, daemon=True).start()

        def send() -> None:
            for _ in range(100):
                datapath.send(bytes(1 << 20))

        sending = threading.Thread(target=send, daemon=True)
        sending.start()
        sending.join(1.0)
        assert sending.is_alive()
        client.close()  # ends the send loop, which lets go of the sender


def test_our_sender_does_not_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "UNSENT_LIMIT_BYTES", 1 << 40)
    plane = ScriptedPlane(states={DPID: state()})
    with ours(plane) as shell, switch(DPID, shell.port, 1) as real:
        eventually(lambda: plane.of("connected"), "the switch")
        real.send_signal(signal.SIGSTOP)
        large = state((), [Group(1, "dp_hash", 1, (Bucket((Output(1),), 1),) * 1000)])
        for _ in range(300):  # 12 MB: more than all buffers of the kernel
            shell.call(lambda: whole(DPID, large), timeout=60)
        real.send_signal(signal.SIGCONT)
        shell.wait_applied(90)
        assert shell.errors() == ()
        assert len(real.groups()) == 1
