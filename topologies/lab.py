"""The lab: a fabric of real switches and hosts on this machine, built by Mininet, gone without a trace.

The lab starts neither controller nor agents: it offers namespaces, links, and an address at which switches
look for a controller.
"""

from __future__ import annotations

import ipaddress
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Self

from topologies.cgroup import PRESSURE_FILE, enter, place_for
from topologies.counters import PortCounters
from topologies.directory import HOSTS_FILE, describe_hosts, describe_switches, hosts_file
from topologies.fabric_spec import FabricSpec
from topologies.interrupts import without_interrupts
from topologies.links import Link, shape_commands
from topologies.machine import Datapath, best_datapath, check_machine, free_port, netem_present
from topologies.namespaces import Namespace, run_batch, write_sysctls
from topologies.nodes import MANAGER, Nodes, T
from topologies.open_files import allow_open_files
from topologies.ovs import OvsSwitch, SwitchSetting, create_database, faster_allocator
from topologies.port_trees import PortTrees
from topologies.port_writer import PortWriter
from topologies.processes import Spawner, lab_environment, network_mark_line, own_network
from topologies.reaper import start_reaper
from topologies.redial import Redialer
from topologies.registry import (
    Ended,
    LabError,
    LabRecord,
    check_lab_id,
    end_lab,
    new_lab_id,
    register,
)
from topologies.running_links import RunningLinks
from topologies.wiring import (
    LabLink,
    TcpProfile,
    endpoint_lines,
    host_setup,
    management_lines,
    manager_setup,
    switch_setup,
    veth_lines,
)

CONTROLLER_PORT: Final = 6653
FIRST_SWITCH_ADDRESS: Final = 10
REAPER_S: Final = 30.0
"""It has nothing to do but to look, once its lab has ended."""


