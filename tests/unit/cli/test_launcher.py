"""The launcher: what it sets up, and as whom it goes on."""

from __future__ import annotations

import os
import re
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
from tests.waiting import eventually

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


@pytest.fixture
def unprivileged() -> Iterator[Unprivileged]:
    with tempfile.TemporaryDirectory(prefix="capstan-launcher-") as place:
        folder = Path(place)
        for name in ("capstan", "requirements.lock"):
            shutil.copy(ROOT / name, folder / name)
        shutil.copytree(ROOT / "setup", folder / "setup")
        for name in ("seen", "bin", ".venv/bin"):
            (folder / name).mkdir(parents=True)
        (folder / ".venv" / "bin" / "python").symlink_to("/usr/bin/python3")
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


def a_rust(folder: Path, version: str) -> Path:
    """Write programs that say to be of that version, and return their folder."""
    folder.mkdir(parents=True)
    for name in ("cargo", "rustc"):
        (folder / name).write_text(f"#!/bin/sh\necho {name} {version} '(0123 2025-01-01)'\n")
        (folder / name).chmod(0o755)
    return folder


@pytest.mark.parametrize(
    ("on_path", "at_home", "found"),
    [
        ("1.85.0", None, "path"),
        ("1.100.0", "1.95.0", "path"),
        ("1.84.1", "1.95.0", "home"),
        (None, "1.85.1", "home"),
    ],
)
def test_a_rust_that_is_new_enough_is_found(
    tmp_path: Path, on_path: str | None, at_home: str | None, found: str
) -> None:
    path = a_rust(tmp_path / "bin", on_path) if on_path else tmp_path
    home = a_rust(tmp_path / ".cargo" / "bin", at_home) if at_home else None
    done = subprocess.run(
        ["bash", "-c", f"source '{ROOT}/setup/native'; find_rust 1.85; echo $rust"],
        env={"PATH": f"{path}:/usr/bin:/bin", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == str({"path": path, "home": home}[found])


def compiling(place: Path, cargo: str, then: str) -> subprocess.CompletedProcess[str]:
    """Run set-up's shell in *place*: it begins to compile by a cargo that does this, then something."""
    rust = a_rust(place / "bin", "1.95.0")
    (rust / "cargo").write_text(f'#!/bin/sh\n[ "$1" = build ] || exec echo cargo 1.95.0\n{cargo}\n')
    (place / "native").mkdir()
    (place / "native" / "Cargo.toml").write_text('rust-version = "1.85"\n')
    for name in (".setup", ".venv"):
        (place / name).mkdir()
    parts = [
        "set -euo pipefail",
        f"root={place} venv={place}/.venv log={place}/.setup/log needs_root= here=capstan",
        *(f"source {ROOT}/setup/{part}" for part in ("environment", "native")),
        "native_key() { echo key; }",
        "begin_compiling_native",
        then,
    ]
    return subprocess.run(
        ["bash", "-c", "\n".join(parts)],
        env={"PATH": f"{rust}:/usr/bin:/bin", "HOME": str(place)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_set_up_that_ends_early_ends_what_compiles_beside_it(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    done = compiling(
        tmp_path, f"echo $$ >{begun}; exec sleep 600", f"until [[ -s {begun} ]]; do :; done; exit 3"
    )
    assert done.returncode == 3, done.stderr
    process = Path("/proc", begun.read_text().strip(), "cmdline")
    eventually(lambda: not process.exists() or not process.read_bytes())


def test_kernels_that_cannot_be_compiled_end_the_set_up_with_the_reason(tmp_path: Path) -> None:
    done = compiling(tmp_path, "echo no linker here; exit 1", "set_up_native; echo unreached")
    assert done.returncode == 1
    assert "no linker here" in done.stdout
    assert "could not be compiled (above)" in done.stdout
    assert "unreached" not in done.stdout


def test_kernels_that_do_not_load_are_not_taken_for_those_of_before(tmp_path: Path) -> None:
    built = tmp_path / ".setup" / "native" / "target" / "release"
    python = '#!/bin/sh\ncase "$*" in *sysconfig*) echo "${0%/bin/python}" ;; *) exit 1 ;; esac\n'
    (tmp_path / "python").write_text(python)
    (tmp_path / "python").chmod(0o755)
    then = (
        "mkdir $venv/bin; mv $root/python $venv/bin; echo before >$venv/capstan-native.stamp; set_up_native"
    )
    done = compiling(tmp_path, f"mkdir -p {built}; echo new >{built}/libcapstan_native.so", then)
    assert done.returncode == 1, done.stderr
    assert "do not load (above)" in done.stdout
    assert (tmp_path / ".venv" / "capstan_native.abi3.so").read_text() == "new\n"
    assert not (tmp_path / ".venv" / "capstan-native.stamp").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="root alone gives files to others")
@pytest.mark.parametrize(
    ("ends", "code"),
    [("give_up 'no network'", 1), ("kill -TERM $$; sleep 600", 143), ("mkdir $venv/whole", 0)],
)
def test_what_root_makes_in_a_users_checkout_is_that_users_however_the_set_up_ends(
    tmp_path: Path, ends: str, code: int
) -> None:
    owner = 65534
    os.chown(tmp_path, owner, owner)
    (tmp_path / "capstan").touch()
    script = [
        "set -euo pipefail",
        f"root={tmp_path} venv={tmp_path}/.venv here={tmp_path}/capstan",
        f"source {ROOT}/setup/environment",
        "set_up_packages() { :; }; native_is_here() { :; }; page_is_here() { :; }",
        "environment_is_here() { false; }",
        f"set_up_environment() {{ mkdir -p $venv/lib; {ends}; }}",
        "set_up",
    ]
    done = subprocess.run(["bash", "-c", "\n".join(script)], capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    made = [tmp_path / name for name in (".venv", ".venv/lib", ".setup", ".setup/log")]
    assert {path.stat().st_uid for path in made} == {owner}


def test_what_is_set_up_can_be_run_by_others_whatever_the_umask(tmp_path: Path) -> None:
    (tmp_path / "capstan").touch()
    script = [
        "set -euo pipefail; umask 077",
        f"root={tmp_path} venv={tmp_path}/.venv here={tmp_path}/capstan",
        f"source {ROOT}/setup/environment",
        "set_up_packages() { :; }; native_is_here() { :; }; page_is_here() { :; }",
        "environment_is_here() { false; }",
        "set_up_environment() { mkdir $venv; }",
        "set_up; umask",
    ]
    done = subprocess.run(["bash", "-c", "\n".join(script)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "0077\n"), done.stderr
    assert (tmp_path / ".venv").stat().st_mode & 0o777 == 0o755


def test_a_python_that_is_too_old_is_named_before_anything_is_installed_for_it(tmp_path: Path) -> None:
    old = tmp_path / "python3"
    old.write_text("#!/bin/sh\necho 3.10\n")
    old.chmod(0o755)
    (tmp_path / "capstan").touch()
    part = tmp_path / "environment"
    part.write_text((ROOT / "setup" / "environment").read_text().replace("/usr/bin/python3", str(old)))
    script = [
        "set -euo pipefail",
        f"root={tmp_path} venv={tmp_path}/.venv here={tmp_path}/capstan",
        f"source {part}",
        "environment_is_here() { false; }; native_is_here() { :; }",
        "set_up_packages() { echo installing; }",
        "set_up",
    ]
    done = subprocess.run(["bash", "-c", "\n".join(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        f"capstan: Python 3.11 or newer is needed; {old} is 3.10",
        "         Debian 12, Ubuntu 24.04 or newer have it",
    ]


@pytest.mark.slow
def test_a_changed_lock_keeps_what_else_the_environment_holds(tmp_path: Path) -> None:
    environment = tmp_path / ".venv"
    for name in ("setup", ".setup"):
        (tmp_path / name).mkdir()
    (tmp_path / "setup" / "environment").write_text("")
    script = [
        "set -euo pipefail",
        f"root={tmp_path} venv={environment} log={tmp_path}/.setup/log needs_root= lock=requirements.lock here=capstan",
        _function("set_up_key"),
        f"source {ROOT}/setup/environment",
        "echo >$root/requirements.lock; set_up_environment",
        "echo kernels >$venv/capstan-native.stamp; echo kept >$venv/of-the-tests",
        "echo '#' >>$root/requirements.lock; set_up_environment",
    ]
    done = subprocess.run(["bash", "-c", "\n".join(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (environment / "of-the-tests").exists()
    assert (environment / "capstan-native.stamp").exists()


def test_an_environment_of_another_program_is_neither_filled_nor_removed(tmp_path: Path) -> None:
    environment = tmp_path / ".venv"
    for name in (".venv", "setup"):
        (tmp_path / name).mkdir()
    (environment / "pyvenv.cfg").write_text("home = /usr/bin\ninclude-system-site-packages = false\n")
    for name in ("setup/environment", "requirements.lock"):
        (tmp_path / name).touch()
    script = [
        "set -euo pipefail",
        f"root={tmp_path} venv={environment} log=/dev/null needs_root= lock=requirements.lock here=capstan",
        _function("set_up_key"),
        f"source {ROOT}/setup/environment",
        "set_up_environment",
    ]
    done = subprocess.run(["bash", "-c", "\n".join(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "is not Capstan's" in done.stdout
    assert [path.name for path in environment.iterdir()] == ["pyvenv.cfg"]


READ_ONLY = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" || exit 77; exec bash -c "$2"'


def test_a_checkout_that_root_may_not_write_either_is_named(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "sudo").touch(mode=0o755)
    script = [
        "set -euo pipefail",
        f"root={tmp_path} venv={tmp_path}/.venv log=/dev/null needs_root=yes lock=requirements.lock here=capstan",
        *(f"source {ROOT}/setup/{part}" for part in ("environment", "native")),
        "(set_up_environment) || (set_up_native)",
    ]
    alone = ["unshare", "--mount", *(["--user", "--map-root-user"] if os.geteuid() else [])]
    done = subprocess.run(
        [*alone, "sh", "-c", READ_ONLY, "machine", str(tmp_path), "\n".join(script)],
        env={"PATH": f"{tmp_path}/bin:/usr/bin:/bin"},
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    if os.geteuid() and ("unshare" in done.stderr or done.returncode == 77):
        pytest.skip("users may make no namespaces here")
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stdout.count("may not write") == 2


@pytest.mark.skipif(os.geteuid() != 0, reason="root alone makes files of several users")
@pytest.mark.parametrize("part", ["environment", "native"])
def test_what_a_killed_set_up_of_roots_left_is_named_to_the_owner_of_the_checkout(part: str) -> None:
    with tempfile.TemporaryDirectory(prefix="capstan-launcher-") as place:
        os.chown(place, 65534, 65534)
        shutil.copytree(ROOT / "setup", Path(place, "setup"))
        Path(place, ".venv").mkdir()
        script = [
            "set -euo pipefail",
            f"root={place} venv={place}/.venv log=/dev/null needs_root= lock=requirements.lock here=capstan",
            "source $root/setup/environment; source $root/setup/native",
            f"set_up_{part}",
        ]
        done = subprocess.run(
            ["bash", "-c", "\n".join(script)],
            user=65534,
            extra_groups=[],
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 1, done.stderr
    assert f"sudo chown --recursive --reference='{place}' '{place}/.venv'" in done.stdout


def _function(name: str) -> str:
    """Return a function of the launcher's."""
    found = re.search(rf"^{name}\(\) \{{.*?^\}}", (ROOT / "capstan").read_text(), re.MULTILINE | re.DOTALL)
    assert found
    return found[0]
