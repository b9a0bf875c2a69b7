"""Try what a lab does to the network, in a network namespace that ends with this program.

`python throwaway.py` prints one JSON object: for each trial whether it worked, and what was said. It enters new
network and mount namespaces before anything else, so nothing that it makes can be seen from outside or outlast it.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Mapping

COMMAND_S = 3.0
"""Far beyond what `ip`, `tc` and `nft` take; what needs longer does not answer."""
_CLONE_NEWNS, _CLONE_NEWNET = 0x00020000, 0x40000000
_MS_REC, _MS_PRIVATE = 0x4000, 1 << 18
_TUNSETIFF, _IFF_TUN, _IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
_ETH_P_ALL = 0x0003
_PORT = "doctor0"

_libc = ctypes.CDLL(None, use_errno=True)


class Refused(Exception):
    """A trial failed; the text is what was said."""


def _checked(result: int, system_call: str) -> None:
    if result:
        raise Refused(f"{system_call}: {os.strerror(ctypes.get_errno())}")


def enter_namespaces() -> None:
    """Enter namespaces of our own, as Mininet's hosts do. Raises Refused."""
    _checked(_libc.unshare(_CLONE_NEWNET | _CLONE_NEWNS), "unshare")
    _checked(_libc.mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None), "remount /")
    _checked(_libc.mount(b"sysfs", b"/sys", b"sysfs", 0, None), "mount /sys")


def run(*argv: str, text: str = "") -> None:
    """Run a program. Raises Refused with the last line of what it said."""
    try:
        done = subprocess.run(
            argv, input=text, capture_output=True, text=True, timeout=COMMAND_S, check=False
        )
    except FileNotFoundError:
        raise Refused(f"{argv[0]} is not installed") from None
    except subprocess.TimeoutExpired:
        raise Refused(f"{argv[0]} did not answer within {COMMAND_S:g} s") from None
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if not line.startswith("Command failed")]
        raise Refused(lines[-1].strip() if lines else f"{argv[0]} ended with exit code {done.returncode}")


def _port() -> None:
    run("ip", "link", "add", "name", _PORT, "type", "veth", "peer", "name", "doctor1")
    run("ip", "link", "set", "dev", _PORT, "up")


def _on_port(*lines: str) -> Callable[[], None]:
    """Return a trial that gives a port these `tc` lines, and takes them off again."""

    def trial() -> None:
        try:
            run("tc", "-batch", "-", text="".join(f"{line}\n" for line in lines))
        finally:
            subprocess.run(
                ["tc", "qdisc", "del", "dev", _PORT, "root"],
                capture_output=True,
                check=False,
                timeout=COMMAND_S,
            )

    return trial


def _tun() -> None:
    try:
        device = os.open("/dev/net/tun", os.O_RDWR)
    except OSError as error:
        raise Refused(f"/dev/net/tun: {error.strerror}") from None
    try:
        fcntl.ioctl(device, _TUNSETIFF, struct.pack("16sH", b"doctor-tun", _IFF_TUN | _IFF_NO_PI))
    except OSError as error:
        raise Refused(f"/dev/net/tun: making an interface: {error.strerror}") from None
    finally:
        os.close(device)


def _packet_socket() -> None:
    try:
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETH_P_ALL)).close()
    except OSError as error:
        raise Refused(f"packet socket: {error.strerror}") from None


def _sysctl() -> None:
    try:
        with open("/proc/sys/net/ipv4/ip_forward", "w", encoding="ascii") as file:
            file.write("0")
    except OSError as error:
        raise Refused(f"/proc/sys/net/ipv4/ip_forward: {error.strerror}") from None


_HTB = f"qdisc add dev {_PORT} root handle 1: htb default 1"
_CLASS = f"class add dev {_PORT} parent 1: classid 1:1 htb rate 10mbit"
TRIALS: Mapping[str, Callable[[], None]] = {
    "veth": _port,  # first: the next ones work on it
    "htb": _on_port(_HTB, _CLASS),
    "pfifo": _on_port(f"qdisc add dev {_PORT} root pfifo limit 10"),
    "u32": _on_port(
        _HTB,
        _CLASS,
        f"filter add dev {_PORT} parent 1: protocol ip pref 1 u32 match ip tos 0x00 0xe0 flowid 1:1",
    ),
    "tbf": _on_port(f"qdisc add dev {_PORT} root tbf rate 10mbit burst 3200 limit 40000"),
    "netem": _on_port(f"qdisc add dev {_PORT} root netem delay 1ms"),
    "nftables": lambda: run("nft", "add", "table", "ip", "doctor"),
    "tun": _tun,
    "packet sockets": _packet_socket,
    "sysctls": _sysctl,
}
"""What is tried in the namespace, in this order."""
_ON_PORT = ("htb", "pfifo", "u32", "tbf", "netem")


def try_all() -> dict[str, tuple[bool, str]]:
    """Enter namespaces and do every trial there; return by name whether it worked, and what was said.

    What needs the result of a trial that failed is not tried, and not in what is returned.
    """
    outcomes: dict[str, tuple[bool, str]] = {}
    trials = {"namespaces": enter_namespaces, **TRIALS}
    for name, trial in trials.items():
        if name in _ON_PORT and not outcomes["veth"][0]:
            continue
        try:
            trial()
            outcomes[name] = (True, "")
        except (Refused, OSError, subprocess.SubprocessError) as error:
            outcomes[name] = (False, str(error))
            if name == "namespaces":  # never outside of them
                break
    return outcomes


if __name__ == "__main__":
    json.dump(try_all(), sys.stdout)
