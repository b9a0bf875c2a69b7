"""What set-up's shell does, a function of it at a time: environment, kernels, and whose all that is."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.setup.stand_in_rust import a_rust
from tests.waiting import eventually

ROOT = Path(__file__).resolve().parents[3]


def shell(lines: Iterable[str], **options: Any) -> subprocess.CompletedProcess[str]:
    """Run these lines, and return what came of it. options: of subprocess.run."""
    words = ["bash", "-c", "\n".join(lines)]
    return subprocess.run(words, capture_output=True, text=True, check=False, **options)


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


@pytest.mark.skipif(os.geteuid() != 0, reason="sudo makes root of a user")
@pytest.mark.parametrize(("owner", "is_found"), [(65534, True), (0, False)])
def test_the_rustup_of_who_calls_sudo_is_found_in_that_users_checkout_alone(
    tmp_path: Path, owner: int, is_found: bool
) -> None:
    old = a_rust(tmp_path / "bin", "1.84.0")
    good = a_rust(tmp_path / ".rustup" / "toolchains" / "stable" / "bin", "1.95.0")
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    os.chown(checkout, owner, owner)
    script = [
        "set -euo pipefail",
        f"source '{ROOT}/setup/native'; root={checkout}",
        f"getent() {{ echo user:x:$2:$2::{tmp_path}:/bin/sh; }}",
        "find_rust 1.85 || true; echo $rust",
    ]
    done = shell(script, env={"PATH": f"{old}:/usr/bin:/bin", "HOME": "/nonexistent", "SUDO_UID": "65534"})
    assert done.returncode == 0, done.stderr
    assert (done.stdout.strip() == str(good)) is is_found


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
    return shell(parts, env={"PATH": f"{rust}:/usr/bin:/bin", "HOME": str(place)})


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
        "set_up_packages() { :; }; mininet_is_here() { :; }; native_is_here() { :; }; page_is_here() { :; }",
        "environment_is_here() { false; }",
        f"set_up_environment() {{ mkdir -p $venv/lib; {ends}; }}",
        "set_up",
    ]
    done = shell(script)
    assert done.returncode == code, done.stderr
    made = [tmp_path / name for name in (".venv", ".venv/lib", ".setup", ".setup/log")]
    assert {path.stat().st_uid for path in made} == {owner}


def test_what_is_set_up_can_be_run_by_others_whatever_the_umask(tmp_path: Path) -> None:
    (tmp_path / "capstan").touch()
    script = [
        "set -euo pipefail; umask 077",
        f"root={tmp_path} venv={tmp_path}/.venv here={tmp_path}/capstan",
        f"source {ROOT}/setup/environment",
        "set_up_packages() { :; }; mininet_is_here() { :; }; native_is_here() { :; }; page_is_here() { :; }",
        "environment_is_here() { false; }",
        "set_up_environment() { mkdir $venv; }",
        "set_up; umask",
    ]
    done = shell(script)
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
    done = shell(script)
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        f"capstan: Python 3.11 or newer is needed; {old} is 3.10",
        "         Debian 12, Ubuntu 24.04 or newer have it",
    ]


A_PYTHON = """#!/bin/sh
case "$*" in
    *'import mininet'*) echo /of/the/system ;;
    *version_info*) echo 3.11 ;;
    *'-m venv'*) mkdir -p "$4/bin" "$4/lib/python3.11/site-packages" && ln -s /bin/true "$4/bin/python" ;;
