"""Commands that lack what they need: root, a token, an address. What works without, and what the others say."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from cli.commands.lab import lab_client
from cli.privileges import lab_obstacle, new_file_for_caller
from tests.unit.cli.command_line import ENVIRONMENT, InProcess
from tests.waiting import PATIENCE_S
from topologies import registry


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"--controller": "tcp:here"}, "'tcp:here' is neither unix:PATH nor tls:HOST:PORT"),
        ({"--underlay-ip": "10.0.1"}, "agent 'h1': Expected 4 octets in '10.0.1'"),
        ({"--overlay": "nowhere"}, "'nowhere' does not appear to be"),
        ({"--token-file": "/no/such/token"}, "token file /no/such/token: No such file or directory"),
        ({"--underlay-mtu": "1000"}, "IPv6 needs 1280 B"),
        ({"--underlay-mtu": "65536"}, "more than an IPv4 packet has"),
        ({"--underlay-ip": "192.0.2.77"}, "cannot open the underlay's sockets on 192.0.2.77"),
        ({"--controller": "tls:127.0.0.1:6654", "--ca": "/no/ca.pem", "--underlay-ip": "192.0.2.77"}, "192.0.2.77"),
    ],
)  # fmt: skip
def test_an_agent_that_cannot_start_says_why(
    change: dict[str, str], words: str, tmp_path: Path, capstan_says: InProcess
) -> None:
    (tmp_path / "token").write_text("a token for this test\n")
    options = {
        "--host": "h1", "--interface": "lo", "--underlay-ip": "10.0.1.1", "--overlay": "10.128.1.1/9",
        "--controller": "unix:/run/none", "--token-file": str(tmp_path / "token"), **change,
    }  # fmt: skip
    done = capstan_says("agent", *(word for option in options.items() for word in option))
    assert done.returncode == 1
    assert words in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_an_empty_token_file_is_not_taken_for_a_token(tmp_path: Path, capstan_says: InProcess) -> None:
    (tmp_path / "token").write_text("\n")
    done = capstan_says(
        *("agent", "--host", "h1", "--interface", "lo", "--underlay-ip", "10.0.1.1"),
        *("--overlay", "10.128.1.1/9", "--controller", "unix:/x", "--token-file", str(tmp_path / "token")),
    )
    assert done.returncode == 1
    assert "is empty: copy the controller's agents-token" in done.stderr


AS_ORDINARY_USER = """
import importlib, json, os, sys
from cli import app
for module in {*app.COMMANDS.values(), "topologies.registry", "topologies.exec", "capstan_client.controller"}:
    importlib.import_module(module)
if os.geteuid() == 0:
    os.setgroups([])
    os.setresuid(65534, 65534, 65534)
for arguments in json.loads(sys.argv[1]):
    if os.fork() == 0:
        sys.argv = ["capstan", *arguments]
        app.main()
        sys.exit()
    print(os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
"""


def without_root(asked: list[list[str]]) -> subprocess.CompletedProcess[str]:
    """Run each of these commands as an ordinary user; its exit code is a line of the output."""
    return subprocess.run(
        [sys.executable, "-P", "-c", AS_ORDINARY_USER, json.dumps(asked)],
        env=ENVIRONMENT | {"COLUMNS": "300"},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )


@pytest.mark.slow
def test_without_root_there_is_a_line_that_says_so() -> None:
    """As an ordinary person: this process gives its rights away once everything is loaded."""
    asked = [
        ["demo"], ["run", "small"], ["lab", "small"], ["bench"],
        ["clean"], ["scheme", "caps"], ["exec", "h1", "ls"],
    ]  # fmt: skip
    done = without_root(asked)
    assert done.stdout.split() == ["1"] * len(asked), done.stderr
    lines = done.stderr.splitlines()
    for line, arguments in zip(lines, asked, strict=True):
        assert re.match(rf"capstan: '{arguments[0]}' .*needs root: sudo ./capstan {arguments[0]} ", line)


@pytest.mark.slow
def test_a_worker_without_root_says_that_it_takes_simulations_only() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nothing listens there
        api = f"http://127.0.0.1:{taken.getsockname()[1]}"
        asked = [["work", "--api", api, "--patience-s", "1"], ["work", "--api", api, "--labs-only"]]
        done = without_root(asked)
    assert done.stdout.split() == ["1", "1"]
    says, refused, needs = done.stderr.splitlines()
    assert says == "labs need root: this worker takes simulations only"
    assert api in refused
    assert needs.startswith("capstan: 'work' makes network namespaces and switches, so it needs root")


@pytest.mark.parametrize(
    ("sudo", "words"),
    [(None, "there is no sudo"), ("exit 1", "sudo asks for a password"), ("exit 0", None)],
)
def test_without_root_or_a_sudo_that_asks_nothing_there_are_no_labs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sudo: str | None, words: str | None
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 65534)
    monkeypatch.setenv("PATH", str(tmp_path))
    if sudo is not None:
        (tmp_path / "sudo").write_text(f"#!/bin/sh\n{sudo}\n")
        (tmp_path / "sudo").chmod(0o755)
    obstacle = lab_obstacle()
    assert (obstacle is None) if words is None else (obstacle is not None and words in obstacle)


def test_only_a_file_that_is_new_is_given_to_who_called_sudo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Path] = []
    monkeypatch.setattr("cli.privileges.give_to_caller", lambda *paths: given.extend(paths))
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    old.write_text("{}")
    for file in (old, new):
        with new_file_for_caller(str(file)):
            file.write_text("{}")
    for nothing in ("-", None):
        with new_file_for_caller(nothing):
            pass
    assert given == [new]


@pytest.mark.slow
def test_a_simulation_needs_no_root() -> None:
    with tempfile.TemporaryDirectory() as place:  # which others may enter, unlike tmp_path
        os.chmod(place, 0o777)
        trace = Path(place) / "trace.csv"
        trace.write_text("start_ns,src,dst,bytes\n0,0,20,100000\n5,1,21,2000\n")
        trace.chmod(0o644)
        of_spec = ["simulate", "small", "--scheme", "ecmp", "--results", f"{place}/results"]
        both = [["simulate", "--trace-file", str(trace)], of_spec]
        done = subprocess.run(
            [sys.executable, "-P", "-c", AS_ORDINARY_USER, json.dumps(both)],
            env=ENVIRONMENT,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )
    assert done.stdout.split()[-1] == "0", done.stderr
    assert "2 flows, 144 hosts" in done.stdout
    assert "Completion time of short flows" in done.stdout


def test_a_lab_without_a_controller_of_its_own_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one that is still starting, and one of `show --controller`, which the lab's container is."""
    monkeypatch.setattr(registry, "RUN_ROOT", tmp_path / "capstan")
    lab_id = registry.register(registry.new_lab_id()).lab_id
    with pytest.raises(registry.LabError, match=f"lab {lab_id} has no controller of its own; if it is still"):
        lab_client(lab_id)
