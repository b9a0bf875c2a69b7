"""Hosts and switches of a lab as other programs see them: addresses, names, and the process that holds each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from topologies.processes import start_time

HOSTS_FILE: Final = "hosts"
"""In a lab's directory: names and addresses of its hosts, in the format of /etc/hosts."""


def describe_hosts(hosts: Iterable[Any]) -> dict[str, dict[str, Any]]:
    """Return by name of each (Mininet) host: pid and start time of the process that holds it, and its addresses."""
    return {
        host.name: {
            "pid": host.pid,
            "start": start_time(host.pid),
            "underlay": host.place.underlay,
            "overlay": host.place.overlay,
            "overlay6": host.place.overlay6,
        }
        for host in hosts
    }


def describe_switches(switches: Iterable[Any]) -> dict[str, dict[str, Any]]:
    """Return by name of each (Mininet) switch: pid of the process that holds its namespace, and its datapath id."""
    return {switch.name: {"pid": switch.pid, "dpid": switch.dpid} for switch in switches}


def hosts_file(hosts: Mapping[str, Mapping[str, Any]]) -> str:
    """Return addresses by name: `h1` is the overlay address, `h1-v6` the IPv6 one, `h1-underlay` the one below.

    A name has one family only, so that every program takes the same one.
    """
    lines = ["127.0.0.1 localhost", "::1 localhost ip6-localhost"]
    for name, host in hosts.items():
        lines += [
            f"{host['overlay']} {name}",
            f"{host['overlay6']} {name}-v6",
            f"{host['underlay']} {name}-underlay",
        ]
    return "\n".join(lines) + "\n"
