"""What os-ken's native threads get wrong, and that the shell does not: each defect beside its cover.

os-ken is run as it comes, against the same switches. A test that fails in its first half says that os-ken has mended
a defect; one that fails in its second half says that the shell has it.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from os_ken.base.app_manager import (
    Datapath,
)  # first: os_ken.controller.controller cannot be imported before it
from os_ken.lib import hub

from controller.openflow import connection
from controller.openflow.wanted import Bucket, FlowRule, Group, Match, Output
from tests.free_ports import free_port
from tests.lab.openflow_plane import ScriptedPlane, state, whole
from tests.lab.openflow_rig import switch
from tests.unit.running_shell import running_shell
from tests.waiting import eventually

ROOT = Path(__file__).parents[2]
DPID = 0x21


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
        self.looks = 0
        self.waits = False
        threading.Thread(target=self._read, daemon=True).start()
        eventually(lambda: self.waits, "os-ken's applications")

    def _read(self) -> None:
        for line in self.process.stdout:
            said = json.loads(line)
            if "state" in said:
                self.states.append(said["state"])
            else:
                self.threads, self.waits = said["threads"], said["waits"]
                self.looks += 1

    def look_anew(self) -> None:
        """Wait until threads were counted since this call."""
        looks = self.looks
        eventually(lambda: self.looks >= looks + 2)


@contextlib.contextmanager
def bare(port: int) -> Iterator[Bare]:
    running = Bare(port)
    try:
        yield running
    finally:
        running.process.kill()
        running.process.wait()


def test_os_ken_reports_a_lost_switch_only_when_it_is_back_and_leaks_threads() -> None:
    port = free_port()
    with bare(port) as running, switch(DPID, port) as real:
        eventually(lambda: running.states == ["main"], "the switch at os-ken")
        running.look_anew()
        with_one = running.threads
        real.kill()
        time.sleep(2.0)
        running.look_anew()
        assert "dead" not in running.states
        assert running.threads == with_one  # none has ended
        real.start()
        eventually(lambda: running.states.count("main") == 2, "the switch back at os-ken")
        eventually(lambda: running.threads >= with_one + 2, "two threads more")


def test_a_lost_switch_is_reported_at_once_and_leaks_nothing() -> None:
    plane = ScriptedPlane()
    with running_shell(plane, host="0.0.0.0") as shell, switch(DPID, shell.port) as real:
        eventually(lambda: len(plane.of("connected")) == 1, "the switch")
        threads, files = threading.active_count(), len(os.listdir("/proc/self/fd"))
        for times in range(1, 4):
            real.kill()
            eventually(lambda times=times: len(plane.of("disconnected")) == times, "the report")
            eventually(lambda: len(os.listdir("/proc/self/fd")) == files - 1, "its socket closed")
            real.start()
            eventually(lambda times=times: len(plane.of("connected")) == times + 1, "the switch")
        eventually(lambda: threading.active_count() == threads, "as many threads as before")
        eventually(lambda: len(os.listdir("/proc/self/fd")) == files, "as many files as before")


def test_os_ken_crashes_when_interrupted() -> None:
    with bare(free_port()) as running:
        running.process.send_signal(signal.SIGINT)
        said = "AttributeError: 'HubThread' object has no attribute 'kill'"
        assert any(said in line for line in running.process.stderr), "it ended without saying so"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_us_cleanly(number: signal.Signals) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "controller.shell", "--listen", "0.0.0.0:0"],
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
    with running_shell(plane, host="0.0.0.0") as shell, switch(DPID, shell.port) as real:
        eventually(lambda: plane.of("connected"), "the switch")
        shell.wait_applied(60)
        real.send_signal(signal.SIGSTOP)
        shell.call(lambda: whole(DPID, state([FlowRule(0, 1, Match(), (Output(1),))])))
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
    with running_shell(plane, host="0.0.0.0") as shell, switch(DPID, shell.port, 1) as real:
        eventually(lambda: plane.of("connected"), "the switch")
        real.send_signal(signal.SIGSTOP)
        large = state((), [Group(1, "dp_hash", 1, (Bucket((Output(1),), 1),) * 1000)])
        for _ in range(300):  # 12 MB: more than all buffers of the kernel
            shell.call(lambda: whole(DPID, large), timeout=60)
        real.send_signal(signal.SIGCONT)
        shell.wait_applied(120)
        assert shell.errors() == ()
        assert len(real.groups()) == 1
