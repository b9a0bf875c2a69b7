"""What a command needs of the machine before it starts."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from cli.console import fail, progress


def is_root() -> bool:
    """Return whether we are root; Windows has none."""
    return hasattr(os, "geteuid") and os.geteuid() == 0


def need_root(command: str) -> None:
    """End with a clear error unless we are root."""
    if not is_root():
        fail(
            f"'{command}' makes network namespaces and switches, so it needs root: sudo ./capstan {command} ..."
        )


def lab_obstacle() -> str | None:
    """Return why a process that we start can have no lab; None: it has root, or a sudo that asks for no password."""
    if is_root():
        return None
    try:
        exit_code = subprocess.run(["sudo", "-n", "true"], capture_output=True, check=False).returncode
    except OSError:
        return "labs need root, and there is no sudo"
    return "labs need root, and sudo asks for a password" if exit_code else None


def need_lab(command: str) -> None:
    """End with a clear error unless a lab can be built here: root, programs, /dev/net/tun and namespaces."""
    need_root(command)
    from topologies.machine import TUN_ADVICE, TUN_DEVICE, missing_programs, privilege_problem  # Linux's

    if missing := missing_programs():
        packages = " ".join(sorted({*missing.values()}))
        fail(f"'{command}' needs programs that are not installed: apt-get install {packages}")
    if not os.path.exists(TUN_DEVICE):
        fail(f"'{command}' needs {TUN_DEVICE}: {TUN_ADVICE}")
    if problem := privilege_problem():
        fail(f"'{command}' cannot build a lab: {problem}; ./capstan doctor says more")


def need_all_of_a_lab(command: str, results: Path) -> None:
    """Examine the machine as `doctor` does, print what is wrong, and end with an error if no lab can be built."""
    need_root(command)
    from doctor.judgement import judge, lines
    from doctor.probes import examine

    report = judge(examine(results, everything=False)).of(("lab", "results"))
    for line in lines(report.wrong):
        progress.print(line, markup=False, soft_wrap=True)
    if not report.lab:
        fail(f"'{command}' cannot build a lab on this machine (above); ./capstan doctor says more")


@contextmanager
def results_for_caller(directory: Path, pattern: str) -> Iterator[None]:
    """Give the caller of sudo what is made within: *directory*, and there database, logs and results by *pattern*."""
    made = [path for path in (*reversed(directory.absolute().parents), directory) if not path.exists()]
    try:
        yield
    finally:
        ours = [directory / "logs", *directory.glob("capstan.db*"), *directory.glob(pattern)]
        give_to_caller(*made, *ours)


def give_to_caller(*paths: Path) -> None:
    """Give what we made at these paths, and below, to the caller of sudo. Others' files stay theirs."""
    user, group = os.environ.get("SUDO_UID", ""), os.environ.get("SUDO_GID", "")
    if not (is_root() and user.isdecimal() and group.isdecimal()):
        return
    for path in paths:
        for entry in (path, *(path.rglob("*") if path.is_dir() and not path.is_symlink() else ())):
            with suppress(FileNotFoundError):
                if entry.lstat().st_uid == 0:
                    os.chown(entry, int(user), int(group), follow_symlinks=False)


@contextmanager
def new_file_for_caller(file: str | Path | None) -> Iterator[None]:
    """Give a file that is made within to the caller of sudo; what was there before, as /dev/null, stays whose it is.

    None, "-": there is none.
    """
    made = None if file is None or str(file) == "-" or os.path.lexists(file) else Path(file)
    yield
    if made is not None:
        give_to_caller(made)