class Lab:
    """A running fabric. Use as a context manager, or start() and stop().

    spec: the fabric. lab_id: 1-11 characters a-z, 0-9; None picks one. tcp: "linux", or "ns2" for the papers'
    simulated TCP. congestion_control: of connections on the underlay; None means cubic, reno with "ns2".
    datapath: "netdev" (userspace), "system" (kernel), or None for the kernel's where there is one.
    controller_port: where a controller listens already, in this network namespace; None: one that is free.
    plain_allocator: switches allocate memory as the C library does, for comparison.
    on_endpoint: called by start() as soon as a controller may be started and listen at `controller_endpoint`; nodes and
    switches come afterwards. What it raises ends the lab.

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
        controller_port: int | None = None,
        plain_allocator: bool = False,
        on_endpoint: Callable[[], None] = lambda: None,
    ) -> None:
        self.spec = spec
        self.lab_id = check_lab_id(lab_id) if lab_id is not None else new_lab_id()
        self.tcp: TcpProfile = tcp
        self.congestion_control = congestion_control or ("reno" if tcp == "ns2" else "cubic")
        self.notices: list[str] = []
        self._datapath = datapath
        self._allocator = None if plain_allocator else faster_allocator()
        self._record: LabRecord | None = None
        self._home = own_network()
        self._group: Path | None = None
        self._reaper: subprocess.Popen[bytes] | None = None
        self._spawner: Spawner | None = None
        self._nodes: Nodes | None = None
        self._redialer: Redialer | None = None
        self._links: RunningLinks | None = None
        self._port_writer: PortWriter | None = None
        self._on_endpoint = on_endpoint
        self._given_port = controller_port
        self._controller_port = controller_port or CONTROLLER_PORT
        self.has_netem = True

    # -- what a running lab offers ---------------------------------------------------------------

    @property
    def net(self) -> Any:
        """Return Mininet's object: net.hosts, net.switches, net.links. Raises LabError where there is none yet."""
        net = self._started().net
        if net is None:
            raise LabError("the lab's fabric is not there yet: wait until start() returns")
        return net

    @property
    def links(self) -> dict[str, Link]:
        """Return the shapes by name of the link, as they are now."""
        return self._links.shapes if self._links is not None else {}

    @property
    def hosts(self) -> list[str]:
        """Return names of the hosts, in order."""
        return [host.name for host in self.net.hosts]

    @property
    def switches(self) -> list[str]:
        """Return names of the switches, in order."""
        return [switch.name for switch in self.net.switches]

    def switch(self, name: str) -> OvsSwitch:
        """Return one switch. Raises LabError for a name that is none."""
        node = self.net.nameToNode.get(name)
        if not isinstance(node, OvsSwitch):
            raise LabError(f"no switch {name!r} here", remedy=f"there are {', '.join(self.switches)}")
        return node

    @property
    def run_dir(self) -> Path:
        """Return the lab's directory under /run; sockets in it can be reached from every namespace."""
        if self._record is None:
            raise LabError("the lab is not started: call start() first")
        return self._record.run_dir

    @property
    def controller_endpoint(self) -> tuple[str, int]:
        """Return the address (in the namespace of this process) and port at which the switches look for a
        controller."""
        return self._management_address(1), self._controller_port

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment for a process of this lab that another program starts, as its controller."""
        return lab_environment(self.lab_id)

    @property
    def pressure_file(self) -> Path | None:
        """Return where the kernel says how long processes of this lab, this one included, waited for a CPU; if it
        does."""
        return self._group / PRESSURE_FILE if self._group is not None else None

    def popen(self, host: str | None, argv: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
        """Start a program on a host (None: in this process's namespace), and return it. Options: subprocess.Popen's.

        It ends with the lab, and with this process even if that is killed. Its standard input is /dev/null
        and its session its own unless the caller says otherwise. Raise LabError, ProgramMissingError.
        """
        if self._spawner is None:
            raise LabError("the lab is not started: call start() first")
        return self._spawner.popen(self._host_namespace(host) if host is not None else None, argv, **options)

    def inside(self, node: str, work: Callable[[], T]) -> T:
        """Return what *work* returns, done by a thread in the network namespace of a host or switch."""
        return self._started().inside(node, work).result()

    def set_link(
        self,
        name: str,
        up: bool | None = None,
        rate_mbps: float | None = None,
        *,
        buffer_packets: int | None = None,
    ) -> None:
        """Change one link of the running fabric, both directions; None leaves a thing as it is."""
        self._running_links().change(name, up, rate_mbps, buffer_packets)

    def ends(self, name: str) -> LabLink:
        """Return Mininet's object of one link, with its interfaces. Raises LabError for a name that is none."""
        return self._running_links().find(name)

    def port(self, interface: str) -> tuple[Link, int]:
        """Return what a port has now, by its interface: its shape, and how many queues, each with that buffer."""
        return self._running_links().trees.port(interface)

    def port_counters(self, name: str) -> tuple[PortCounters, PortCounters]:
        """Return the counters of both ends of a link, the end named first in the link's name first."""
        return self._running_links().counters(name)

    def kill_switch(self, name: str, *, links_down: bool = False) -> None:
        """Kill a switch's daemons (`kill -9`). links_down: its links go too, as when its power goes."""
        switch = self.switch(name)
        switch.kill()
        if links_down:
            self._running_links().set_ports(switch, up=False)

    def restart_switch(self, name: str) -> None:
        """Start a killed switch again; ports, queueing disciplines and controller are as before."""
        switch = self.switch(name)
        self._running_links().set_ports(switch, up=True)
        switch.restart()

    def abandon(self) -> None:
        """Have nothing wait any more for switches that start: the lab is about to end."""
        for switch in self.net.switches:
            switch.abandoned = True

    # -- life ------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> Self:
        """Bring the fabric up, and return it; an interrupt leaves nothing behind. Raises LabError, CommandError."""
        check_machine()
        if self._record is not None:
            raise LabError(f"lab {self.lab_id} is started already")
        allow_open_files()
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> Ended:
        """End every process of the lab and remove all that was made for it. Returns what was ended."""
        with without_interrupts():
            if self._redialer is not None:
                self._redialer.stop()
                self._redialer = None
            if self._port_writer is not None:
                self._port_writer.stop()
                self._port_writer = None
            if self._nodes is not None:
                self._nodes.rest()
            # A start that was cut off while it registered is the reaper's: what is there of this name may be another's.
            ended = end_lab(self.lab_id, self._home) if self._record is not None else Ended(self.lab_id)
            if self._reaper is not None:
                if self._reaper.stdin:
                    with suppress(BrokenPipeError):
                        self._reaper.stdin.close()
                with suppress(subprocess.TimeoutExpired):  # it waits for a lock: it ends by itself afterwards
                    self._reaper.wait(REAPER_S)
                self._reaper = None
            if self._spawner is not None:
                self._spawner.reap()
                self._spawner.close()
                self._spawner = None
            if self._nodes is not None:
                self._nodes.forget()
                self._nodes = None
            self._record = self._group = None
        return ended

    def _start(self) -> None:
        # The reaper comes first: from the registration on, a launcher that is killed must not go unnoticed.
        self._reaper = start_reaper(self.lab_id)
        try:
            self._record = register(self.lab_id, place_for(self.lab_id))
        except LabError:
            self._reaper.kill()  # it would end a lab of this name, which is another's
            raise
        self._controller_port = self._given_port or free_port(self._management_address(1), CONTROLLER_PORT)
        if self._record.group is not None and enter(self._record.group):
            self._group = self._record.group
        self._spawner = Spawner(self.lab_id, self._group)
        self._nodes = Nodes(self.lab_id)
        self._make_endpoint(self._nodes, self._record)
        self._on_endpoint()
        datapath = self._datapath or best_datapath(self._notice)
        database = self.run_dir / "empty.db"
        create_database(database)
        setting = SwitchSetting(
            spawner=self._spawner,
            run_dir=self.run_dir,
            database=database,
            controller=self.controller_endpoint,
            datapath=datapath,
            notice=self._notice,
            allocator=self._allocator,
        )
        self._nodes.build(self.spec.topo(), setting)
        self._wire(self._nodes, self._record)
        self.net.start()
        self._redialer = Redialer(
            self.controller_endpoint, self._switch_addresses(), lambda name: self.switch(name).redial()
        )
        self._redialer.start()
        self._port_writer = PortWriter(
            self._running_links().trees,
            {switch.name: switch.run_dir / "db.sock" for switch in self.net.switches},
        )
        self._port_writer.start()
        for name in self.spec.down:
            self.set_link(name, up=False)
        self._record = replace(self._record, details=self._details())
        self._record.save()

    def _make_endpoint(self, nodes: Nodes, record: LabRecord) -> None:
        """Make the interface whose address switches look for a controller at."""
        prefix = ipaddress.IPv4Network(record.subnet).prefixlen
        address = f"{self._management_address(1)}/{prefix}"
        run_batch("ip", endpoint_lines(nodes.manager, record.interface, address))
        write_sysctls({f"net/ipv6/conf/{record.interface}/disable_ipv6": "1"})

    def _wire(self, nodes: Nodes, record: LabRecord) -> None:
        """Make all other interfaces, then set every namespace up in parallel."""
        net = nodes.net
        prefix = ipaddress.IPv4Network(record.subnet).prefixlen
        run_batch("ip", management_lines(net.switches, nodes.manager))
        run_batch("ip", veth_lines(net.links, self.spec.mtu))
        setups = {host.name: host_setup(host, self.tcp, self.congestion_control) for host in net.hosts}
        for name, address in self._switch_addresses().items():
            setups[name] = switch_setup(net[name], address, prefix)
            self.switch(name).database_address = address
        delayed = any(link.shape.delay_ms for link in net.links)
        self.has_netem = nodes.inside(MANAGER, netem_present).result()
        if delayed and not self.has_netem:
            self._notice("this kernel has no netem: links run without the delay that was asked for")
        self._links = RunningLinks(nodes, PortTrees(net.links, self.has_netem, nodes.inside), self._reshaped)
        for link in net.links:
            for end in (link.intf1, link.intf2):
                setups[end.node.name].tc_lines += shape_commands(end.name, link.shape, self.has_netem)
        setups[MANAGER] = manager_setup(net.switches)
        for setup in setups.values():
            setup.ip_lines.insert(0, network_mark_line(self.lab_id))
        refused = nodes.set_up(setups)
        if refused:
            self._notice(
                f"sysctls that could not be set in the lab's namespaces: {', '.join(sorted(refused))}"
            )

    def _details(self) -> dict[str, Any]:
        """Return what other programs need to find their way in this lab; writes the hosts' names too."""
        hosts = describe_hosts(self.net.hosts)
        (self.run_dir / HOSTS_FILE).write_text(hosts_file(hosts), encoding="ascii")
        return {
            "fabric": self.spec.to_dict(),
            "controller": list(self.controller_endpoint),
            "hosts": hosts,
            "switches": describe_switches(self.net.switches),
            "notices": self.notices,
        }

    # -- inner workings --------------------------------------------------------------------------

    def _started(self) -> Nodes:
        if self._nodes is None:
            raise LabError("the lab is not started: call start() first")
        return self._nodes

    def _running_links(self) -> RunningLinks:
        if self._links is None:
            raise LabError("the lab is not started: call start() first")
        return self._links

    def _reshaped(self, node: str) -> None:
        if self._port_writer is not None:
            self._port_writer.reshaped(node)

    def _notice(self, text: str) -> None:
        if text not in self.notices:
            self.notices.append(text)

    def _management_address(self, index: int) -> str:
        if self._record is None:
            raise LabError("the lab is not started: call start() first")
        return str(ipaddress.IPv4Network(self._record.subnet)[index])

    def _switch_addresses(self) -> dict[str, str]:
        """Return switches' addresses on the management network."""
        return {
            name: self._management_address(FIRST_SWITCH_ADDRESS + index)
            for index, name in enumerate(self.switches)
        }

    def _host_namespace(self, host: str) -> Namespace:
        if host not in self.hosts:
            raise LabError(f"no host {host!r} here", remedy=f"there are {', '.join(self.hosts)}")
        return self._started().namespace(host)
