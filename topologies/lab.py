"""The lab: a fabric of real switches and hosts on this machine, built by Mininet, gone without a trace.

The lab starts neither controller nor agents: it offers namespaces, links, and an address at which switches
look for a controller.
"""

from __future__ import annotations

import ipaddress
import json
import os
import shutil
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from mininet.net import Mininet

from topologies.fabric_spec import FabricSpec, unknown_link
from topologies.links import Link, reshape_commands, shape_commands
from topologies.namespaces import Namespace, disable_offloads, run, run_batch, write_sysctls
from topologies.ovs import Datapath, OvsSwitch, SwitchSetting, create_database, kernel_datapath_present
from topologies.processes import (
    Spawner,
    lab_environment,
    network_mark_line,
    own_network,
    start_time,
)
from topologies.reaper import start_reaper
from topologies.registry import (
    Ended,
    LabError,
    LabRecord,
    check_lab_id,
    end_lab,
    new_lab_id,
    register,
)
from topologies.wiring import (
    LabHost,
    LabInterface,
    LabLink,
    NamespaceSetup,
    TcpProfile,
    host_setup,
    management_lines,
    manager_setup,
    switch_setup,
    veth_lines,
)

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
CONTROLLER_PORT: Final = 6653
FIRST_SWITCH_ADDRESS: Final = 10
IP_FREEBIND: Final = 15
T = TypeVar("T")


@dataclass(frozen=True)
class PortCounters:
    """What one end of a link has sent into it, from its queueing discipline (or its interface)."""

    interface: str
    sent_bytes: int
    sent_packets: int
    dropped_packets: int
    queued_packets: int


