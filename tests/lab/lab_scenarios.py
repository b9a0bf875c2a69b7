"""What befalls labs in a world of their own (`tests.lab.lab_world`): each scenario is run as a program inside it."""

from __future__ import annotations

import os
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.lab.lab_world import ROOT, expect_group, expect_same, look, others, output, run_in_world
from tests.lab.openflow_rig import answers
from tests.waiting import PATIENCE_S, eventually
from topologies.fabric_spec import FabricSpec
from topologies.lab import Lab
from topologies.links import Link
from topologies.registry import RUN_ROOT, clean, end_lab, find_lab, labs

LAUNCHER = """
import signal
from topologies.fabric_spec import FabricSpec
from topologies.lab import Lab
from topologies.links import Link
print("go", flush=True)
lab = Lab(FabricSpec(leaves=2, spines=2, hosts_per_leaf=1, link=Link(10), access=Link(50)), "doomed")
lab.start()
lab.popen("h1", ["sleep", "1000"])
lab.popen("h1", ["env", "-i", "setsid", "-f", "sleep", "1001"]).wait()
lab.popen(None, ["sleep", "1002"])
print("up", flush=True)
"""
WAITING_CLIENT = """
import os, signal
lab.switch("s1").database_server.send_signal(signal.SIGSTOP)
print("asks", flush=True)
lab.switch("s1").vsctl("show", timeout_s=600)
"""


def run_scenario(name: str, *args: str) -> None:
    """Run one scenario of this file in a world of its own; fail with what it said."""
    done = run_in_world(sys.executable, __file__, name, *args)
    assert done.returncode == 0, done.stdout + done.stderr


def start_launcher(then: str = "signal.pause()") -> tuple[subprocess.Popen[bytes], Callable[[str], None]]:
    """Start a process that starts a lab and does something then; return it and a way to wait for its next word."""
    # Without a buffer: a second word that waited in one would not be seen by select().
    process = subprocess.Popen([sys.executable, "-c", LAUNCHER + then], stdout=subprocess.PIPE, bufsize=0)
    assert process.stdout is not None
    pipe = process.stdout

    def wait_for(word: str) -> None:
        assert select.select([pipe], [], [], PATIENCE_S)[0], (
            f"the launcher did not say {word!r} in {PATIENCE_S:g} s"
        )
        assert pipe.readline().decode().strip() == word

    return process, wait_for


def start_stop() -> None:
    """Start and stop a lab, twice with the same id; assert that the world is as before."""
    before = look()
    for _ in range(2):
        spec = FabricSpec(leaves=2, spines=2, hosts_per_leaf=2, link=Link(10), access=Link(50))
        with Lab(spec, "here") as lab:
            during = look()
            assert len(during["networks"]) == len(before["networks"]) + 4 + 4 + 1
            assert "cap-here" in during["interfaces"]
            expect_group("here")
            assert during["sysctls"].items() >= before["sysctls"].items(), "a sysctl changed while it ran"
            assert os.path.exists("/run/capstan/here/l1/conf.db")
            lab.popen("h1", ["sleep", "1000"])
        expect_same(before, 0, "after stop()")


