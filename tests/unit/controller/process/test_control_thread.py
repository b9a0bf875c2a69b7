"""A thread that the controller needs dies: health fails, and the process ends and says why."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from capstan_client.controller import ControllerClient
from capstan_client.errors import ControllerError
from controller.process import control_thread
from controller.process.control_thread import ControlThread, ControlThreadDiedError
from tests.unit.api_world import World, api_world
from tests.waiting import eventually

ROOT = Path(__file__).resolve().parents[4]

DYING_CONTROLLER = """
import sys
from pathlib import Path
from cli.commands.serve import serve_command
from controller.shell.shell import OpenFlowShell

tick = OpenFlowShell._tick

def fail_when_asked(shell):
    if Path(sys.argv[1]).exists():
        raise KeyError(0xbad)
    tick(shell)

OpenFlowShell._tick = fail_when_asked
serve_command(["--data", sys.argv[2], "--openflow", "127.0.0.1:0", "--api", "127.0.0.1:0", "--no-experiments"])
"""


def _die() -> None:
    raise KeyError("dpid 0xbad")


@pytest.fixture
def mortal() -> Iterator[None]:
    """Let a thread of this test die, and forget it afterwards: what comes after must not see it."""
    yield
    control_thread.forget_deaths()
    control_thread.on_first_death(None)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with api_world(tmp_path) as made:
        yield made


@pytest.mark.usefixtures("mortal")
def test_only_the_first_death_is_kept_and_notified_once() -> None:
    notified: list[str] = []
    control_thread.on_first_death(lambda: notified.append("died"))
    done = ControlThread(lambda: None, "sound")
    done.start()
    done.join()
    control_thread.check_control_threads()
    for name in ("first", "second"):
        thread = ControlThread(_die, name)
        thread.start()
        thread.join()
    assert notified == ["died"]
    with pytest.raises(ControlThreadDiedError, match=r"'first' died of KeyError\('dpid 0xbad'\)"):
        control_thread.check_control_threads()


@pytest.mark.usefixtures("mortal")
def test_who_asks_after_the_death_is_notified_too() -> None:
    thread = ControlThread(_die, "openflow")
    thread.start()
    thread.join()
    notified: list[str] = []
    control_thread.on_first_death(lambda: notified.append("died"))
    assert notified == ["died"]


@pytest.mark.usefixtures("mortal")
def test_health_fails_as_soon_as_a_control_thread_has_died(world: World) -> None:
    world.get("/health")
    thread = ControlThread(_die, "openflow")
    thread.start()
    thread.join()
    assert "'openflow' died" in world.get("/health", 503)["detail"]


@pytest.mark.slow
def test_the_process_ends_with_the_reason(tmp_path: Path) -> None:
    trigger, data = tmp_path / "trigger", tmp_path / "data"
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", DYING_CONTROLLER, str(trigger), str(data)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert "capstan controller: API" in process.stdout.readline()
        url = json.loads((data / "endpoints.json").read_text())["api"]
        client = ControllerClient(url)
        assert client.health()
        trigger.touch()

        def ended() -> bool:
            """Ask for health, for the thread looks only when it is asked; return True if the process has ended."""
            with contextlib.suppress(ControllerError):
                client.health()
            return process.poll() is not None

        eventually(ended, "the end of the process")
        _, errors = process.communicate(timeout=60)
        assert process.returncode not in (0, None)
        assert "the thread 'openflow' died of KeyError(2989)" in errors.splitlines()[-1]
        assert not (data / "endpoints.json").exists()
    finally:
        process.kill()
        process.wait()
