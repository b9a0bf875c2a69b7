"""The development container fits what it is for: what a lab may, the images' base, and files that are there."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[3]
HERE = ROOT / ".devcontainer"
DOCKERS_OWN = {"DAC_OVERRIDE", "NET_RAW"}
"""Capabilities that Docker gives every container, of those that a lab needs."""

FOR_DOCKERS_PROFILE = {"SYS_PTRACE"}
"""For pidfd_getfd, which the seccomp profile of the lab's container allows without it."""


def document() -> Any:
    """Return devcontainer.json, which may have comments (JSON with Comments)."""
    lines = (HERE / "devcontainer.json").read_text().splitlines()
    return json.loads("\n".join(line for line in lines if not line.strip().startswith("//")))


def lab_service() -> Any:
    return yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]["lab"]


def arguments(option: str) -> set[str]:
    """Return the values that `docker run` gets for an option."""
    pairs = (argument.partition("=") for argument in document()["runArgs"])
    return {value for name, _, value in pairs if name == option}


def packages() -> set[str]:
    """Return the Debian packages of the container's Dockerfile."""
    text = (HERE / "Dockerfile").read_text().replace("\\\n", " ")
    [words] = re.findall(r"apt-get install (.*?)&&", text)
    return {word for word in words.split() if not word.startswith("-")}


def test_it_may_what_the_labs_container_may_and_read_sockets_of_processes() -> None:
    service = lab_service()
    assert arguments("--cap-add") | DOCKERS_OWN == FOR_DOCKERS_PROFILE | set(service["cap_add"])
    assert arguments("--device") == set(service["devices"])
    assert "--privileged" not in document()["runArgs"]


def test_it_is_made_of_what_the_images_are_made_of() -> None:
    [base] = re.findall("^FROM (.*)$", (HERE / "Dockerfile").read_text(), re.MULTILINE)
    images = (ROOT / "docker" / "Dockerfile").read_text()
    assert f"ARG BASE={base}\n" in images
    assert document()["build"] == {"dockerfile": "Dockerfile"}


def test_the_launcher_finds_there_what_it_does_not_install() -> None:
    # What setup/packages cannot install before there is Python and a way to fetch it with certificates.
    assert {"python3", "python3-venv", "ca-certificates"} <= packages()


def test_its_commands_are_programs_of_this_checkout() -> None:
    for name in ("onCreateCommand", "postStartCommand"):
        program = ROOT / shlex.split(document()[name])[0]
        assert os.access(program, os.X_OK), name


def test_jupyter_has_what_notebooks_import_and_starts_as_root() -> None:
    script = (HERE / "set-up").read_text()
    [words] = re.findall(r"pip install -q (.*)$", script, re.MULTILINE)
    installed = {Path(word).name for word in words.split()}
    own = {"capstan_client", "matplotlib", "pandas"}
    imported: set[str] = set()
    for notebook in (ROOT / "docs" / "notebooks").glob("*.ipynb"):
        for cell in json.loads(notebook.read_text())["cells"]:
            if cell["cell_type"] == "code":
                imported |= set(re.findall(r"^(?:from|import) (\w+)", "".join(cell["source"]), re.MULTILINE))
    assert imported & own
    assert imported & own <= installed
    [settings] = re.findall(r"echo '(\{.*\})' >\.jupyter/etc/jupyter/jupyter_server_config\.json", script)
    assert json.loads(settings)["ServerApp"]["allow_root"] is True
    assert document()["remoteUser"] == "root"
    assert set(document()["forwardPorts"]) == {int(port) for port in document()["portsAttributes"]}


def test_git_trusts_the_checkout_once_however_often_it_is_set_up(tmp_path: Path) -> None:
    lines = (HERE / "set-up").read_text().splitlines()
    [trust] = [line for line in lines if line.startswith("git config")]
    place = tmp_path / "work space"
    place.mkdir()
    for _ in range(2):
        subprocess.run(
            ["bash", "-ec", trust], cwd=place, env=os.environ | {"HOME": str(tmp_path)}, check=True
        )
    asked = ["git", "config", "--global", "--get-all", "safe.directory"]
    said = subprocess.check_output(asked, env=os.environ | {"HOME": str(tmp_path)}, text=True)
    assert said == f"{place}\n"


def test_sysctls_of_network_namespaces_can_be_written_in_it_as_in_the_labs_container() -> None:
    assert document()["postStartCommand"] == "docker/sysctls"
    assert "\n/opt/capstan/docker/sysctls\n" in (ROOT / "docker" / "lab").read_text()


def test_the_recipe_that_builds_it_runs_commands_and_tests_that_are_there() -> None:
    recipe = yaml.safe_load((ROOT / ".github" / "workflows" / "devcontainer.yml").read_text())
    [step] = [
        step
        for step in recipe["jobs"]["devcontainer"]["steps"]
        if step["uses"].startswith("devcontainers/ci@")
    ]
    first, *lines = step["with"]["runCmd"].splitlines()
    assert first == "set -e"  # the shell's exit code would be the last command's
    assert [shlex.split(line)[:2] for line in lines] == [
        ["./capstan", name] for name in ("lab-check", "simulate", "test")
    ]
    files = [word for line in lines for word in shlex.split(line) if word.endswith(".py")]
    assert len(files) == 2
    assert all((ROOT / file).is_file() for file in files)
