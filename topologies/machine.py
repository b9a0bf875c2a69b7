"""What a lab needs of this machine, and what the machine can do."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal

from topologies.namespaces import complete, run
from topologies.registry import LabError

Datapath = Literal["netdev", "system"]
"""Of Open vSwitch: userspace, or the kernel's."""
PROGRAMS: Final = {
    "ovs-vswitchd": "openvswitch-switch",
    "ovsdb-server": "openvswitch-switch",
    "ovsdb-tool": "openvswitch-common",
    "ovs-vsctl": "openvswitch-switch",
    "ovs-ofctl": "openvswitch-common",
    "mnexec": "mininet",
    "ifconfig": "net-tools",
    "ip": "iproute2",
    "tc": "iproute2",
    "genl": "iproute2",
    "setpriv": "util-linux",
    "nsenter": "util-linux",
}
"""Programs that a lab runs, and the Debian packages that have them."""
CAPABILITIES: Final = {
    "CAP_DAC_OVERRIDE": 1,
    "CAP_NET_ADMIN": 12,
    "CAP_NET_RAW": 13,
    "CAP_SYS_PTRACE": 19,
    "CAP_SYS_ADMIN": 21,
    "CAP_SYS_NICE": 23,
}
"""Bits in CapEff of /proc/PID/status (linux/capability.h)."""
NEEDED_CAPABILITIES: Final = ("CAP_SYS_ADMIN", "CAP_NET_ADMIN", "CAP_NET_RAW")
TUN_DEVICE: Final = "/dev/net/tun"
TUN_ADVICE: Final = "modprobe tun, or give the container --device /dev/net/tun"
IP_FREEBIND: Final = 15
TRY_S: Final = 5.0
"""A namespace is made in some milliseconds; this long also where a machine is busy."""


def missing_programs() -> dict[str, str]:
    """Return the programs of `PROGRAMS` that are not on PATH, with their Debian packages."""
    return {name: package for name, package in PROGRAMS.items() if shutil.which(name) is None}


def effective_capabilities(status: str) -> frozenset[str]:
    """Return the names of the capabilities that are in effect. status: the text of /proc/PID/status."""
    bits = next((int(line.split()[1], 16) for line in status.splitlines() if line.startswith("CapEff:")), 0)
    return frozenset(name for name, bit in CAPABILITIES.items() if bits >> bit & 1)


def own_capabilities() -> frozenset[str]:
    """Return the capabilities of this process that are in effect."""
    return effective_capabilities(Path("/proc/self/status").read_text(encoding="utf-8"))


def capability_advice(missing: tuple[str, ...]) -> str:
    """Return what to do where capabilities are missing."""
    options = " ".join(f"--cap-add {name.removeprefix('CAP_')}" for name in missing)
    return (
        "run as root outside of a restricted container, or give the container "
        f"{options} --security-opt seccomp=unconfined"
    )


def namespace_problem() -> str | None:
    """Return why Mininet cannot make a namespace here, in words; None if it can.

    A namespace is made, and gone when this returns.
    """
    try:
        tried = subprocess.run(
            ["mnexec", "-n", "true"], capture_output=True, text=True, timeout=TRY_S, check=False
        )
    except subprocess.TimeoutExpired:
        return f"`mnexec -n true` did not end within {TRY_S:g} s"
    except OSError as error:
        return f"`mnexec -n true`: {error.strerror}"
    if tried.returncode == 0:
        return None
    reason = " / ".join(tried.stderr.split("\n")).strip(" /")
    return f"`mnexec -n true` failed ({tried.returncode}): {reason or 'it gave no reason'}"


def namespace_advice(capabilities: frozenset[str]) -> str:
    """Return what to do where no namespace can be made, given the capabilities in effect."""
    missing = tuple(name for name in NEEDED_CAPABILITIES if name not in capabilities)
    if missing:
        return f"a lab needs {' and '.join(missing)}: {capability_advice(missing)}"
    return (
        "the capabilities are there, so a seccomp filter, AppArmor or a limit (sysctl user.max_net_namespaces) "
        "refuses it: run outside of the container, or give it --security-opt seccomp=unconfined "
        "--security-opt apparmor=unconfined"
    )


def privilege_problem() -> str | None:
    """Return what root may not do here though a lab needs it, and what to do, in words; None if it may."""
    have = own_capabilities()
    missing = tuple(name for name in NEEDED_CAPABILITIES if name not in have)
    if missing and "CAP_SYS_ADMIN" in have:
        return f"a lab needs {' and '.join(missing)}: {capability_advice(missing)}"
    problem = namespace_problem()
    if problem is None:
        return None
    return f"no network namespace can be made: {problem}; {namespace_advice(have)}"


def check_machine() -> None:
    """Raise LabError, with what to do, where a lab cannot be made."""
    if os.geteuid() != 0:
        raise LabError("a lab makes network namespaces: run as root or with sudo")
    missing = missing_programs()
    if missing:
        packages = " ".join(sorted({*missing.values()}))
        raise LabError(f"not installed: {', '.join(missing)}", remedy=f"`apt-get install {packages}`")
    problem = privilege_problem()
    if problem is not None:
        raise LabError(problem)


def kernel_datapath_present() -> bool:
    """Return True if the kernel can switch packets itself; asking loads its module where there is one.

    Raises CommandError if the kernel does not answer.
    """
    answer = complete(["genl", "ctrl", "get", "name", "ovs_datapath"])
    return answer.returncode == 0 and "ovs_datapath" in answer.stdout


def best_datapath(notice: Callable[[str], None]) -> Datapath:
    """Return the kernel's datapath where there is one, else userspace; *notice* gets which."""
    if kernel_datapath_present():
        notice("switches use the kernel datapath of Open vSwitch")
        return "system"
    notice("this kernel has no openvswitch: switches use Open vSwitch's userspace datapath")
    return "netdev"


def netem_present() -> bool:
    """Return True if the kernel can delay packets; tried in the namespace of this thread."""
    tried = complete(["tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms"])
    if tried.returncode == 0:
        run(["tc", "qdisc", "delete", "dev", "lo", "root"])
    return tried.returncode == 0


def free_port(address: str, wanted: int) -> int:
    """Return the wanted TCP port if it is free on *address*, else another. Raises LabError."""
    for port in (wanted, 0):
        with socket.socket() as probe, suppress(OSError):
            probe.setsockopt(socket.IPPROTO_IP, IP_FREEBIND, 1)  # the address comes later
            probe.bind((address, port))
            return int(probe.getsockname()[1])
    raise LabError(f"no TCP port is free on {address}")
