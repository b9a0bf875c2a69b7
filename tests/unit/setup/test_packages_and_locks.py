"""What the launcher installs: the table of packages and the lock files."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PIN = re.compile(r"^([A-Za-z0-9._-]+)==(\S+)(?: ; (.+?))? \\$", re.MULTILINE)


def rows() -> list[list[str]]:
    lines = (ROOT / "setup" / "packages").read_text().splitlines()
    return [line.split(maxsplit=4) for line in lines if line and not line.startswith("#")]


def test_every_package_says_for_whom_how_it_is_known_and_why() -> None:
    assert len({row[0] for row in rows()}) == len(rows())
    for package, for_whom, probes, service, why in rows():
        assert re.fullmatch(r"[a-z0-9.+|-]+", package)
        assert for_whom in {"any", "spec", "host", "lab", "build", "mark", "test"}
        assert all(re.fullmatch(r"(/|module:|rust:)?[\w./*-]+", probe) for probe in probes.split(","))
        assert service == "-" or re.fullmatch(r"[a-z0-9-]+", service)
        assert why


def test_python_of_the_set_up_imports_nothing_from_the_directory_it_is_started_in() -> None:
    started = []
    for script in ("capstan", "setup/environment", "setup/native", "setup/webui"):
        text = (ROOT / script).read_text()
        started += re.findall(r"(?:log_to|exec|!|\$\() *\S*python3?\"? (-\w+)", text)
    assert len(started) >= 5
    assert {flag for flag in started if flag not in ("-I", "-P")} == set()


def test_mininet_is_there_for_a_python_without_distutils() -> None:
    """From 3.12 on only setuptools has it: `.venv` has that, the system's Python need not."""
    (probes,) = (row[2] for row in rows() if row[0] == "mininet")
    modules = [probe.removeprefix("module:") for probe in probes.split(",") if probe.startswith("module:")]
    code = f"import sys; sys.modules['distutils'] = None; import {', '.join(modules)}"
    done = subprocess.run(["/usr/bin/python3", "-I", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def pins(lock: str) -> dict[tuple[str, str | None], str]:
    text = (ROOT / lock).read_text()
    return {
        (name.lower().replace("_", "-"), marker or None): version
        for name, version, marker in PIN.findall(text)
    }


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-dev.lock"])
def test_a_lock_pins_everything_by_hash_and_names_no_index(lock: str) -> None:
    text = (ROOT / lock).read_text()
    blocks = re.split(r"\n(?=[A-Za-z])", text[text.index("\n", text.rindex("uv pip compile")) + 1 :])
    assert len(blocks) == len(pins(lock)) > 20
    assert all("--hash=sha256:" in block for block in blocks)
    assert "://" not in text
    assert "--index" not in text


def test_both_locks_agree_and_hold_what_is_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    few, all_of_them = pins("requirements.lock"), pins("requirements-dev.lock")
    for (name, marker), version in few.items():
        if marker != "sys_platform == 'never'":
            # A package of the tests may need it where ours do not: its marker is wider then.
            versions = {other for (same, _), other in all_of_them.items() if same == name}
            assert all_of_them.get((name, marker), version) == version
            assert version in versions
    for wanted, lock in (
        (project["dependencies"], few),
        (project["optional-dependencies"]["dev"], all_of_them),
    ):
        names = {re.split(r"[<>=\[; ]", text)[0].lower() for text in wanted}
        assert names <= {name for name, _ in lock}


def test_the_oldest_rust_is_the_same_wherever_it_is_said() -> None:
    workspace = tomllib.loads((ROOT / "native" / "Cargo.toml").read_text())["workspace"]
    (probe,) = [row[2] for row in rows() if row[2].startswith("rust:")]
    assert probe == f"rust:{workspace['package']['rust-version']}"
