"""A switch: an Open vSwitch of its own, in a network namespace of its own.

One ovs-vswitchd for a whole fabric would run all ports in one thread, and a lab must never touch the
machine's own Open vSwitch. So each switch has an ovsdb-server, an ovs-vswitchd and a run directory; its
database stays on disk there, so that a switch that was killed comes back with its ports and controller.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from mininet.node import Switch

from ovsdb.port_queues import NO_WRITER_TYPE, OVSDB_PORT, WRITER
from topologies.machine import Datapath
from topologies.namespaces import CommandError, Namespace, run
from topologies.packet_sockets import enlarge_packet_sockets
from topologies.processes import Spawner, lab_environment
from topologies.shells import LimitedShell

SCHEMA: Final = Path("/usr/share/openvswitch/vswitch.ovsschema")
START_TIMEOUT: Final = 60.0
PROBE_INTERVAL_MS: Final = 5000
MAX_BACKOFF_MS: Final = 1000
"""The least that Open vSwitch takes. Version 3.1 ignores it: see redial."""
_ALLOCATOR: Final = "libtcmalloc_minimal.so.4"
"""At every wake-up ovs-vswitchd allocates 32 buffers for each of its ports, which glibc does slowly: with 13 ports a
lone packet costs 210 us, with this allocator 149 (docs/traps.md)."""
Daemon = Literal["ovsdb-server", "ovs-vswitchd"]
_LIBRARIES: Final = ("/usr/lib/*-linux-gnu", "/usr/lib64", "/usr/lib")
# An EtherType for local experiments (IEEE Std 802, 88B5), from no host to no host.
_PROBE_FRAME: Final = "02ca000000fe02ca000000ff88b5" + "00" * 46


def faster_allocator() -> Path | None:
    """Return the library to load into ovs-vswitchd before all others; None where it is not installed."""
    libraries = (path for place in _LIBRARIES for path in Path("/").glob(f"{place[1:]}/{_ALLOCATOR}"))
    return next(libraries, None)


def create_database(path: Path) -> None:
    """Create an empty Open vSwitch database, from which each switch gets a copy."""
    run(["ovsdb-tool", "create", str(path), str(SCHEMA)])


def _runs(process: subprocess.Popen[bytes] | None) -> bool:
    return process is not None and process.poll() is None


def _listens(path: Path) -> bool:
    """Return whether a process takes connections at a Unix socket; the file alone is there a moment before."""
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return False
    return True


@dataclass(frozen=True)
class SwitchSetting:
    """What all switches of a lab share."""

    spawner: Spawner
    run_dir: Path
    database: Path
    controller: tuple[str, int]
    datapath: Datapath
    notice: Callable[[str], None]
    allocator: Path | None = None
    """A library that ovs-vswitchd allocates memory with (`faster_allocator`); None: the C library's own."""


