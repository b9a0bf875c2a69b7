"""`capstan serve` as a process: what it says, keeps and leaves, and what keeps it from starting."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner

from capstan_client.client import Capstan
from capstan_client.http import Connection
from cli.commands.serve import serve_command
from controller.app import Settings
from host_agent.channel import Connected
from protocol.control import Challenge, Refused, Report, Welcome
from tests.unit.agents_channel import RawAgent, agent_config, hello, running_channel
from tests.unit.own_ca import make_ca

ROOT = Path(__file__).resolve().parents[3]


@contextmanager
def serving(data: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Yield the process of a controller that has said that it is ready, and what it said."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "cli", "serve", "--data", str(data), "--openflow", "127.0.0.1:0", *options],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=open(data.parent / "errors", "a"),  # noqa: SIM115 (the process closes it)
        text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, (data.parent / "errors").read_text()
        yield process, line
    finally:
        process.kill()
        process.wait()


def ask(data: Path, path: str, **headers: str) -> httpx.Response:
    url = json.loads((data / "endpoints.json").read_text())["api"].replace("0.0.0.0", "127.0.0.1")
    return Connection(url, None, 60).send("GET", path, headers=headers)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def test_it_serves_until_it_is_asked_to_end(tmp_path: Path, number: signal.Signals) -> None:
    data = tmp_path / "data"
    with serving(data, "--api", "127.0.0.1:0") as (process, said):
        endpoints = json.loads((data / "endpoints.json").read_text())
        assert endpoints["api"] in said
        assert f"127.0.0.1:{endpoints['openflow']['port']}" in said
        assert f"unix:{data}/agents.sock" in said
        assert ask(data, "/health").json()["reasons"] == ["no switch is connected"]
        RawAgent(_unix(data / "agents.sock")).close()
        process.send_signal(number)
        assert process.wait(60) == 0
    assert not (data / "endpoints.json").exists()
    assert not (data / "agents.sock").exists()
    assert (data / "capstan.db").exists()
    assert not [path.name for path in data.iterdir() if path.stat().st_mode & 0o077], "others may read these"
    for secret in ("agents-token", "lldp-key"):
        assert (data / secret).stat().st_mode & 0o077 == 0
    assert "Traceback" not in (tmp_path / "errors").read_text()


def _unix(path: Path) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(str(path))
    return connection


@pytest.mark.slow
def test_after_kill_9_it_goes_on_with_what_it_had(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with serving(data, "--api", "127.0.0.1:0", "--scheme", "rps") as (process, _):
        token = (data / "agents-token").read_text()
        process.kill()
        process.wait()
    assert (data / "agents.sock").exists(), "what a killed controller leaves"
    with serving(data, "--api", "127.0.0.1:0"):
        assert ask(data, "/scheme").status_code == 200
        assert (data / "agents-token").read_text() == token


@pytest.mark.slow
def test_a_database_with_its_password_comes_from_a_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAPSTAN_DATABASE", f"sqlite:///{tmp_path / 'elsewhere.db'}")
    data = tmp_path / "data"
    with serving(data, "--api", "127.0.0.1:0"):
        assert ask(data, "/health").status_code == 200
    assert (tmp_path / "elsewhere.db").exists()
    assert not (data / "capstan.db").exists()


@pytest.mark.slow
def test_other_addresses_need_the_token(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with serving(data, "--api", "0.0.0.0:0", "--api-without-tls"):
        assert ask(data, "/health").status_code == 401
        token = (data / "api-token").read_text().strip()
        assert (data / "api-token").stat().st_mode & 0o077 == 0
        assert ask(data, "/health", Authorization=f"Bearer {token}").status_code == 200


@pytest.mark.slow
def test_agents_by_tls_and_an_api_on_ipv6(tmp_path: Path) -> None:
    data, ca = tmp_path / "data", make_ca(tmp_path / "ca")
    tls = ("--agents-tls", "127.0.0.1:0", "--certificate", str(ca.certificate), "--key", str(ca.key))
    with serving(data, "--api", "[::1]:0", *tls) as (_, said):
        endpoints: dict[str, Any] = json.loads((data / "endpoints.json").read_text())
        assert endpoints["api"].startswith("http://[::1]:")
        assert endpoints["agents"]["socket"] is None
        assert f"agents at tls:{endpoints['agents']['tcp']}" in said
        assert ask(data, "/health").status_code == 200


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("--openflow", "switches cannot be listened for at 127.0.0.1:{port}: Address already in use; choose"),
        ("--api", "the API cannot be listened for at 127.0.0.1:{port}: Address already in use; choose"),
        ("--agents-tls", "agents cannot be listened for at tls:127.0.0.1:{port}: "),
    ],
)
def test_a_port_that_is_taken_is_named(
    tmp_path: Path, option: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ca = make_ca(tmp_path / "ca")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        options = {"--data": str(tmp_path / "data"), "--openflow": "127.0.0.1:0", "--api": "127.0.0.1:0"}
        options |= {"--certificate": str(ca.certificate), "--key": str(ca.key), option: f"127.0.0.1:{port}"}
        with pytest.raises(SystemExit) as ended:
            serve_command([word for pair in options.items() for word in pair])
    assert ended.value.code == 1
    assert words.format(port=port) in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("agents-token", "short", "holds 5 characters, fewer than 16: remove it and a new one is made"),
        ("agents-token", b"\xff" * 40, "cannot be read"),
        ("lldp-key", b"", "holds 0 B, not 16: remove it and a new one is made"),
        ("capstan.db", "no database at all " * 100, "file is not a database"),
        ("agents.sock", "precious", "is there and is not a socket"),
    ],
)
def test_files_that_cannot_be_used_are_named(
    tmp_path: Path, name: str, text: str | bytes, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    path.chmod(0o600)
    before = path.read_bytes()
    with pytest.raises(SystemExit) as ended:
        serve_command(["--data", str(tmp_path), "--openflow", "127.0.0.1:0", "--api", "127.0.0.1:0"])
    assert ended.value.code == 1
    said = capsys.readouterr().err
    assert words in said
    assert str(path) in said
    assert path.read_bytes() == before


@pytest.mark.slow
def test_hosts_that_are_named_have_a_token_of_their_own(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with serving(data, "--api", "127.0.0.1:0", "--agent-host", "h1", "--agent-host", "h2"):
        tokens = {path.name: path.read_text().strip() for path in (data / "agent-tokens").iterdir()}
        assert set(tokens) == {"h1", "h2"}
        assert {path.stat().st_mode & 0o777 for path in (data / "agent-tokens").iterdir()} == {0o600}
        config = agent_config(f"unix:{data / 'agents.sock'}", 1, token=tokens["h1"])
        with running_channel(config, 1) as agent:
            agent.wait(Connected)
        shared = RawAgent.unix(data / "agents.sock")
        shared.send(hello(2, shared.next(Challenge).nonce, (data / "agents-token").read_text().strip()))
        assert isinstance(shared.all()[-1], Refused)
    process = subprocess.run(
        [sys.executable, "-m", "controller", "--data", str(data), "--agent-host", "../h1"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 1
    assert "not a host name" in process.stderr


def test_a_token_that_everybody_can_read_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "agents-token").write_text("long enough for anybody\n")
    (tmp_path / "agents-token").chmod(0o644)
    with pytest.raises(SystemExit):
        serve_command(["--data", str(tmp_path), "--openflow", "127.0.0.1:0", "--api", "127.0.0.1:0"])
    assert "can be read by all users: chmod 0600 it" in capsys.readouterr().err


@pytest.mark.slow
def test_what_is_being_answered_at_the_end_is_answered(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with serving(data, "--api", "127.0.0.1:0") as (process, _):
        deaf = RawAgent.unix(data / "agents.sock")
        token = (data / "agents-token").read_text().strip()
        deaf.send(hello(1, deaf.next(Challenge).nonce, token=token))
        deaf.next(Welcome)
        url = json.loads((data / "endpoints.json").read_text())["api"]

        def report() -> httpx.Response:
            return Connection(url, None, 60).send("POST", "/flows/report", body={"timeout_s": 0.7})

        with ThreadPoolExecutor(1) as pool:
            answer = pool.submit(report)
            deaf.next(Report)
            process.send_signal(signal.SIGTERM)
            assert answer.result().json() == {"hosts": {}, "missing": ["h1"]}
        assert process.wait(60) == 0
        deaf.close()
    assert "Traceback" not in (tmp_path / "errors").read_text()


def test_switches_are_listened_for_on_loopback_only_unless_it_is_said_otherwise() -> None:
    assert Settings(data=Path("data")).openflow_address == "127.0.0.1"
    [option] = [one for one in serve_command.params if one.name == "openflow"]
    assert option.default == "127.0.0.1:6653"


def test_a_file_of_switches_that_cannot_be_used_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "switches"
    file.write_text("00000000000000g1\n")
    done = CliRunner().invoke(
        serve_command,
        ["--data", str(tmp_path / "data"), "--openflow", "127.0.0.1:0", "--switches", str(file)],
    )
    assert done.exit_code == 1
    assert f"{file}:1: '00000000000000g1' is not a datapath id" in done.output


def test_names_of_certificates_need_tls(tmp_path: Path) -> None:
    file = tmp_path / "switches"
    file.write_text("0000000000000001 l1\n")
    done = CliRunner().invoke(
        serve_command,
        ["--data", str(tmp_path / "data"), "--openflow", "127.0.0.1:0", "--switches", str(file)],
    )
    assert done.exit_code == 1
    assert (
        f"{file} names certificates, which switches show by TLS only: give --switch-authority" in done.output
    )


@pytest.mark.slow
def test_switches_by_tls_are_said_to_be_so(tmp_path: Path) -> None:
    data, ca = tmp_path / "data", make_ca(tmp_path / "ca")
    tls = (
        "--switch-authority",
        str(ca.authority),
        "--certificate",
        str(ca.certificate),
        "--key",
        str(ca.key),
    )
    with serving(data, "--api", "127.0.0.1:0", *tls) as (_, said):
        openflow = json.loads((data / "endpoints.json").read_text())["openflow"]
        assert openflow["tls"] is True
        assert f"switches at ssl:127.0.0.1:{openflow['port']}" in said


@pytest.mark.slow
def test_the_api_by_tls(tmp_path: Path) -> None:
    data, ca = tmp_path / "data", make_ca(tmp_path / "ca")
    tls = ("--api-certificate", str(ca.certificate), "--api-key", str(ca.key))
    with serving(data, "--api", "0.0.0.0:0", *tls) as (_, said):
        url = json.loads((data / "endpoints.json").read_text())["api"]
        assert url.startswith("https://0.0.0.0:")
        assert url in said
        token = (data / "api-token").read_text().strip()
        client = Capstan(url.replace("0.0.0.0", "127.0.0.1"), token, authority=ca.authority)
        assert client.health()["switches"] == 0
        answer = Connection(url.replace("0.0.0.0", "127.0.0.1"), token, 60, ca.authority).ask(
            "POST", "/session"
        )
        assert "; Secure" in answer.headers["Set-Cookie"]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--api", "0.0.0.0:0"], "an API at 0.0.0.0 needs TLS"),
        (["--api", "[::]:0"], "an API at :: needs TLS"),
        (["--api-key", "key.pem"], "belong together"),
        (["--api-certificate", "none.pem", "--api-key", "none.pem"], "cannot be used: No such file"),
    ],
)
def test_an_api_that_others_reach_needs_a_certificate(options: list[str], why: str) -> None:
    result = CliRunner().invoke(serve_command, options)
    assert result.exit_code == 2
    assert why in " ".join(result.output.split())
