"""A host's agent, and what carries packets between it and the kernel."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from capstan_native._moving import DatagramReceiver, TunReader
from capstan_native._paths import Load

from host_agent.admission.unsent import Unsent
from host_agent.paths.base import PathPolicy
from protocol.policy import Policy

class HostCore:
    """One host's agent: `host_agent.core.AgentCore` is its door. *seed*: of all randomness; times in seconds of one
    monotonic clock, addresses in 4 or 16 bytes, flows as `InnerPacket.flow`.

    What a path policy in Python raises comes out of the call that asked it.
    """

    def __init__(
        self, policy: Policy, session: int, mtu: int, broadcasts: Sequence[bytes], seed: int, now: float
    ) -> None: ...
    def set_policy(self, policy: Policy, file: PathPolicy | None, now: float) -> None:
        """Act on a policy document; *file*: what decides its classes with `entropy: file`."""

    def set_directory(
        self, peers: Sequence[tuple[bytes, int, str, Sequence[bytes]]], own: Sequence[bytes] | None
    ) -> None:
        """The other agents: underlay address, session, leaf, overlay addresses; and our own (None: not named)."""

    def set_keys(self, keys: Mapping[bytes, tuple[int, Sequence[tuple[int, bytes]]]]) -> None:
        """By a peer's underlay address: the number of the key to send by, and all keys (16 B) with their numbers.

        No keys: datagrams are not authenticated.
        """

    def set_paths(
        self, paths: Mapping[str, Sequence[int]], by_class: Mapping[str, Sequence[int]]
    ) -> None: ...
    def path_load(self, now: float) -> Load | None: ...
    def set_path_load(self, load: Load, now: float) -> None: ...
    def set_flow_types(self, features: Sequence[str], values: Sequence[tuple[bytes, Sequence[int]]]) -> None:
        """Thresholds (bytes) by the bytes of the features' values; no features: there are no types."""

    def packet_from_host(self, packet: bytes, now: float) -> None: ...
    def super_packet_from_host(self, packet: bytes, size: int, now: float) -> None: ...
    def receive_datagram(
        self, data: bytes, address: bytes, source_port: int, tos: int, now: float
    ) -> None: ...
    def handle_timer(self, now: float) -> None: ...
    def timer(self) -> float: ...
    def datagrams_to_send(self) -> list[tuple[str, int, int, int, bytes]]:
        """Return the fields of each `host_agent.underlay_datagrams.Outgoing`."""

    def packets_to_deliver(self) -> list[bytes]: ...
    def counters(self) -> dict[str, int]: ...
    def announce(self, flow: bytes, size: float) -> None: ...
    def decided(self, decision: tuple[int, int, int, int, int], now: float) -> None:
        """Take in a decision of the controller: its number, the flow's, the answered request's, rate (bit/s; 0: the
        flow has to wait) and stamp of the path (0: none of its own)."""

    def connected(self, now: float) -> None:
        """Ask for all flows again."""

    def late(self, late_s: float, now: float) -> None: ...
    def admission_messages(
        self, backlog: Callable[[bytes], Unsent | None], now: float
    ) -> list[tuple[int, int, tuple[str, int] | None]]:
        """Return messages for the controller, each once: number, flow, and of a request where the flow goes (underlay
        address) and the bytes left. *backlog*: what the socket of a flow holds; what it raises is raised."""

    def episodes(self, now: float) -> list[dict[str, Any]]:
        """Return the fields of each `protocol.sent_again.Resent`, each once."""

    def take_latencies(self) -> list[float]:
        """Return how long decisions took since the last call, in seconds."""

    def blocking_probability(self, now: float) -> list[tuple[bytes, float]]:
        """By underlay address."""

    def finished_flows(self, most: int) -> list[tuple[bytes, int, float, float]]:
        """Flow, payload in bytes, beginning and end of flows that have ended, the oldest *most*; each is given once."""

    def flow_report(self, forget: bool) -> list[dict[str, Any]]:
        """Return the fields of each `protocol.control.FlowEntry`."""

    def active_flows(self, since: float, most: int) -> tuple[list[dict[str, Any]], int]: ...

class Carrier:
    """Moves packets between a TUN device with IFF_VNET_HDR, the underlay's sockets and the core.

    *device*: its reader and descriptor. *underlay*: receiver, descriptor of the raw socket, those of the others.
    *source*: our address there. *epoll*: knows all of them.
    """

    def __init__(
        self,
        device: tuple[TunReader, int],
        underlay: tuple[DatagramReceiver, int, Sequence[int]],
        source: bytes,
        epoll: int,
    ) -> None: ...
    def carry(self, core: HostCore, deadline: float) -> list[int]:
        """Carry packets until *deadline* (seconds of `time.monotonic`), until another descriptor is ready, or until the
        controller is to be asked: then what was decided is still to be flushed.

        Returns the descriptors that are, and the device's if it gave a packet of a rare kind, which is still to be
        read. Other threads run meanwhile. Raises OSError, and what a path policy in Python raises.
        """

    def flush(self, core: HostCore) -> None:
        """Send and deliver what the core has decided elsewhere."""

    @property
    def unsent(self) -> int:
        """Datagrams that found no room in the socket, or no route."""

    @property
    def refused(self) -> int:
        """Writes that the kernel refused."""
