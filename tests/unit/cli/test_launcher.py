"""The launcher: what it sets up, and as whom it goes on."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from cli.app import COMMANDS
from protocol.version import VERSION
from tests.unit.setup.stand_in_rust import a_rust

ROOT = Path(__file__).resolve().parents[3]


def start(
    *arguments: str, program: Path = ROOT / "capstan", cwd: Path = ROOT
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program, *arguments], cwd=cwd, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )


@pytest.fixture(scope="module", autouse=True)
def everything_is_set_up() -> None:
    """Start the launcher once: tests started by hand may run in an environment that it has not made."""
    done = start("--version")
    assert done.returncode == 0, done.stderr


def test_runs_from_anywhere_by_a_link_and_reads_no_code_there(tmp_path: Path) -> None:
    place = tmp_path / "a place"
    (place / "cli").mkdir(parents=True)
    (place / "cli" / "__init__.py").touch()
    (place / "cli" / "__main__.py").write_text("raise SystemExit('this is not the command line')")
    link = place / "cap stan"
    link.symlink_to(ROOT / "capstan")
    done = start("--version", program=link, cwd=place)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"capstan, version {VERSION}\n", "")


def test_a_second_start_prints_nothing_of_its_own_and_passes_the_exit_code_on() -> None:
    done = start("no-such-command")
    assert done.returncode == 2
    assert done.stdout == ""
    assert "no-such-command" in done.stderr
    assert "installing" not in done.stderr


def test_works_without_a_path_to_the_system_programs() -> None:
    environment = {**os.environ, "PATH": "/usr/bin:/bin"}
    done = subprocess.run([ROOT / "capstan", "--version"], env=environment, capture_output=True, check=False)
    assert done.returncode == 0


@dataclass
class Unprivileged:
    """The launcher in a checkout that another user can read, with a `sudo` that notes its arguments and environment."""

    folder: Path

    def start(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.folder / "capstan", *arguments],
            env={"PATH": f"{self.folder}/bin:/usr/bin:/bin", "HOME": str(self.folder), **variables},
            user=65534 if os.geteuid() == 0 else None,
            extra_groups=[] if os.geteuid() == 0 else None,
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
        )

    def seen(self) -> list[tuple[list[str], dict[str, str]]]:
        """Return the arguments and the environment of each `sudo`, as /proc shows them."""
        found = []
        for number in range(len(list((self.folder / "seen").glob("*.argv")))):
            argv = (self.folder / "seen" / f"{number}.argv").read_bytes().decode().split("\0")[:-1]
            pairs = (self.folder / "seen" / f"{number}.env").read_bytes().decode().split("\0")[:-1]
            found.append(
                (
                    argv[argv.index(str(self.folder / "bin" / "sudo")) + 1 :],
                    dict(one.split("=", 1) for one in pairs),
                )
            )
        return found


SUDO = """#!/bin/sh
number=$(ls '{folder}/seen' | grep -c argv)
cat /proc/$$/environ > '{folder}'/seen/$number.env
cat /proc/$$/cmdline > '{folder}'/seen/$number.argv
{then}
"""


MININET = Path(".venv/lib/python3/site-packages/mininet")


@pytest.fixture
def unprivileged() -> Iterator[Unprivileged]:
    with tempfile.TemporaryDirectory(prefix="capstan-launcher-") as place:
        folder = Path(place)
        for name in ("capstan", "requirements.lock"):
            shutil.copy(ROOT / name, folder / name)
        shutil.copytree(ROOT / "setup", folder / "setup")
        for name in ("seen", "bin", ".venv/bin", str(MININET)):
            (folder / name).mkdir(parents=True)
        (folder / ".venv" / "bin" / "python").symlink_to("/usr/bin/python3")
        (folder / MININET / "net.py").touch()
        sums = subprocess.run(
            ["sha256sum", "setup/environment", "requirements.lock"],
            cwd=folder,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        stamp = f"{sums}{folder}  {Path('/usr/bin/python3').resolve()}\n"
        (folder / ".venv" / "capstan-requirements.lock.stamp").write_text(stamp)
        folder.chmod(0o755)
        (folder / "seen").chmod(0o777)
        one = Unprivileged(folder)
        a_sudo(one, "exit 0")
        yield one


def a_sudo(where: Unprivileged, then: str) -> None:
    sudo = where.folder / "bin" / "sudo"
    sudo.write_text(SUDO.format(folder=where.folder, then=then))
    sudo.chmod(0o755)


SECRETS = {"CAPSTAN_API_TOKEN": "the operate token", "https_proxy": "http://user:password@proxy.example:3128"}


def test_no_value_of_a_variable_becomes_an_argument_of_sudo(unprivileged: Unprivileged) -> None:
    done = unprivileged.start("exec", "h1", "--", "true", **SECRETS, CAPSTAN_DASK="", SOMETHING="else")
    assert (done.returncode, done.stderr) == (0, "")
    arguments, environment = unprivileged.seen()[-1]
    names = "https_proxy,CAPSTAN_API_TOKEN,CAPSTAN_DASK"
    assert arguments == [
        f"--preserve-env={names}",
        "--",
        f"{unprivileged.folder}/capstan",
        "exec",
        "h1",
        "--",
        "true",
    ]
    for arguments, _ in unprivileged.seen():
        assert not any(
            secret in argument for argument in arguments for secret in ("operate token", "password", "else")
        )
    assert {name: environment[name] for name in SECRETS} == SECRETS, (
        "sudo keeps them from its own environment"
    )


def test_with_nothing_to_keep_sudo_is_asked_for_nothing(unprivileged: Unprivileged) -> None:
    assert unprivileged.start("exec", "h1").returncode == 0
    assert [arguments for arguments, _ in unprivileged.seen()] == [
        ["--", f"{unprivileged.folder}/capstan", "exec", "h1"]
    ]


@pytest.mark.parametrize("arguments", [("scheme",), ("link", "l1-s1", "down"), ("capton",)])
def test_what_speaks_to_a_lab_becomes_root(unprivileged: Unprivileged, arguments: tuple[str, ...]) -> None:
    assert unprivileged.start(*arguments).returncode == 0
    assert [asked for asked, _ in unprivileged.seen()] == [
        ["--", f"{unprivileged.folder}/capstan", *arguments]
    ]


@pytest.mark.skipif(os.geteuid() != 0, reason="without root the checkout is this user's")
@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [(("exec", "h1"), 0, ""), (("show", "--help"), 1, "Mininet is not in the Python environment")],
)
def test_a_link_to_mininet_is_made_by_root_or_asked_of_the_owner(
    unprivileged: Unprivileged, arguments: tuple[str, ...], code: int, said: str
) -> None:
    (unprivileged.folder / MININET / "net.py").unlink()
    done = unprivileged.start(*arguments)
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert len(unprivileged.seen()) == 1 - code


def test_a_proxys_password_is_no_argument_where_packages_are_installed(unprivileged: Unprivileged) -> None:
    with (unprivileged.folder / "setup" / "packages").open("a") as table:
        table.write("no-such-package any no-such-program - for a test\n")
    done = unprivileged.start("--version", **SECRETS)
    assert "no-such-package" in done.stdout + done.stderr
    arguments, environment = unprivileged.seen()[0]
    assert arguments[:2] == ["--preserve-env=https_proxy", "--"]
    assert arguments[2].endswith("/setup/install-packages")
    assert not any("password" in argument for argument in arguments)
    assert environment["https_proxy"] == SECRETS["https_proxy"]


@pytest.mark.slow
def test_what_was_compiled_is_known_again_in_every_locale(unprivileged: Unprivileged) -> None:
    sort, seen = unprivileged.folder / "bin" / "sort", unprivileged.folder / "seen" / "locale"
    sort.write_text(f'#!/bin/sh\necho "${{LC_ALL-}}" >> {seen}\nexec /usr/bin/sort "$@"\n')
    sort.chmod(0o755)
    (unprivileged.folder / ".venv" / "capstan-native.stamp").write_text("of another locale\n")
    shutil.copytree(ROOT / "native", unprivileged.folder / "native", ignore=shutil.ignore_patterns("target"))
    unprivileged.start("model", LC_ALL="en_US.UTF-8")
    assert seen.read_text().splitlines()[0] == "C"


def test_pip_takes_nothing_in_a_users_home_for_installed() -> None:
    lines = "".join((ROOT / "setup" / name).read_text() for name in ("environment", "webui")).splitlines()
    installing = [line for line in lines if "-m pip install" in line]
    assert len(installing) == 2
    assert all('/bin/python" -I -m pip' in line for line in installing)


@pytest.mark.parametrize(
    "said",
    [
        "sudo: sorry, you are not allowed to set the following environment variables: CAPSTAN_API_TOKEN",
        "sudo: sorry, you are not allowed to preserve the environment",
    ],
)
def test_a_policy_that_keeps_no_variables_is_explained(unprivileged: Unprivileged, said: str) -> None:
    a_sudo(unprivileged, f"echo '{said}' >&2; exit 1")
    done = unprivileged.start("exec", "h1", **SECRETS)
    assert done.returncode == 1
    assert "SETENV" in done.stderr
    assert said in done.stderr
    assert "operate token" not in done.stderr
    assert len(unprivileged.seen()) == 1


def test_a_sudo_that_asks_for_a_password_is_asked_all_the_same(unprivileged: Unprivileged) -> None:
    a_sudo(unprivileged, "[ \"$1\" != -n ] || { echo 'sudo: a password is required' >&2; exit 1; }")
    done = unprivileged.start("exec", "h1", **SECRETS)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(unprivileged.seen()) == 2


@pytest.mark.slow
@pytest.mark.parametrize("command", ["serve", "model", "lab-check", "simulate", "evidence"])
def test_commands_that_import_the_kernels_ask_for_them(unprivileged: Unprivileged, command: str) -> None:
    a_rust(unprivileged.folder / ".cargo" / "bin", "1.99.0")
    assert asks_for_kernels(unprivileged, command)


def asks_for_kernels(unprivileged: Unprivileged, *arguments: str) -> bool:
    done = unprivileged.start(*arguments)
    return done.returncode == 1 and "the native kernels are missing or old" in done.stderr


WITHOUT_KERNELS = """
import importlib, sys
sys.modules["capstan_native"] = None
from cli.app import COMMANDS
for name, module in COMMANDS.items():
    try:
        importlib.import_module(module)
    except ImportError as error:
        assert "capstan_native" in str(error), error
        print(name)
