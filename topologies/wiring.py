"""Mininet's hosts and links, with the commands that make them real collected into a few batches.

Mininet configures each interface by several commands in a shell per node. Here its objects only take note;
the functions below say what one `ip -batch` and one `tc -batch` per namespace have to do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from mininet.link import Intf, Link
from mininet.node import Host

from topologies.addressing import UNDERLAY_PREFIX, HostPlace, link_name, port_mac
from topologies.links import Link as LinkShape
from topologies.shells import LimitedShell

TcpProfile = Literal["linux", "ns2"]

UNDERLAY_NETWORK: Final = f"10.0.0.0/{UNDERLAY_PREFIX}"
TCP_SYSCTLS: Final[Mapping[str, Mapping[str, str]]] = {
    "linux": {"net/ipv4/tcp_no_metrics_save": "1"},
    # The papers' simulated TCP: fast retransmit after three duplicate ACKs, no RACK, no loss probe.
    "ns2": {
        "net/ipv4/tcp_no_metrics_save": "1",
        "net/ipv4/tcp_recovery": "0",
        "net/ipv4/tcp_early_retrans": "0",
        "net/ipv4/tcp_reordering": "3",
        "net/ipv4/tcp_max_reordering": "3",
    },
}
SWITCH_SYSCTLS: Final[Mapping[str, str]] = {
    "net/ipv6/conf/all/disable_ipv6": "1",
    "net/ipv6/conf/default/disable_ipv6": "1",
    "net/ipv4/ip_forward": "0",
}


class LabInterface(Intf):  # type: ignore[misc]
    """An interface that is configured by a batch, not by itself."""

    def config(self, **_params: Any) -> dict[str, Any]:
        """Do nothing: see the module's text."""
        return {}


class LabLink(Link):  # type: ignore[misc]
    """A veth pair between two namespaces, with the shape that its topology gave it."""

    def __init__(self, node1: Any, node2: Any, shape: LinkShape | None = None, **params: Any) -> None:
        self.shape = shape or LinkShape()
        for option in ("addr1", "addr2"):
            params.pop(option, None)  # Mininet's are random
        super().__init__(node1, node2, **params)
        for interface in (self.intf1, self.intf2):
            place = getattr(interface.node, "place", None)
            interface.mac = place.mac if place else port_mac(interface.name)

    @property
    def name(self) -> str:
        """Return a name like `l1-s3`."""
        return link_name(self.intf1.node.name, self.intf2.node.name)

    @property
    def lowered_end(self) -> Any:
        """Return which end takes the link down: one is enough, its peer loses its carrier.

        A host's would lose its route.
        """
        return self.intf2 if isinstance(self.intf1.node, LabHost) else self.intf1

    @classmethod
    def makeIntfPair(cls, *_args: Any, **_kwargs: Any) -> None:
        """Do nothing: made by a batch."""

    def delete(self) -> None:
        """Do nothing: a veth pair ends with its namespaces."""


class LabHost(LimitedShell, Host):  # type: ignore[misc]
    """A host of the lab: a namespace, held by Mininet's shell, marked as the lab's."""

    def __init__(self, name: str, *, lab_id: str, place: HostPlace | None = None, **params: Any) -> None:
        self.marked_lab = lab_id
        self.place = place
        super().__init__(name, **params)

    def config(self, ip: str | None = None, **_params: Any) -> dict[str, Any]:
        """Take note of the address (a batch sets it)."""
        interface = self.defaultIntf()
        if ip and interface:
            interface.ip, _, interface.prefixLen = ip.partition("/")
        return {}


@dataclass
class NamespaceSetup:
    """What has to be done inside one namespace, in this order: sysctls, ip, offloads, tc."""

    sysctls: dict[str, str] = field(default_factory=dict)
    ip_lines: list[str] = field(default_factory=list)
    offloads_off: list[str] = field(default_factory=list)
    tc_lines: list[str] = field(default_factory=list)


def veth_lines(links: Iterable[LabLink], mtu: int) -> list[str]:
    """Return lines that make all veth pairs, each end in its namespace from the start: no name appears here."""
    lines = []
    for link in links:
        first, second = (
            f"{end.name} address {end.mac} mtu {mtu} netns {end.node.pid}" for end in (link.intf1, link.intf2)
        )
        lines.append(f"link add name {first} type veth peer name {second}")
    return lines


def host_setup(host: LabHost, tcp: TcpProfile, congestion_control: str) -> NamespaceSetup:
    """Return a host's interface, route (with the congestion control of its connections) and TCP settings."""
    setup = NamespaceSetup(sysctls=dict(TCP_SYSCTLS[tcp]))
    for interface in host.intfList():
        name = interface.name
        setup.sysctls[f"net/ipv6/conf/{name}/disable_ipv6"] = "1"
        setup.offloads_off.append(name)
        setup.ip_lines.append(f"link set dev {name} up")
        if interface.ip:
            setup.ip_lines += [
                f"addr add {interface.ip}/{interface.prefixLen} dev {name} noprefixroute",
                f"route add {UNDERLAY_NETWORK} dev {name} src {interface.ip} congctl {congestion_control}",
            ]
    return setup


def switch_setup(switch: Any, address: str, prefix: int) -> NamespaceSetup:
    """Return a switch's ports, and its address on the management network."""
    return NamespaceSetup(
        sysctls=dict(SWITCH_SYSCTLS),
        ip_lines=[
            "link set dev mgmt0 up",
            f"addr add {address}/{prefix} dev mgmt0",
            *(f"link set dev {interface.name} up" for interface in switch.intfList()),
        ],
    )


def endpoint_lines(manager: Any, root_interface: str, address: str) -> list[str]:
    """Return lines that make the management network's veth pair with one end in this namespace, and give that
    its address.
    """
    return [
        f"link add name {root_interface} type veth peer name root netns {manager.pid}",
        f"addr add {address} dev {root_interface}",
        f"link set dev {root_interface} up",
    ]


def management_lines(switches: Sequence[Any], manager: Any) -> list[str]:
    """Return lines that make the management network's veth pairs to the switches."""
    return [
        f"link add name mgmt0 netns {switch.pid} type veth peer name m-{switch.name} netns {manager.pid}"
        for switch in switches
    ]


def manager_setup(switches: Sequence[Any]) -> NamespaceSetup:
    """Return the management network's bridge, in a namespace of its own."""
    ports = ["root", *(f"m-{switch.name}" for switch in switches)]
    return NamespaceSetup(
        sysctls=dict(SWITCH_SYSCTLS),
        ip_lines=[
            "link add name br0 type bridge stp_state 0 forward_delay 0",
            "link set dev br0 up",
            *(f"link set dev {port} master br0 up" for port in ports),
        ],
    )