class Lab:
    """A running fabric. Use as a context manager, or start() and stop().

    spec: the fabric. lab_id: 1-11 characters a-z, 0-9; None picks one. tcp: "linux", or "ns2" for the papers'
    simulated TCP. congestion_control: of connections on the underlay; None means cubic, reno with "ns2".
    datapath: "netdev" (userspace), "system" (kernel), or None for the kernel's where there is one.

    After start(): `hosts` and `switches` (names), `net` (Mininet's object), `links` (shape by name),
    `controller_endpoint` (address and port to listen on for the switches), `run_dir`, and `notices`: what
    people must know of this fabric, one sentence each.
    """

    def __init__(
        self,
        spec: FabricSpec,
        lab_id: str | None = None,
        *,
        tcp: TcpProfile = "linux",
        congestion_control: str | None = None,
        datapath: Datapath | None = None,
    ) -> None:
        self.spec = spec
        self.lab_id = check_lab_id(lab_id) if lab_id is not None else new_lab_id()
        self.tcp: TcpProfile = tcp
        self.congestion_control = congestion_control or ("reno" if tcp == "ns2" else "cubic")
        self.notices: list[str] = []
        self.links: dict[str, Link] = {}
        self.net: Any = None
        self._datapath = datapath
        self._record: LabRecord | None = None
        self._claimed = False
        self._home = own_network()
        self._reaper: subprocess.Popen[bytes] | None = None
        self._spawner: Spawner | None = None
        self._workers: ThreadPoolExecutor | None = None
        self._manager: LabHost | None = None
        self._namespaces: dict[str, Namespace] = {}
        self._controller_port = CONTROLLER_PORT
        self._netem = True
        self._changes = threading.Lock()

    # -- what a running lab offers ---------------------------------------------------------------

    @property
    def hosts(self) -> list[str]:
        """Names of the hosts, in order."""
        return [host.name for host in self._net().hosts]

    @property
    def switches(self) -> list[str]:
        """Names of the switches, in order."""
        return [switch.name for switch in self._net().switches]

    def switch(self, name: str) -> OvsSwitch:
        """One switch. Raises LabError for a name that is none."""
        found = self._net().nameToNode.get(name)
        if not isinstance(found, OvsSwitch):
            raise LabError(f"no switch {name!r} here; there are {', '.join(self.switches)}")
        return found

    @property
    def run_dir(self) -> Path:
        """The lab's directory under /run; sockets in it can be reached from every namespace."""
        if self._record is None:
            raise LabError("the lab is not started: call start() first")
        return self._record.run_dir

    @property
    def controller_endpoint(self) -> tuple[str, int]:
        """Address (in the namespace of this process) and port at which the switches look for a controller."""
        return self._management_address(1), self._controller_port

    @property
    def environment(self) -> dict[str, str]:
        """Environment for a process of this lab that somebody else starts, as its controller."""
        return lab_environment(self.lab_id)

    def popen(self, host: str | None, argv: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
        """Start a program on a host (None: in this process's namespace). Options as for subprocess.Popen.

        It ends with the lab, and with this process even if that is killed. Its standard input is /dev/null
        and its session its own unless told otherwise. Raises LabError, FileNotFoundError.
        """
        if self._spawner is None:
            raise LabError("the lab is not started: call start() first")
        return self._spawner.popen(self._host_namespace(host) if host is not None else None, argv, **options)

    def set_link(
        self,
        name: str,
        up: bool | None = None,
        rate_mbps: float | None = None,
        *,
        buffer_packets: int | None = None,
    ) -> None:
        """Change one link of the running fabric, both directions; None leaves a thing as it is."""
        link = self._link(name)
        with self._changes:
            old = self.links[link.name]
            new = replace(
                old,
                rate_mbps=old.rate_mbps if rate_mbps is None else rate_mbps,
                buffer_packets=old.buffer_packets if buffer_packets is None else buffer_packets,
            )
            for interface in (link.intf1, link.intf2):
                lines = reshape_commands(interface.name, old, new, self._netem)
                self._inside(interface.node.name, partial(run_batch, "tc", lines)).result()
            self.links[link.name] = new
            if up is not None:
                self._set_up(link, up)

    def port_counters(self, name: str) -> tuple[PortCounters, PortCounters]:
        """Counters of both ends of a link, the end named first in the link's name first."""
        link = self._link(name)
        ends = sorted((link.intf1, link.intf2), key=lambda end: link.name.index(end.node.name))
        first, second = (
            self._inside(end.node.name, partial(_read_counters, end.name)).result() for end in ends
        )
        return first, second

    def kill_switch(self, name: str, *, links_down: bool = False) -> None:
        """`kill -9` of a switch's daemons. links_down: its links go too, as when its power goes."""
        switch = self.switch(name)
        switch.kill()
        if links_down:
            self._set_ports(switch, "down")

    def restart_switch(self, name: str) -> None:
        """Start a killed switch again; ports, queueing disciplines and controller are as before."""
        switch = self.switch(name)
        self._set_ports(switch, "up")
        switch.restart()

    # -- life ------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> Self:
        """Bring the fabric up; whatever interrupts it leaves nothing. Raises LabError, CommandError."""
        _check_machine()
        if self._record is not None:
            raise LabError(f"lab {self.lab_id} is started already")
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> Ended:
        """End every process of the lab and remove all that was made for it. Returns what was ended."""
        with _without_interrupts():
            if self._workers is not None:
                self._workers.shutdown(wait=True, cancel_futures=True)
                self._workers = None
            ended = end_lab(self.lab_id, self._home) if self._claimed else Ended(self.lab_id)
            if self._reaper is not None:
                if self._reaper.stdin:
                    with suppress(BrokenPipeError):
                        self._reaper.stdin.close()
                self._reaper.wait()
                self._reaper = None
            if self._spawner is not None:
                self._spawner.reap()
                self._spawner.close()
                self._spawner = None
            self._forget_nodes()
            self._claimed = False
            self._record = None
        return ended

    def _start(self) -> None:
        self._claimed = True
        try:
            self._record = register(self.lab_id)
        except LabError:
            self._claimed = False
            raise
        self._reaper = start_reaper(self.lab_id)
        self._controller_port = _free_port(self._management_address(1), CONTROLLER_PORT)
        self._spawner = Spawner(self.lab_id)
        self._workers = ThreadPoolExecutor(8, thread_name_prefix=f"capstan-{self.lab_id}")
        datapath = self._choose_datapath()
        database = self.run_dir / "empty.db"
        create_database(database)
        self._build_nodes(
            SwitchSetting(
                spawner=self._spawner,
                run_dir=self.run_dir,
                database=database,
                controller=self.controller_endpoint,
                datapath=datapath,
                notice=self._notice,
            )
        )
        self._wire()
        self.net.start()
        for name in self.spec.down:
            self.set_link(name, up=False)
        self._publish()

    def _build_nodes(self, setting: SwitchSetting) -> None:
        # Mininet's own init() would change a dozen sysctls of the machine and never put them back.
        Mininet.inited = True
        self.net = Mininet(
            topo=self.spec.topo(),
            switch=partial(OvsSwitch, setting=setting),
            host=partial(LabHost, lab_id=self.lab_id),
            link=LabLink,
            intf=LabInterface,
            controller=None,
            build=False,
        )
        self._manager = LabHost("mgmt", lab_id=self.lab_id)
        self.net.build()
        for node in [self._manager, *self.net.hosts, *self.net.switches]:
            self._namespaces[node.name] = Namespace(node.pid)

    def _wire(self) -> None:
        """Make all interfaces, then set every namespace up in parallel."""
        assert self._record is not None
        assert self._manager is not None
        net, root = self.net, self._record.interface
        prefix = ipaddress.IPv4Network(self._record.subnet).prefixlen
        run_batch(
            "ip", management_lines(net.switches, self._manager, root) + veth_lines(net.links, self.spec.mtu)
        )
        write_sysctls({f"net/ipv6/conf/{root}/disable_ipv6": "1"})
        run_batch(
            "ip", [f"addr add {self._management_address(1)}/{prefix} dev {root}", f"link set dev {root} up"]
        )
        setups = {host.name: host_setup(host, self.tcp, self.congestion_control) for host in net.hosts}
        for index, switch in enumerate(net.switches):
            address = self._management_address(FIRST_SWITCH_ADDRESS + index)
            setups[switch.name] = switch_setup(switch, address, prefix)
        self.links = {link.name: link.shape for link in net.links}
        delayed = any(shape.delay_ms for shape in self.links.values())
        self._netem = delayed and self._inside("mgmt", _netem_present).result()
        if delayed and not self._netem:
            self._notice("this kernel has no netem: links run without the delay that was asked for")
        for link in net.links:
            for end in (link.intf1, link.intf2):
                setups[end.node.name].tc_lines += shape_commands(end.name, link.shape, self._netem)
        setups["mgmt"] = manager_setup(net.switches)
        for setup in setups.values():
            setup.ip_lines.insert(0, network_mark_line(self.lab_id))
        refused: set[str] = set()
        for waiting in [
            self._inside(name, partial(_set_up_namespace, setup)) for name, setup in setups.items()
        ]:
            refused.update(waiting.result())
        if refused:
            self._notice(
                f"sysctls that could not be set in the lab's namespaces: {', '.join(sorted(refused))}"
            )

    def _publish(self) -> None:
        """Write down what other programs need to find their way in this lab."""
        assert self._record is not None
        hosts = {
            host.name: {
                "pid": host.pid,
                "start": start_time(host.pid),
                "underlay": host.place.underlay,
                "overlay": host.place.overlay,
                "overlay6": host.place.overlay6,
            }
            for host in self.net.hosts
        }
        lines = ["127.0.0.1 localhost", "::1 localhost ip6-localhost"]
        for name, host in hosts.items():
            lines += [
                f"{host['overlay']} {name}",
                f"{host['overlay6']} {name}-v6",
                f"{host['underlay']} {name}-underlay",
            ]
        (self.run_dir / "hosts").write_text("\n".join(lines) + "\n", encoding="ascii")
        details = {
            "fabric": self.spec.to_dict(),
            "controller": list(self.controller_endpoint),
            "hosts": hosts,
            "switches": {
                switch.name: {"pid": switch.pid, "dpid": switch.dpid} for switch in self.net.switches
            },
            "notices": self.notices,
        }
        self._record = replace(self._record, details=details)
        self._record.save()

    # -- inner workings --------------------------------------------------------------------------

    def _net(self) -> Any:
        if self.net is None:
            raise LabError("the lab is not started: call start() first")
        return self.net

    def _notice(self, text: str) -> None:
        if text not in self.notices:
            self.notices.append(text)

    def _choose_datapath(self) -> Datapath:
        if self._datapath is not None:
            return self._datapath
        if kernel_datapath_present():
            self._notice("switches use the kernel datapath of Open vSwitch")
            return "system"
        self._notice("this kernel has no openvswitch: switches use Open vSwitch's userspace datapath")
        return "netdev"

    def _management_address(self, index: int) -> str:
        if self._record is None:
            raise LabError("the lab is not started: call start() first")
        return str(ipaddress.IPv4Network(self._record.subnet)[index])

    def _host_namespace(self, host: str) -> Namespace:
        if host not in self.hosts:
            raise LabError(f"no host {host!r} here; there are {', '.join(self.hosts)}")
        return self._namespaces[host]

    def _link(self, name: str) -> LabLink:
        wanted = set(name.split("-"))
        for link in self._net().links:
            if {link.intf1.node.name, link.intf2.node.name} == wanted:
                assert isinstance(link, LabLink)
                return link
        raise LabError(unknown_link(name, list(self.links)))

    def _inside(self, node: str, work: Callable[[], T]) -> Future[T]:
        """Have a worker thread do *work* in the namespace of a node."""
        if self._workers is None:
            raise LabError("the lab is not started: call start() first")
        namespace = self._namespaces[node]

        def enter_and_work() -> T:
            with namespace.entered():
                return work()

        return self._workers.submit(enter_and_work)

    def _set_up(self, link: LabLink, up: bool) -> None:
        # One end is enough: its peer loses its carrier. The switch's end, for a host's would lose its route.
        end = link.intf2 if isinstance(link.intf1.node, LabHost) else link.intf1
        line = f"link set dev {end.name} {'up' if up else 'down'}"
        self._inside(end.node.name, partial(run_batch, "ip", [line])).result()

    def _set_ports(self, switch: OvsSwitch, state: str) -> None:
        lines = [f"link set dev {interface.name} {state}" for interface in switch.intfList()]
        self._inside(switch.name, partial(run_batch, "ip", lines)).result()

    def _forget_nodes(self) -> None:
        for namespace in self._namespaces.values():
            namespace.close()
        self._namespaces = {}
        nodes = [*self.net.hosts, *self.net.switches] if self.net is not None else []
        for node in [*nodes, *([self._manager] if self._manager is not None else [])]:
            for table in (node.inToNode, node.outToNode):
                for descriptor in [number for number, owner in table.items() if owner is node]:
                    del table[descriptor]
            if isinstance(node, OvsSwitch) and node.namespace is not None:
                node.namespace.close()
            node.cleanup()
        self._manager = None
        self.net = None


def _check_machine() -> None:
    if os.geteuid() != 0:
        raise LabError("a lab makes network namespaces: run as root or with sudo")
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing:
        packages = sorted({PROGRAMS[name] for name in missing})
        raise LabError(f"not installed: {', '.join(missing)}; `apt-get install {' '.join(packages)}`")


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """A second Ctrl-C does not cut the clean-up short."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _free_port(address: str, wanted: int) -> int:
    for port in (wanted, 0):
        with socket.socket() as probe, suppress(OSError):
            probe.setsockopt(socket.IPPROTO_IP, IP_FREEBIND, 1)  # the address comes later
            probe.bind((address, port))
            return int(probe.getsockname()[1])
    raise LabError(f"no TCP port is free on {address}")


def _set_up_namespace(setup: NamespaceSetup) -> list[str]:
    refused = write_sysctls(setup.sysctls)
    run_batch("ip", setup.ip_lines)
    for interface in setup.offloads_off:
        disable_offloads(interface)
    run_batch("tc", setup.tc_lines)
    return refused


def _netem_present() -> bool:
    tried = subprocess.run(
        ["tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms"], capture_output=True, check=False
    )
    if tried.returncode == 0:
        run(["tc", "qdisc", "delete", "dev", "lo", "root"])
    return tried.returncode == 0


def _read_counters(interface: str) -> PortCounters:
    disciplines: list[Mapping[str, Any]] = json.loads(
        run(["tc", "-s", "-j", "qdisc", "show", "dev", interface])
    )
    root = next((entry for entry in disciplines if entry.get("root") and entry["kind"] != "noqueue"), None)
    if root is not None:
        return PortCounters(interface, root["bytes"], root["packets"], root["drops"], root["qlen"])
    sent = json.loads(run(["ip", "-s", "-j", "link", "show", "dev", interface]))[0]["stats64"]["tx"]
    return PortCounters(interface, sent["bytes"], sent["packets"], sent["dropped"], 0)