class OvsSwitch(LimitedShell, Switch):  # type: ignore[misc]
    """A Mininet switch whose Open vSwitch can be killed and started again on its own."""

    controlIntf = None

    def __init__(self, name: str, dpid: str | None = None, *, setting: SwitchSetting, **params: Any) -> None:
        self.setting = setting
        self.marked_lab = setting.spawner.lab_id
        self.run_dir = setting.run_dir / name
        self.namespace: Namespace | None = None
        self.database_server: subprocess.Popen[bytes] | None = None
        self.daemon: subprocess.Popen[bytes] | None = None
        self.database_address: str | None = None
        """Address on the management network at which the controller may ask for queues."""
        self._zeros = ""
        self.abandoned = False  # no thread waits for this switch to come up any more
        self.wanted = True
        """Whether its daemons are to run: not while it was killed on purpose."""
        self._observers: Final[list[Callable[[], None]]] = []
        self._changing = threading.RLock()
        """Held by who starts or ends daemons."""
        params.update(inNamespace=True)
        super().__init__(name, dpid=dpid, **params)

    # -- what Mininet calls ----------------------------------------------------------------------

    def start(self, controllers: Iterable[object]) -> None:
        """Do nothing yet: Mininet starts switches one by one, batchStartup() starts them together."""

    @classmethod
    def batchStartup(cls, switches: Sequence[OvsSwitch], run: object = None) -> list[OvsSwitch]:
        """Start all switches in parallel, and return them."""
        with ThreadPoolExecutor(16) as pool:
            try:
                list(pool.map(OvsSwitch.boot, switches))
            except BaseException:
                for switch in switches:
                    switch.abandoned = True
                raise
        return list(switches)

    def stop(self, deleteIntfs: bool = True) -> None:
        """End the switch's daemons; its interfaces end with its namespace."""
        self.kill()

    def connected(self) -> bool:
        """Return whether a controller holds this switch."""
        return "true" in self.vsctl("get", "controller", self.name, "is_connected")

    # -- the daemons -----------------------------------------------------------------------------

    def boot(self) -> None:
        """Configure and start this switch; returns when it forwards. Raises CommandError if it does not."""
        self.run_dir.mkdir(exist_ok=True)
        shutil.copyfile(self.setting.database, self.run_dir / "conf.db")
        self._start_database()
        self.vsctl("--no-wait", *self._configuration())
        self._start_datapath()

    def restart(self) -> None:
        """Start the switch again after kill(), from its database on disk."""
        with self._changing:
            self._end_daemons()
            self.wanted = True
            self._start_database()
            self._start_datapath()
        self._notify()

    def revive(self, program: Daemon) -> None:
        """Start one of the daemons again if it has ended, ovs-vswitchd once its database runs; none after kill().

        Raises CommandError.
        """
        if program == "ovs-vswitchd":
            self._await_database()
        with self._changing:
            if not self.wanted:
                return
            if program == "ovsdb-server":
                if not _runs(self.database_server):
                    self._start_database()
            elif not _runs(self.daemon):
                self._start_datapath()

    def _await_database(self) -> None:
        deadline = time.monotonic() + START_TIMEOUT
        while self.wanted and not self.abandoned and not _runs(self.database_server):
            if time.monotonic() > deadline:
                raise CommandError(f"ovsdb-server of switch {self.name} was not back in {START_TIMEOUT:g} s")
            time.sleep(0.01)

    def kill(self) -> None:
        """Kill this switch's two daemons (`kill -9`); harmless when they are gone."""
        self.wanted = False  # who starts it at the moment stops waiting for it
        with self._changing:
            self._end_daemons()
        self._notify()

    def on_purpose(self, callback: Callable[[], None]) -> None:
        """Have *callback* called whenever this switch was killed or restarted on purpose, in the caller's thread."""
        self._observers.append(callback)

    def _notify(self) -> None:
        for callback in self._observers:
            callback()

    def _end_daemons(self) -> None:
        for process in (self.daemon, self.database_server):
            if process is not None:
                process.kill()
        for process in (self.daemon, self.database_server):
            if process is not None:
                process.wait()
        self.daemon = self.database_server = None

    def redial(self) -> None:
        """Call the controller now, whatever time is left to wait; harmless for a switch that is down.

        Open vSwitch dials at once when its controller's target changes, so the target changes its spelling.
        """
        if not _runs(self.daemon):
            return
        self._zeros = "" if self._zeros else "0"
        address, tcp_port = self.setting.controller
        target = f'target="tcp:{address}:{self._zeros}{tcp_port}"'
        with suppress(CommandError):
            self.vsctl("--no-wait", "set", "controller", self.name, target, timeout_s=1)

    def vsctl(self, *args: str, timeout_s: int = 30) -> str:
        """Run ovs-vsctl on this switch's database, return its output."""
        return self._ask("ovs-vsctl", f"--timeout={timeout_s}", f"--db=unix:{self.run_dir}/db.sock", *args)

    def ofctl(self, command: str, *args: str) -> str:
        """Return the output of an ovs-ofctl command on this switch (which need not be named)."""
        return self._ask(
            "ovs-ofctl", "-O", "OpenFlow15", "-t", "30", command, f"unix:{self._management}", *args
        )

    def _ask(self, *argv: str) -> str:
        """Run a client of this switch. It bears the lab's mark: it may wait for a daemon that has been killed."""
        return run(argv, env=lab_environment(self.setting.spawner.lab_id))

    @property
    def _management(self) -> Path:
        return self.run_dir / f"{self.name}.mgmt"

    def _environment(self) -> dict[str, str]:
        place = str(self.run_dir)
        return {**os.environ, "OVS_RUNDIR": place, "OVS_LOGDIR": place, "OVS_DBDIR": place}

    def _spawn(self, argv: Sequence[str], env: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        if self.namespace is None:
            self.namespace = Namespace(self.pid)
        return self.setting.spawner.popen(
            self.namespace,
            argv,
            env={**self._environment(), **(env or {})},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def _start_database(self) -> None:
        path = self.run_dir / "db.sock"
        path.unlink(missing_ok=True)
        self.database_server = self._spawn(
            [
                "ovsdb-server",
                str(self.run_dir / "conf.db"),
                f"--remote=punix:{path}",
                *([f"--remote=ptcp:{OVSDB_PORT}:{address}"] if (address := self.database_address) else []),
                f"--unixctl={self.run_dir}/ovsdb-server.ctl",
                f"--log-file={self.run_dir}/ovsdb-server.log",
                "-vconsole:off",
            ]
        )
        self._wait(self.database_server, "ovsdb-server", lambda: _listens(path))

    def _start_datapath(self) -> None:
        self._management.unlink(missing_ok=True)
        userspace = ["--disable-system", "--disable-system-route"]
        allocator = self.setting.allocator
        self.daemon = self._spawn(
            [
                "ovs-vswitchd",
                f"unix:{self.run_dir}/db.sock",
                f"--unixctl={self.run_dir}/ovs-vswitchd.ctl",
                f"--log-file={self.run_dir}/ovs-vswitchd.log",
                "-vconsole:off",
                *(userspace if self.setting.datapath == "netdev" else []),
            ],
            {"LD_PRELOAD": str(allocator)} if allocator is not None else None,
        )
        self._wait(self.daemon, "ovs-vswitchd", self._sends)
        if self.setting.datapath == "netdev":
            try:
                enlarge_packet_sockets(self.daemon.pid)
            except OSError as error:
                self.setting.notice(
                    f"switches' packet sockets keep the kernel's default size ({error}): "
                    "queues above some 90 packets drop too early"
                )

    def _sends(self) -> bool:
        """Return whether the switch is up: it sends one frame of no meaning on its first port.

        That also makes the userspace datapath's sending socket, which exists from the first frame on.
        """
        if not self._management.exists():
            return False
        port = min((number for number in self.intfs if number > 0), default=None)
        with suppress(CommandError):
            if port is None:
                self.ofctl("dump-ports-desc")
            else:
                self.ofctl("packet-out", f"in_port=CONTROLLER packet={_PROBE_FRAME} actions=output:{port}")
            return True
        return False

    def _wait(self, process: subprocess.Popen[bytes], program: str, ready: Callable[[], bool]) -> None:
        deadline = time.monotonic() + START_TIMEOUT
        while not ready():
            code = process.poll()
            alone = process is self.daemon and not _runs(self.database_server)
            if code is not None or alone or self.abandoned or not self.wanted or time.monotonic() > deadline:
                process.kill()
                problem = f"ended ({code})" if code is not None else f"was not ready in {START_TIMEOUT:g} s"
                problem = "lost its database" if alone else problem
                log = self.run_dir / f"{program}.log"
                tail = log.read_text(errors="replace").splitlines()[-3:] if log.exists() else []
                raise CommandError(
                    f"{program} of switch {self.name} {problem}: {' / '.join(tail) or 'no log'}"
                )
            time.sleep(0.01)

    def _configuration(self) -> list[str]:
        """Return words for one ovs-vsctl transaction: the bridge, its ports, its controller."""
        name = self.name
        address, tcp_port = self.setting.controller
        words = f"""
            set open_vswitch . other_config:n-handler-threads=1 other_config:n-revalidator-threads=1
            -- add-br {name}
            -- set bridge {name} datapath_type={self.setting.datapath} fail_mode=secure protocols=OpenFlow15
               other_config:datapath-id={self.dpid} other_config:disable-in-band=true
            -- set-controller {name} tcp:{address}:{tcp_port}
            -- set controller {name} connection_mode=out-of-band max_backoff={MAX_BACKOFF_MS}
               inactivity_probe={PROBE_INTERVAL_MS}
        """.split()
        for number, interface in sorted(self.intfs.items()):
            # Without a QoS of type linux-noop, Open vSwitch deletes the port's qdisc when it adds the port.
            # The external id says that the lab writes that qdisc, queues and all: `ovsdb.port_queues`.
            words += f"""
                -- --id=@qos{number} create qos type={NO_WRITER_TYPE} external_ids:{WRITER}=lab
                -- add-port {name} {interface.name} -- set interface {interface.name} ofport_request={number}
                -- set port {interface.name} qos=@qos{number}
            """.split()
        return words