"""


@pytest.mark.slow
def test_help_asks_for_the_kernels_where_a_command_loads_them_with_its_options(
    unprivileged: Unprivileged,
) -> None:
    loading = subprocess.run(
        [sys.executable, "-c", WITHOUT_KERNELS], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    a_rust(unprivileged.folder / ".cargo" / "bin", "1.99.0")
    asking = [name for name in COMMANDS if asks_for_kernels(unprivileged, name, "--help")]
    assert asking == loading


WITHOUT_MININET = """
import importlib, sys
sys.modules["mininet"] = None
from cli.app import COMMANDS
for name, module in COMMANDS.items():
    try:
        importlib.import_module(module)
    except ImportError as error:
        assert "mininet" in str(error), error
        print(name)
"""


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="without root the checkout is this user's")
def test_help_asks_for_mininet_where_a_command_loads_it_with_its_options(unprivileged: Unprivileged) -> None:
    loading = subprocess.run(
        [sys.executable, "-c", WITHOUT_MININET], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    (unprivileged.folder / MININET / "net.py").unlink()
    said = "Mininet is not in the Python environment"
    asking = {name for name in COMMANDS if said in unprivileged.start(name, "--help").stderr}
    assert {"run", "show"} <= set(loading) <= asking
    assert not asking & {"check", "schemes", "report", "model", "evidence", "lab-check", "simulate", "serve"}
