"""`capstan run`, `lab`, `exec` and `scheme` as a script uses them: real processes, their output and their end."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from capstan_client.client import Capstan
from capstan_client.controller import ControllerClient
from capstan_client.errors import ControllerError
from tests.lab.lab_processes import pid_of
from tests.waiting import PATIENCE_S, eventually

ROOT = Path(__file__).resolve().parents[2]
SPEC = """\
name: least
title: Two flows
fabric:
  topology: leaf-spine
  leaves: 2
  spines: 2
  hosts_per_leaf: 1
  link: {rate_mbps: 10, buffer_packets: 64}
  access: {rate_mbps: 20, buffer_packets: 64}
schemes: [ecmp, caps]
workload:
  flows:
    count: 6
    sizes: {kind: fixed, bytes: 20000}
    arrivals: {kind: poisson, rate_per_s: 10}
    pattern: left-to-right
  long_flows: {number: 1, pattern: left-to-right}
repeats: 1
seed: 1
"""


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "least.yaml"
    path.write_text(SPEC)
    return path


def test_json_on_standard_output_is_one_document_and_nothing_else(spec: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [ROOT / "capstan", "run", spec, "--results", tmp_path / "results", "--json", "-"],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    for scheme in ("ecmp", "caps"):
        assert document["schemes"][scheme]["short"]["n"] == 6
        assert document["schemes"][scheme]["short"]["afct_ms"] > 0
        assert document["schemes"][scheme]["long"]["goodput_mbps"] > 0
    assert document["cpu_limited"] in (True, False)
    assert document["seed"] == 1
    assert document["versions"]["capstan"]
    (kept,) = (tmp_path / "results").glob("least-*/result.json")
    assert json.loads(kept.read_text()) == document
    assert "6 of 6 flows finished" in done.stderr or "run 2 of 2" in done.stderr
    assert str(kept.parent) in done.stderr


def test_a_run_that_is_interrupted_ends_soon_with_an_exit_code_of_its_own(spec: Path, tmp_path: Path) -> None:
    errors = tmp_path / "errors"
    with open(errors, "w") as log:
        process = subprocess.Popen(
            [ROOT / "capstan", "run", spec, "--results", tmp_path / "results"],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )

    def runs() -> bool:
        assert process.poll() is None, errors.read_text()
        return "run 1 of 2" in errors.read_text()

    try:
        eventually(runs, errors.read_text)
    finally:
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=PATIENCE_S)
    assert said == ""
    assert "Traceback" not in errors.read_text()
    assert process.returncode == 130, errors.read_text()


class Held:
    """A process of the launcher that holds a fabric, once it has said that it is up."""

    def __init__(self, directory: Path, *arguments: str | Path) -> None:
        self.errors = directory / "errors"
        with open(self.errors, "w") as log:
            self.process = subprocess.Popen(
                [ROOT / "capstan", *arguments],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
            )

        def up() -> re.Match[str] | None:
            assert self.process.poll() is None, self.errors.read_text()
            return re.search(r"^lab (\w+) is up; API (\S+)", self.errors.read_text(), re.MULTILINE)

        try:
            self.lab, self.api = eventually(up, self.errors.read_text).groups()
        except BaseException:
            self.process.send_signal(signal.SIGINT)
            self.process.communicate()
            raise

    def end(self) -> str:
        """Send Ctrl-C; return what was on standard output."""
        self.process.send_signal(signal.SIGINT)
        said, _ = self.process.communicate(timeout=PATIENCE_S)
        assert self.process.returncode == 0, self.errors.read_text()
        assert "Traceback" not in self.errors.read_text()
        return said


def capstan(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [ROOT / "capstan", *arguments], capture_output=True, text=True, check=False, timeout=120
    )


def test_a_lab_is_held_used_and_taken_down(spec: Path, tmp_path: Path) -> None:
    held = Held(tmp_path, "lab", spec, "--scheme", "caps")
    try:
        done = capstan("exec", "--lab", held.lab, "h1", "--", "ping", "-c", "1", "-W", "50", "h2")
        assert done.returncode == 0, done.stderr
        assert " 0% packet loss" in done.stdout
        done = capstan("scheme", "--lab", held.lab, "rps")
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith("rps is in force on all switches and agents after ")
        for arguments, code, words in (
            (("scheme", "--lab", held.lab, "rsp"), 2, "did you mean 'rps'?"),
            (("exec", "--lab", held.lab, "h9", "--", "true"), 1, "no host 'h9'; there are h1, h2"),
            (("exec", "--lab", "nosuch", "h1", "--", "true"), 1, "nosuch"),
            (("exec", "--lab", held.lab, "h1", "--", "no-such-program"), 127, "no-such-program"),
            (("exec", "--lab", held.lab, "h1", "--", "sh", "-c", "exit 7"), 7, ""),
        ):
            done = capstan(*arguments)
            assert done.returncode == code, done.stderr
            assert words in done.stderr
        # An experiment begun by the API runs on the fabric that is held, and ends with results.
        with Capstan(held.api) as client:
            begun = client.submit(spec=spec, name="begun", schemes=["ecmp"])
            begun.wait()
            short = [flow for flow in begun.flows() if flow["traffic_class"] == "short"]
            assert [flow["state"] for flow in short] == ["finished"] * 6
            assert {switch["name"] for switch in client.fabric()["switches"]} == {"l1", "l2", "s1", "s2"}
            assert [one["name"] for one in client.experiments("finished")] == ["begun"]
        with ControllerClient(held.api) as controller:
            eventually(lambda: controller.scheme()["base"] == "rps", "the scheme that was in force before")
    finally:
        assert held.end() == ""


def test_a_kept_fabric_is_there_after_its_run(spec: Path, tmp_path: Path) -> None:
    held = Held(tmp_path, "run", spec, "--results", tmp_path / "results", "--scheme", "ecmp", "--keep")
    try:
        done = capstan("exec", "--lab", held.lab, "h2", "--", "ping", "-c", "1", "-W", "50", "h1")
        assert done.returncode == 0, done.stderr
    finally:
        assert "Completion time of short flows" in held.end()


def test_a_held_lab_says_what_was_killed_and_is_back(spec: Path, tmp_path: Path) -> None:
    held = Held(tmp_path, "lab", spec, "--scheme", "caps")
    try:
        with ControllerClient(held.api) as client:
            for words, part in (
                ("host_agent --host h1", "agent h1"),
                ("serve --lab", "controller"),
                ("controller.api.front", "the API's HTTP process"),
                (f"ovs-vswitchd unix:/run/capstan/{held.lab}/s1/", "ovs-vswitchd of s1"),
            ):
                os.kill(pid_of(held.lab, words), signal.SIGKILL)
                said = f"{part} ended (signal 9) and was started again after "
                if part != "the API's HTTP process":  # the controller's own: its log and events have it
                    eventually(lambda said=said: said in held.errors.read_text(), held.errors.read_text)

                def is_event(part: str = part) -> bool:
                    try:
                        happened, _ = client.events()
                    except ControllerError:
                        return False
                    return any((one["kind"], one.get("part")) == ("part-restarted", part) for one in happened)

                eventually(is_event, f"an event about {part}")
        done = capstan("exec", "--lab", held.lab, "h1", "--", "ping", "-c", "3", "-W", "50", "h2")
        assert done.returncode == 0, done.stderr
        assert held.process.poll() is None
    finally:
        held.end()