esac
"""


def test_mininet_is_linked_where_the_set_up_has_installed_python_first(tmp_path: Path) -> None:
    """As on a machine with nothing installed."""
    python = tmp_path / "python3"
    (tmp_path / "package").write_text(A_PYTHON)
    (tmp_path / "package").chmod(0o755)
    (tmp_path / "capstan").touch()
    part = tmp_path / "environment"
    part.write_text((ROOT / "setup" / "environment").read_text().replace("/usr/bin/python3", str(python)))
    script = [
        "set -euo pipefail; set_up_key() { echo key; }",
        f"root={tmp_path} venv={tmp_path}/.venv here={tmp_path}/capstan lock=requirements.lock needs_root=",
        f"source {part}",
        "environment_is_here() { false; }; mininet_is_here() { false; }",
        "native_is_here() { :; }; page_is_here() { :; }",
        f"set_up_packages() {{ mv {tmp_path}/package {python}; }}",
        "set_up",
    ]
    done = shell(script)
    assert done.returncode == 0, done.stdout + done.stderr
    link = tmp_path / ".venv" / "lib" / "python3.11" / "site-packages" / "mininet"
    assert str(link.readlink()) == "/of/the/system"


def test_an_environment_that_was_cut_off_while_it_was_removed_is_made_anew(tmp_path: Path) -> None:
    python = tmp_path / "python3"
    python.write_text(A_PYTHON)
    python.chmod(0o755)
    environment = tmp_path / ".venv"
    environment.mkdir()
    (environment / "pyvenv.cfg").write_text("home = /usr/bin\ninclude-system-site-packages = true\n")
    (environment / "capstan-requirements.lock.stamp").write_text("of before\n")
    part = tmp_path / "environment"
    part.write_text((ROOT / "setup" / "environment").read_text().replace("/usr/bin/python3", str(python)))
    script = [
        "set -euo pipefail; set_up_key() { echo key; }",
        f"root={tmp_path} venv={environment} log=/dev/null needs_root= lock=requirements.lock here=capstan",
        f"source {part}",
    ]
    cut_off = 'command rm -f "$venv"/capstan-requirements.lock.stamp; exit 3'
    stand_ins = [
        f"find() {{ {cut_off}; }}",
        f'rm() {{ [[ $1 != -rf ]] || {{ {cut_off}; }}; command rm "$@"; }}',
    ]
    assert shell([*script, *stand_ins, "set_up_environment"]).returncode == 3
    done = shell([*script, "set_up_environment"])
    assert done.returncode == 0, done.stdout + done.stderr
    assert (environment / "lib" / "python3.11").is_dir()
    assert not (environment / "pyvenv.cfg").exists(), "it was emptied first"


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
    done = shell(script)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (environment / "of-the-tests").exists()
    assert (environment / "capstan-native.stamp").exists()


@pytest.mark.slow
def test_of_the_systems_packages_the_environment_sees_mininet_alone(tmp_path: Path) -> None:
    """Others stood in for packages of the lock, and their start-up code ran in each of our processes."""
    environment = tmp_path / ".venv"
    for name in ("setup", ".setup"):
        (tmp_path / name).mkdir()
    for name in ("setup/environment", "requirements.lock"):
        (tmp_path / name).touch()
    script = [
        "set -euo pipefail; groups='any spec'",
        f"root={tmp_path} venv={environment} log={tmp_path}/.setup/log needs_root= lock=requirements.lock here=capstan",
        *map(_function, ("set_up_key", "mininet_is_here")),
        f"source {ROOT}/setup/environment",
        "need_python; set_up_environment; ! mininet_is_here || exit 3; link_mininet; mininet_is_here",
        "sed -i s/false/true/ $venv/pyvenv.cfg; touch $venv/of-before",  # as it was made before
        "echo '#' >>$root/requirements.lock; set_up_environment; ! mininet_is_here || exit 4; link_mininet",
        "$venv/bin/python -c 'import mininet.log, sys; print(sys.path[1:], mininet.__file__)'",
    ]
    done = shell(script)
    assert done.returncode == 0, done.stdout + done.stderr
    seen = done.stdout.splitlines()[-1]
    assert "dist-packages" not in seen
    assert f"{environment}/lib/python3" in seen.split("]")[1]
    assert not (environment / "of-before").exists()


def test_a_link_to_mininet_is_found_whatever_letters_the_checkouts_path_has(tmp_path: Path) -> None:
    environment = tmp_path / "what [is] *this?" / ".venv"
    script = [f"groups='any spec' venv='{environment}'", _function("mininet_is_here"), "mininet_is_here"]
    assert shell(script).returncode == 1
    module = environment / "lib" / "python3.11" / "site-packages" / "mininet"
    module.mkdir(parents=True)
    (module / "net.py").touch()
    assert shell(script).returncode == 0


@pytest.mark.parametrize("sees_all", ["true", "false"])
def test_an_environment_of_another_program_is_neither_filled_nor_removed(
    tmp_path: Path, sees_all: str
) -> None:
    environment = tmp_path / ".venv"
    for name in (".venv", "setup"):
        (tmp_path / name).mkdir()
    (environment / "pyvenv.cfg").write_text(f"home = /usr/bin\ninclude-system-site-packages = {sees_all}\n")
    for name in ("setup/environment", "requirements.lock"):
        (tmp_path / name).touch()
    script = [
        "set -euo pipefail",
        f"root={tmp_path} venv={environment} log=/dev/null needs_root= lock=requirements.lock here=capstan",
        _function("set_up_key"),
        f"source {ROOT}/setup/environment",
        "set_up_environment",
    ]
    done = shell(script)
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
        done = shell(script, user=65534, extra_groups=[], cwd="/")
    assert done.returncode == 1, done.stderr
    assert f"sudo chown --recursive --reference='{place}' '{place}/.venv'" in done.stdout


def _function(name: str) -> str:
    """Return a function of the launcher's."""
    found = re.search(rf"^{name}\(\) \{{.*?^\}}", (ROOT / "capstan").read_text(), re.MULTILINE | re.DOTALL)
    assert found
    return found[0]
