"""How a deployment starts the controller and the hosts' agents."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from topologies.addressing import OVERLAY6_PREFIX, OVERLAY_PREFIX, HostPlace


@dataclass(frozen=True, slots=True)
class AgentOptions:
    """What is the same for all agents. path_policy: a file that ``entropy: file`` means; None: no such policy."""

    underlay_mtu: int
    congestion_control: str
    path_policy: Path | None


def controller_command(
    data: Path,
    openflow: tuple[str, int],
    *,
    agents_socket: Path,
    token_file: Path,
    database: str | None,
    queue: bool = False,
) -> list[str]:
    """Return the command line of a lab's own controller, without the address of its API.

    data: its directory; openflow: address and port for switches; database: SQLAlchemy URL, None: a file in *data*.
    queue: experiments may be submitted to it, for the workers that others start.
    """
    address, port = openflow
    argv = [sys.executable, "-m", "controller", "--lab"]
    if queue:
        argv = [sys.executable, "-m", "cli", "serve", "--lab", "--experiments", "--labs", "0"]
        argv += ["--simulations", "0"]
    argv += ["--data", str(data), "--openflow", f"{address}:{port}", "--openflow-without-tls"]
    argv += ["--agents-socket", str(agents_socket), "--token-file", str(token_file)]
    return argv if database is None else [*argv, "--database", database]


def agent_command(
    place: HostPlace, agents_socket: Path, token_file: Path, options: AgentOptions
) -> list[str]:
    """Return the command line of the agent of a host; its TUN device outlives it."""
    argv = [sys.executable, "-m", "host_agent", "--host", place.name]
    argv += ["--interface", f"{place.name}-eth0", "--underlay-ip", place.underlay]
    argv += ["--overlay", f"{place.overlay}/{OVERLAY_PREFIX}"]
    argv += ["--overlay", f"{place.overlay6}/{OVERLAY6_PREFIX}"]
    argv += ["--underlay-mtu", str(options.underlay_mtu)]
    argv += ["--congestion-control", options.congestion_control]
    argv += ["--controller", f"unix:{agents_socket}", "--token-file", str(token_file), "--keep-tun"]
    if options.path_policy is not None:
        argv += ["--path-policy", str(options.path_policy.absolute())]
    return argv
