"""Run any program on a host of a running lab, over the overlay, with the hosts' names to call them by."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from topologies.directory import HOSTS_FILE
from topologies.processes import lab_environment, start_time
from topologies.registry import LabError, LabRecord, find_lab

ROOT: Final = Path(__file__).resolve().parent.parent
MACHINE_HOSTS: Final = Path("/etc/hosts")
# In a mount namespace of its own, so that only this program sees the lab's names.
_WITH_NAMES: Final = (
    'mount --bind "$0" /etc/hosts || echo "capstan: names of hosts are not known here" >&2; exec "$@"'
)


def host_command(record: LabRecord, host: str, argv: Sequence[str], names: Path) -> list[str]:
    """Return the command line that runs *argv* in a host's network namespace. Raises LabError for no such host.

    names: a file like /etc/hosts that the program is to see.
    """
    hosts = record.details.get("hosts")
    if not hosts:
        raise LabError(f"lab {record.lab_id} is still starting: try again in a moment")
    if host not in hosts:
        raise LabError(f"lab {record.lab_id} has no host {host!r}", remedy=f"there are {', '.join(hosts)}")
    pid = int(hosts[host]["pid"])
    if start_time(pid) != hosts[host]["start"]:
        raise LabError(f"host {host} of lab {record.lab_id} has ended: start the lab again")
    return [
        *("setpriv", "--pdeathsig", "KILL", "--"),
        *("nsenter", f"--net=/proc/{pid}/ns/net", "--"),
        *("unshare", "--mount", "--"),
        *("sh", "-c", _WITH_NAMES, str(names)),
        *argv,
    ]


def exec_in_lab(host: str, argv: Sequence[str], lab_id: str | None = None, **options: Any) -> int:
    """Run *argv* on a host and return its exit code (128 + n for signal n), as a shell would.

    Other hosts are known by name: `h5` is its overlay address, `h5-v6` the IPv6 one, `h5-underlay` the one
    below. Standard streams are this process's unless *options* (of subprocess.Popen) say otherwise.
    Raises LabError if there is no such lab or host, or nothing to run.
    """
    if not argv:
        raise LabError("nothing to run: give a command, as in `capstan exec h1 -- ping h5`")
    record = find_lab(lab_id)
    with (
        tempfile.NamedTemporaryFile(
            "w", prefix="hosts-", dir=record.run_dir, encoding="utf-8", delete=False
        ) as names,
        ExitStack() as last,
    ):
        # Python 3.11's own removal fails where the lab, and its directory, have gone meanwhile.
        last.callback(Path(names.name).unlink, missing_ok=True)
        # Before the lab's own file of names is read, which is not there while it is still starting.
        command = host_command(record, host, argv, Path(names.name))
        names.write((record.run_dir / HOSTS_FILE).read_text(encoding="utf-8"))
        if MACHINE_HOSTS.exists():
            names.write(MACHINE_HOSTS.read_text(encoding="utf-8", errors="replace"))
        names.flush()
        os.fchmod(names.fileno(), 0o644)  # it becomes /etc/hosts, also for programs that are not root's
        child = subprocess.Popen(command, env=lab_environment(record.lab_id, _environment()), **options)
        return _wait_passing_signals(child)


def _environment() -> dict[str, str]:
    """Return the caller's environment: ours without what the launcher added so that Python finds Capstan."""
    variables = dict(os.environ)
    parts = [
        part for part in variables.pop("PYTHONPATH", "").split(os.pathsep) if part and Path(part) != ROOT
    ]
    if parts:
        variables["PYTHONPATH"] = os.pathsep.join(parts)
    if variables.get("PYTHONPYCACHEPREFIX", "").endswith("/capstan/pycache"):
        del variables["PYTHONPYCACHEPREFIX"]
    variables.pop("PYTHONNOUSERSITE", None)
    return variables


def _wait_passing_signals(child: subprocess.Popen[Any]) -> int:
    """Return the exit code of a child that shares our terminal: it gets Ctrl-C itself, other signals are passed on."""

    def pass_on(number: int, _frame: object) -> None:
        child.send_signal(number)

    def leave_to_child(_number: int, _frame: object) -> None:
        pass

    handlers: dict[int, Callable[[int, Any], None]] = {
        signal.SIGINT: leave_to_child,
        signal.SIGQUIT: leave_to_child,
        signal.SIGTERM: pass_on,
        signal.SIGHUP: pass_on,
    }
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        code = child.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return 128 - code if code < 0 else code
