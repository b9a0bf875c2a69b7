"""What a lab needs of this machine, and what the machine can do."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from topologies.namespaces import run
from topologies.ovs import Datapath
from topologies.registry import LabError

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
}
IP_FREEBIND: Final = 15


def check_machine() -> None:
    """Raises LabError, with what to do, where a lab cannot be made."""
    if os.geteuid() != 0:
        raise LabError("a lab makes network namespaces: run as root or with sudo")
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing:
        packages = sorted({PROGRAMS[name] for name in missing})
        raise LabError(f"not installed: {', '.join(missing)}; `apt-get install {' '.join(packages)}`")


def kernel_datapath_present() -> bool:
    """Whether the kernel can switch packets itself; asking loads its module where there is one."""
    found = subprocess.run(["genl", "ctrl", "get", "name", "ovs_datapath"], capture_output=True, check=False)
    return found.returncode == 0 and b"ovs_datapath" in found.stdout


def best_datapath(notice: Callable[[str], None]) -> Datapath:
    """The kernel's datapath where there is one, else userspace; *notice* is told which."""
    if kernel_datapath_present():
        notice("switches use the kernel datapath of Open vSwitch")
        return "system"
    notice("this kernel has no openvswitch: switches use Open vSwitch's userspace datapath")
    return "netdev"


def netem_present() -> bool:
    """Whether the kernel can delay packets; tried in the namespace of this thread."""
    tried = subprocess.run(
        ["tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms"], capture_output=True, check=False
    )
    if tried.returncode == 0:
        run(["tc", "qdisc", "delete", "dev", "lo", "root"])
    return tried.returncode == 0


def free_port(address: str, wanted: int) -> int:
    """The wanted TCP port if nobody has it on *address*, else another. Raises LabError."""
    for port in (wanted, 0):
        with socket.socket() as probe, suppress(OSError):
            probe.setsockopt(socket.IPPROTO_IP, IP_FREEBIND, 1)  # the address comes later
            probe.bind((address, port))
            return int(probe.getsockname()[1])
    raise LabError(f"no TCP port is free on {address}")
