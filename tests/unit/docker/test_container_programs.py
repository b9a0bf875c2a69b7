"""Programs of the containers, without an engine: the check of health, the lab, and the start of the database."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from controller.api.front.limits import Tokens
from tests.unit.controller.api.served_api import PATIENT, serving
from tests.unit.postgresql import OWNER, program
from tests.waiting import PATIENCE_S, eventually

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    ("token", "said"),
    [("read", ""), (None, "the controller does not answer: HTTP Error 401: Unauthorized\n")],
    ids=["with its token", "without"],
)
def test_a_controller_that_asks_for_a_token_is_healthy(tmp_path: Path, token: str | None, said: str) -> None:
    if token is not None:
        (tmp_path / "api-read-token").write_text(f"{token}\n")
    with serving(PATIENT, tokens=Tokens("operate", "read")) as served:
        url = f"http://127.0.0.1:{served.front.port}/api/v1/health"
        ran = subprocess.run(
            [sys.executable, ROOT / "docker" / "health.py", "controller"],
            env=os.environ | {"CAPSTAN_HEALTH_URL": url, "CAPSTAN_DATA": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
    assert (ran.returncode, ran.stderr) == (1 if said else 0, said)


def start_lab(place: Path) -> subprocess.Popen[bytes]:
    """Start the lab's program in *place*, where what it shows fails at once and no controller answers."""
    for name in ("bin", "docker"):
        (place / name).mkdir()
    programs = {
        "bin/capstan": "exit 1",
        "bin/python": f"touch '{place}/asked'; exit 1",
        "bin/sleep": "exec /bin/sleep 0.05",
        "docker/sysctls": "",
    }
    for name, does in programs.items():
        (place / name).write_text(f"#!/bin/sh\n{does}\n")
        (place / name).chmod(0o755)
    (place / "endpoints.json").write_text("{}")
    text = (ROOT / "docker" / "lab").read_text()
    for there in ("/opt/capstan", "/var/lib/capstan"):
        text = text.replace(there, str(place))
    (place / "lab").write_text(text)
    return subprocess.Popen(
        ["bash", place / "lab"], env={"PATH": f"{place}/bin:/usr/bin:/bin"}, stderr=subprocess.DEVNULL
    )


@pytest.mark.parametrize("then", ["the controller starts again", "the container is stopped"])
def test_a_lab_whose_controller_has_died_waits_for_it(tmp_path: Path, then: str) -> None:
    lab = start_lab(tmp_path)
    try:
        eventually((tmp_path / "asked").exists, "it asks whether the controller answers")
        assert lab.poll() is None
        if then == "the container is stopped":
            lab.terminate()
        else:
            (tmp_path / "endpoints.new").write_text("{}")
            (tmp_path / "endpoints.new").replace(tmp_path / "endpoints.json")
        assert lab.wait(PATIENCE_S) == 1
    finally:
        lab.kill()
        lab.wait()


def test_a_controller_that_waits_for_its_database_ends_when_asked(tmp_path: Path) -> None:
    for name, does in (("python", f"touch '{tmp_path}/asked'; exit 1"), ("sleep", "exec /bin/sleep 0.5")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{does}\n")
        (tmp_path / name).chmod(0o755)
    # Process 1 of a namespace, as in its container.
    first = ["unshare", "--pid", "--fork", "--kill-child"]
    first += ["--user", "--map-root-user"] if os.geteuid() else []
    waiting = subprocess.Popen(
        [*first, "sh", ROOT / "docker" / "controller"],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", "CAPSTAN_PROFILES": "postgres"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        eventually(lambda: waiting.poll() is not None or (tmp_path / "asked").exists(), "it asks")
        if os.geteuid() and waiting.poll() is not None:
            pytest.skip("users may make no namespaces here")
        (child,) = Path(f"/proc/{waiting.pid}/task/{waiting.pid}/children").read_text().split()
        os.kill(int(child), signal.SIGTERM)
        assert waiting.wait(PATIENCE_S) == 143
    finally:
        waiting.kill()
        waiting.wait()


def test_a_controller_whose_database_does_not_come_says_after_how_long_and_why(tmp_path: Path) -> None:
    now = tmp_path / "now"
    now.write_text("1000")
    programs = {
        "python": "echo Traceback >&2; echo 'OperationalError: refused' >&2; echo 'Is it running?' >&2; exit 1",
        "date": f"cat '{now}'",
        "sleep": f"later=$(($(cat '{now}') + 30)); echo $later >'{now}'",
    }
    for name, does in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{does}\n")
        (tmp_path / name).chmod(0o755)
    ran = subprocess.run(
        ["sh", ROOT / "docker" / "controller"],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", "CAPSTAN_PROFILES": "postgres"},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert ran.returncode == 1
    assert ran.stderr.splitlines() == [
        "no database at /var/lib/capstan/postgres-run after 60 s: docker-compose logs postgres; the last try said:",
        "OperationalError: refused",
        "Is it running?",
    ]
    assert now.read_text() == "1060\n", "by the clock: a try takes its time, too"


@pytest.fixture
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield a directory with a path short enough for a socket, of the user that the server runs as."""
    directory = Path(subprocess.check_output(["mktemp", "-d", "/tmp/capstan-pg-XXXXXX"], text=True).strip())
    if os.geteuid() == 0:
        shutil.chown(directory, OWNER, OWNER)
    yield directory
    shutil.rmtree(directory)


def start_database(place: Path) -> subprocess.Popen[bytes]:
    who = {"user": OWNER, "group": OWNER, "extra_groups": []} if os.geteuid() == 0 else {}
    programs = Path(program("initdb")).parent
    return subprocess.Popen(
        [ROOT / "docker" / "postgres"],
        env={"PATH": f"{programs}:/usr/bin:/bin", "CAPSTAN_DATA": str(place)},
        cwd="/",
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        **who,  # type: ignore[call-overload]
    )


@pytest.mark.slow
def test_a_database_whose_making_was_cut_off_is_made_anew(place: Path) -> None:
    cut_off = start_database(place)
    eventually(lambda: list(place.glob("postgres*/PG_VERSION")), "it is being made")
    os.killpg(cut_off.pid, signal.SIGKILL)
    cut_off.wait()
    server = start_database(place)
    try:
        eventually(
            lambda: server.poll() is not None or (place / "postgres-run" / ".s.PGSQL.5432").exists(),
            "it is up",
        )
        assert server.poll() is None
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(PATIENCE_S)
    single = [program("postgres"), "--single", "-D", str(place / "postgres"), "capstan"]
    who = {"user": OWNER, "group": OWNER, "extra_groups": []} if os.geteuid() == 0 else {}
    asked = subprocess.run(
        single, input="SELECT 40 + 2;", capture_output=True, text=True, timeout=PATIENCE_S, cwd="/", **who
    )  # type: ignore[call-overload]
    assert '"42"' in asked.stdout, asked.stderr
