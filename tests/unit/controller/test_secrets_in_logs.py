"""No secret is shown by what the controller writes, however much it is asked to log and however wrongly it is asked."""

from __future__ import annotations

import secrets
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.cli.test_cli_serve import ask, serving

SECRETS = ("api-token", "api-read-token", "agents-token", "worker-secret")


@pytest.mark.slow
def test_tokens_are_said_once_and_never_again(tmp_path: Path) -> None:
    data, options = tmp_path / "data", ("--api", "0.0.0.0:0", "--api-without-tls", "--log-level", "debug")
    with serving(data, *options) as (process, _):
        assert process.stdout is not None
        reported = [process.stdout.readline() for _ in range(2)]
    tokens = {name: (data / name).read_text().strip() for name in SECRETS}
    for name in SECRETS[:2]:
        assert sum(tokens[name] in line for line in reported) == 1, (
            "once, for the person who started it first"
        )
    for name in SECRETS[2:]:
        assert not any(tokens[name] in line for line in reported)
    (tmp_path / "errors").write_text("")
    wrong = secrets.token_hex(16)
    with serving(data, *options) as (process, first):
        for name in SECRETS[:2]:
            bearer = f"Bearer {tokens[name]}"
            assert ask(data, "/agents", Authorization=bearer).status_code == 200
            assert ask(data, "/experiments/7", Authorization=bearer).status_code == 404
            assert ask(data, "/modes?since=x", Authorization=bearer).status_code == 422
        assert ask(data, "/health", Authorization=f"Bearer {wrong}").status_code == 401
        assert ask(data, "/health", Cookie=f"capstan={wrong}").status_code == 401
        process.terminate()
        assert process.wait(60) == 0
        assert process.stdout is not None
        said = first + process.stdout.read() + (tmp_path / "errors").read_text()
    assert "DEBUG" in said, "it did log"
    key = (data / "lldp-key").read_bytes()
    for secret in (*tokens.values(), wrong, key.hex(), repr(key)):
        assert secret not in said


@pytest.mark.slow
def test_a_databases_password_is_not_logged(tmp_path: Path) -> None:
    """What a database that cannot be reached is called; with the driver that is installed."""
    password = secrets.token_hex(8)
    url = f"postgresql+psycopg://capstan:{password}@127.0.0.1:9/name?connect_timeout=1"
    argv = [sys.executable, "-m", "controller", "--data", str(tmp_path / "data"), "--database", url]
    ran = subprocess.run(
        [*argv, "--openflow", "127.0.0.1:0", "--api", "127.0.0.1:0", "--log-level", "debug"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        cwd=Path(__file__).resolve().parents[3],
    )
    assert ran.returncode == 1
    assert "postgresql+psycopg://capstan:***@127.0.0.1:9/name" in ran.stderr
    assert password not in ran.stdout + ran.stderr
