"""Single real switches for the tests of the OpenFlow shell: each an Open vSwitch in a namespace of its own.

Smaller than the lab on purpose: a switch starts in a third of a second, has ports without links, and any of
its processes can be killed. The shell listens in the root namespace; one veth pair leads there.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.waiting import eventually

_libc = ctypes.CDLL(None, use_errno=True)
_numbers = iter(range(1, 4096))
_random = random.SystemRandom()


def run(*argv: str) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(argv)}: {done.stderr.strip()}")
    return done.stdout


def answers(path: Path) -> bool:
    """Return whether a program listens at a Unix socket; its file is there before."""
    with socket.socket(socket.AF_UNIX) as one, contextlib.suppress(OSError):
        one.connect(str(path))
        return True
    return False


class Netns:
    """A named network namespace."""

    def __init__(self, name: str) -> None:
        self.name = name
        run("ip", "netns", "add", name)

    def __call__(self, *argv: str) -> str:
        return run("ip", "netns", "exec", self.name, *argv)

    def socket(self, interface: str) -> socket.socket:
        """Return a packet socket on *interface* inside the namespace (all protocols)."""

        def make() -> socket.socket:
            sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
            sock.bind((interface, 0))
            return sock

        return self.inside(make)

    def inside(self, make: Callable[[], socket.socket]) -> socket.socket:
        """Return a socket that is made inside the namespace, where it stays."""

        def work() -> socket.socket:
            fd = os.open(f"/var/run/netns/{self.name}", os.O_RDONLY)
            try:
                if _libc.setns(fd, 0x40000000):
                    raise OSError(ctypes.get_errno(), "setns")
            finally:
                os.close(fd)
            return make()

        with ThreadPoolExecutor(1) as thread:  # which is in the namespace for the rest of its life
            return thread.submit(work).result()

    def delete(self) -> None:
        run("ip", "netns", "del", self.name)


def _own_addresses() -> tuple[socket.socket, str, str]:
    """Return a socket, and two addresses of a network that no test beside this one has until that is closed.

    The socket's name says which network it is: one name is given once, and goes with its process.
    """
    while True:
        third, fourth = _random.randrange(1, 169), 4 * _random.randrange(64)
        kept = socket.socket(socket.AF_UNIX)
        try:
            kept.bind(f"\0capstan-test-169.254.{third}.{fourth}")
        except OSError:  # another test has it
            kept.close()
            continue
        return kept, f"169.254.{third}.{fourth + 1}", f"169.254.{third}.{fourth + 2}"


class Switch:
    """One Open vSwitch with bridge ``br``; ports are veths whose other ends stay in the same namespace."""

    def __init__(self, dpid: int, port: int, protocols: str = "OpenFlow15") -> None:
        number = next(_numbers)
        self.dpid = dpid
        self.tag = f"of{os.getpid() % 100000}n{number}"
        self.dir = Path(tempfile.mkdtemp(prefix=f"capstan-of-{self.tag}-"))
        self.netns = Netns(self.tag)
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self._kept, root, inner = _own_addresses()
        run("ip", "link", "add", f"{self.tag}m", "type", "veth", "peer", "name", "mgmt", "netns", self.tag)
        run("ip", "addr", "add", f"{root}/30", "dev", f"{self.tag}m")
        run("ip", "link", "set", f"{self.tag}m", "up")
        self.netns("ip", "addr", "add", f"{inner}/30", "dev", "mgmt")
        self.netns("ip", "link", "set", "mgmt", "up")
        self.netns("ip", "link", "set", "lo", "up")
        run("ovsdb-tool", "create", str(self.dir / "db"), "/usr/share/openvswitch/vswitch.ovsschema")
        self._root = root
        self.start()
        self.vsctl(
            "add-br", "br", "--", "set", "bridge", "br", "datapath_type=netdev", "fail_mode=secure",
            f"protocols={protocols}", f"other-config:datapath-id={dpid:016x}",
            "other-config:disable-in-band=true",
            "--", "set-controller", "br", f"tcp:{root}:{port}",
            "--", "set", "controller", "br", "max_backoff=1000", "inactivity_probe=5000",
        )  # fmt: skip

    def start(self) -> None:
        """Start what is not running: the database server, then the switch."""
        self._start(
            "ovsdb-server",
            [
                "ovsdb-server", str(self.dir / "db"), f"--remote=punix:{self.dir}/db.sock",
                f"--unixctl={self.dir}/ovsdb.ctl", f"--log-file={self.dir}/ovsdb.log",
            ],
        )  # fmt: skip
        eventually(lambda: answers(self.dir / "db.sock"), "the database")
        self._start(
            "ovs-vswitchd",
            [
                "ovs-vswitchd", f"unix:{self.dir}/db.sock", f"--unixctl={self.dir}/vs.ctl",
                f"--log-file={self.dir}/vs.log",
            ],
        )  # fmt: skip

    def _start(self, name: str, argv: list[str]) -> None:
        if name in self.processes and self.processes[name].poll() is None:
            return
        self.processes[name] = subprocess.Popen(
            ["ip", "netns", "exec", self.tag, *argv],
            env={**os.environ, "OVS_RUNDIR": str(self.dir)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def vsctl(self, *args: str) -> str:
        return run("ovs-vsctl", f"--db=unix:{self.dir}/db.sock", *args)

    def ofctl(self, command: str, *args: str) -> str:
        return run("ovs-ofctl", "-O", "OpenFlow15", command, f"unix:{self.dir}/br.mgmt", *args)

    def appctl(self, *args: str) -> str:
        return run("ovs-appctl", "-t", f"{self.dir}/vs.ctl", *args)

    def add_port(self, name: str, number: int, wait: bool = True) -> str:
        """Add a veth as port *number*; return the name of its other end (in the same namespace)."""
        peer = f"{name}x"
        self.netns("ip", "link", "add", name, "type", "veth", "peer", "name", peer)
        for end in (name, peer):
            self.netns("ip", "link", "set", end, "up", "addrgenmode", "none")
        self.vsctl("add-port", "br", name, "--", "set", "interface", name, f"ofport_request={number}")
        if wait:
            eventually(lambda: f" {number}({name})" in self.ofctl("show"), what=f"port {name}")
        return peer

    def send_signal(self, number: signal.Signals, name: str = "ovs-vswitchd") -> None:
        self.processes[name].send_signal(number)

    def kill(self) -> None:
        """Kill the switch's daemon with SIGKILL (its database lives on)."""
        self.send_signal(signal.SIGKILL)
        self.processes["ovs-vswitchd"].wait()

    def set_controller(self, port: int) -> None:
        """Have the switch call another port; it dials at once."""
        self.vsctl("set", "controller", "br", f'target="tcp:{self._root}:{port}"')

    def tables(self) -> list[str]:
        """Return the flows as `ovs-ofctl dump-flows` prints them, sorted, without counters and times."""
        text = self.ofctl("dump-flows", "--no-stats")
        return sorted(
            line.strip()
            for line in text.splitlines()
            if "table=" in line or "priority" in line or "actions" in line
        )

    def groups(self) -> list[str]:
        return sorted(line.strip() for line in self.ofctl("dump-groups").splitlines() if "group_id" in line)

    def meters(self) -> list[str]:
        return sorted(re.findall(r"meter=(\d+)", self.ofctl("dump-meters")))

    def close(self) -> None:
        for process in self.processes.values():
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGCONT)
                process.kill()
            process.wait()
        run("ip", "link", "del", f"{self.tag}m")
        self.netns.delete()
        shutil.rmtree(self.dir)
        self._kept.close()


@contextlib.contextmanager
def switch(dpid: int, port: int, ports: int = 0) -> Iterator[Switch]:
    """Yield a switch with *ports* ports p1.., numbered from 1, that connects to the shell on *port*."""
    made = Switch(dpid, port)
    try:
        for number in range(1, ports + 1):
            made.add_port(f"p{number}", number)
        yield made
    finally:
        made.close()