def end_by(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """Send a signal, and wait until the process has ended. SIGINT is sent again as a user would press Ctrl-C again.

    Python prints and drops a KeyboardInterrupt that is raised in a callback of a weak reference: it goes on then.
    """
    for _ in range(3 if number == signal.SIGINT else 0):
        process.send_signal(number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(20)
            return
    process.send_signal(number)
    process.wait(60)


def interrupt(signal_name: str) -> None:
    """Send a signal at several moments of the start, and once the lab is up: nothing is left to clean up."""
    number = signal.Signals[signal_name]
    before = look()
    process, wait_for = start_launcher()
    wait_for("go")
    began = time.monotonic()
    wait_for("up")
    took = time.monotonic() - began
    during = look()
    assert len(during["networks"]) == len(before["networks"]) + 2 + 4 + 1
    end_by(process, number)
    expect_same(before, 60, f"{signal_name} when the lab was up")
    for part in (0, 0.05, 0.15, 0.3, 0.45, 0.6, 0.75, 0.9, 1.0):
        process, wait_for = start_launcher()
        wait_for("go")
        time.sleep(part * took)
        end_by(process, number)
        expect_same(before, 60, f"{signal_name} after {part:.0%} of the start")


def killed_while_a_client_waits() -> None:
    """Assert that a client of a switch whose database does not answer ends with the lab, not when its patience does."""
    before = look()
    process, wait_for = start_launcher(WAITING_CLIENT)
    for word in ("go", "up", "asks"):
        wait_for(word)
    deadline = time.monotonic() + 60
    while "ovs-vsctl" not in output("ps", "-eo", "comm"):
        assert time.monotonic() < deadline, "no ovs-vsctl waits"
    process.kill()
    process.wait(60)
    expect_same(before, 60, "SIGKILL while ovs-vsctl waited")


def launcher_and_reaper_killed() -> None:
    """Kill launcher and reaper; assert that clean() finds and ends what survives."""
    before = look()
    process, wait_for = start_launcher()
    wait_for("go")
    wait_for("up")
    assert find_lab().lab_id == "doomed"
    expect_group("doomed")
    assert clean() == [], "a running lab is left alone"
    during = look()
    (reaper,) = [pid for pid, words in during["processes"].items() if "topologies.reaper" in words]
    os.kill(int(reaper), signal.SIGKILL)
    process.kill()
    process.wait(60)
    time.sleep(0.3)
    assert (RUN_ROOT / "doomed").exists()
    assert [record.alive for record in labs()] == [False]
    ended = clean()
    assert [entry.lab_id for entry in ended] == ["doomed"]
    assert ended[0].directories == ("/run/capstan/doomed",)
    expect_same(before, 60, "after clean()")
    assert clean() == []


def foreign_things_stay() -> None:
    """Assert that another program's switch, namespace, interface and processes outlive a dead lab's cleaning."""
    place = Path("/run/foreign-place")
    place.mkdir()
    env = {**os.environ, "OVS_RUNDIR": str(place), "OVS_LOGDIR": str(place), "OVS_DBDIR": str(place)}
    subprocess.run(["ip", "netns", "add", "foreign"], check=True)
    subprocess.run(
        ["ip", "link", "add", "name", "cap-other", "type", "veth", "peer", "name", "l1-eth1"], check=True
    )
    schema = "/usr/share/openvswitch/vswitch.ovsschema"
    subprocess.run(["ovsdb-tool", "create", str(place / "conf.db"), schema], check=True)
    server = ["ovsdb-server", str(place / "conf.db"), f"--remote=punix:{place}/db.sock", "-vconsole:off"]
    daemon = ["ovs-vswitchd", f"unix:{place}/db.sock", "-vconsole:off", "--disable-system"]
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    switch = [subprocess.Popen(server, env=env, **quiet)]
    eventually(lambda: answers(place / "db.sock"))
    switch.append(subprocess.Popen(daemon, env=env, **quiet))
    bridge = ["ovs-vsctl", f"--db=unix:{place}/db.sock", "--timeout=60", "add-br", "l1"]
    subprocess.run([*bridge, "--", "set", "bridge", "l1", "datapath_type=netdev"], check=True)
    programs = [
        subprocess.Popen(["sleep", "1001"], env={**os.environ, "CAPSTAN_LAB": "someoneelse"}),
        subprocess.Popen(["ip", "netns", "exec", "foreign", "sleep", "1002"]),
        subprocess.Popen(["bash", "-c", "sleep 1003; true", "mininet:h1"]),
    ]
    Path("/run/capstan/notes").mkdir(parents=True)
    for number in (1001, 1002, 1003):
        eventually(lambda number=number: f"sleep {number} " in others()[0].values())
    before = eventually(
        lambda: now if (now := look()) == look() else None, "a world in which nothing changes"
    )
    process, wait_for = start_launcher()
    wait_for("go")
    wait_for("up")
    process.kill()
    process.wait(60)
    expect_same(before, 60, "after the reaper")

    clean()
    expect_same(before, 0, "after clean()")
    assert all(process.poll() is None for process in (*switch, *programs))
    for process in (*switch, *programs):
        process.kill()


def a_named_namespace_stays() -> None:
    """Assert that of a namespace that a program of a lab's has entered, that program alone ends with the lab."""
    subprocess.run(["ip", "netns", "add", "named"], check=True)
    inside = ["ip", "netns", "exec", "named"]
    own = subprocess.Popen([*inside, "sleep", "1005"])
    marked = subprocess.Popen([*inside, "env", "CAPSTAN_LAB=passing", "sleep", "1006"])
    for number in (1005, 1006):
        eventually(lambda number=number: f"sleep {number} " in others()[0].values())
    end_lab("passing", None)
    assert marked.wait(60) == -signal.SIGKILL
    assert own.poll() is None
    own.kill()


STAND_IN = """#!/bin/sh
case "$*" in "-n true") exec {program} "$@" ;; esac
{act}
"""


def stand_in(name: str, act: str) -> dict[str, str]:
    """Put a program of that name before the real one on PATH; return the environment with that PATH.

    act: what it does in the shell's words. It makes a namespace for whom only tries, as the real mnexec does.
    """
    folder = Path("/run/stand-ins")
    folder.mkdir(exist_ok=True)
    program = folder / name
    program.write_text(STAND_IN.format(program=shutil.which(name), act=act))
    program.chmod(0o755)
    return {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}


HUNG = "echo >>/run/stand-ins/asked; exec sleep 1004"
HUNG_S = 15.0
"""How long a lab here waits for a program: long beside what one that answers takes while eight labs start at once."""
HUNG_LAUNCHER = """
from topologies import namespaces, ovs, shells
namespaces.COMMAND_S, ovs.START_TIMEOUT, shells.SHELL_S = {limit}, {limit}, {limit}
from topologies.fabric_spec import FabricSpec
from topologies.lab import Lab
from topologies.links import Link
spec = FabricSpec(leaves=2, spines=2, hosts_per_leaf=1, link=Link(10), access=Link(50))
try:
    Lab(spec, "doomed").start()
except RuntimeError as error:
    print(type(error).__name__, error)
"""


LATE_LAUNCHER = (
    """
import pathlib, threading
from topologies import lab, nodes
over = threading.Event()
end, batch = lab.end_lab, nodes.run_batch
def end_lab(*arguments):
    ended = end(*arguments)
    over.set()
    return ended
def run_batch(program, lines):
    if program == "tc":
        pathlib.Path("/run/stand-ins/asked").touch()
        over.wait()
    batch(program, lines)
lab.end_lab, lab.netem_present, nodes.run_batch = end_lab, lambda: False, run_batch
"""
    + HUNG_LAUNCHER
)
"""A machine so busy that workers ask `tc` only when a lab that was interrupted has ended its processes."""


def a_program_that(act: str, name: str, expected: str) -> None:
    """Assert that the start of a lab leaves nothing, and its error names the program or the node that waited for it."""
    Path("/run/stand-ins").mkdir()
    env = stand_in(name, HUNG if act == "hangs" else act)
    before = look()
    limit = HUNG_S if act == "hangs" else 100.0
    done = subprocess.run(
        [sys.executable, "-c", HUNG_LAUNCHER.format(limit=limit)],
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    assert re.search(expected, done.stdout), done.stdout + done.stderr
    Path("/run/stand-ins/asked").unlink(missing_ok=True)
    expect_same(before, 60, f"after {name} {act}")


def interrupted_before_it_asks_for_tc() -> None:
    """Send Ctrl-C before workers ask a `tc` that does not answer; assert that the start ends, and nothing is left."""
    interrupted_while_waiting_for("tc", LATE_LAUNCHER)


def interrupted_while_waiting_for(name: str, launcher: str = HUNG_LAUNCHER) -> None:
    """Send Ctrl-C while a program does not answer; assert that the start ends at once, and nothing is left."""
    folder = Path("/run/stand-ins")
    folder.mkdir()
    env = stand_in(name, HUNG)
    before = look()
    process = subprocess.Popen(
        [sys.executable, "-c", launcher.format(limit=1000)],
        env=env,
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    eventually(lambda: (folder / "asked").exists(), f"{name} is asked")
    process.send_signal(signal.SIGINT)
    process.wait(60)
    (folder / "asked").unlink()
    expect_same(before, 60, f"SIGINT while {name} did not answer")


def doctor_leaves_nothing() -> None:
    """Assert that none of the interfaces, filters and tables that doctor's probes make is there afterwards."""
    before = look()
    done = subprocess.run([ROOT / "capstan", "doctor"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    expect_same(before, 10, "after doctor")


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
