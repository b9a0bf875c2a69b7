"""What a host agent is configured with."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from capstan_client.errors import CapstanError
from protocol.datagram import OVERLAY_OVERHEAD_BYTES


class ConfigError(CapstanError, ValueError):
    """A setting that cannot be; the text names it."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where the controller is: a Unix socket, or host and port under TLS."""

    unix: Path | None = None
    host: str = ""
    port: int = 0

    @classmethod
    def parse(cls, text: str) -> Endpoint:
        """Return the address that ``unix:PATH`` or ``tls:HOST:PORT`` names. Raise ConfigError."""
        kind, _, rest = text.partition(":")
        if kind == "unix" and rest:
            return cls(unix=Path(rest))
        host, _, port = rest.rpartition(":")
        if kind == "tls" and host and port.isdigit() and 0 < int(port) < 65536:
            return cls(host=host.strip("[]"), port=int(port))
        raise ConfigError(f"controller {text!r} is neither unix:PATH nor tls:HOST:PORT")

    def __str__(self) -> str:
        return f"unix:{self.unix}" if self.unix else f"tls:{self.host}:{self.port}"


MOST_MTU: Final = 65_535
"""Bytes: loopback's 65 536 is one too many for a packet, so repairs of the largest packets would not leave."""


@dataclass(frozen=True, slots=True)
class AgentConfig:
    """One agent.

    interface, underlay_ip: of the fabric. overlay: our addresses behind the TUN device, with prefix lengths.
    token: shared with the controller. ca: certificate of the controller's authority (TLS).
    underlay_mtu: bytes. congestion_control: of connections over the overlay; None: the kernel's.
    offloads: False for plain TUN reads. seed: of all randomness; None: the system's.
    path_policy: file of a path policy of the operator's own, for schemes with ``entropy: file``.
    keep_tun: whether the TUN device outlives an agent that is killed.
    """

    host: str
    interface: str
    underlay_ip: str
    overlay: tuple[str, ...]
    controller: Endpoint
    token: str
    ca: Path | None = None
    tun: str = "capstan0"
    underlay_mtu: int = 1500
    offloads: bool = True
    congestion_control: str | None = None
    seed: int | None = None
    path_policy: Path | None = None
    keep_tun: bool = False

    def __post_init__(self) -> None:
        try:
            ipaddress.IPv4Address(self.underlay_ip)
            for address in self.overlay:
                ipaddress.ip_interface(address)
        except ValueError as error:
            raise ConfigError(f"agent {self.host!r}: {error}") from None
        if not self.overlay:
            raise ConfigError(f"agent {self.host!r} needs at least one overlay address")
        if self.overlay_mtu < 1280:
            raise ConfigError(
                f"underlay MTU {self.underlay_mtu} B leaves {self.overlay_mtu} B inside the tunnel",
                remedy="raise it: IPv6 needs 1280 B",
            )
        if self.underlay_mtu > MOST_MTU:
            raise ConfigError(
                f"underlay MTU {self.underlay_mtu} B is more than an IPv4 packet has",
                remedy=f"lower it to {MOST_MTU} B at most",
            )

    @property
    def broadcasts(self) -> frozenset[bytes]:
        """Return the broadcast addresses of the overlay's IPv4 networks."""
        networks = [ipaddress.ip_interface(address).network for address in self.overlay]
        return frozenset(
            network.broadcast_address.packed
            for network in networks
            if network.version == 4 and network.prefixlen < 31
        )

    @property
    def overlay_mtu(self) -> int:
        """Return the bytes of the largest inner packet: a repair of it fits the underlay too."""
        return self.underlay_mtu - OVERLAY_OVERHEAD_BYTES
