"""A host's agent whose policy holds flows, and its peer's: TCP packets go in and out as between host and underlay."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from host_agent.admission.unsent import Unsent
from host_agent.core import AgentCore
from host_agent.inner_packet import SYN, look
from protocol.admission import AdmissionPolicy, Finished, Grant, Request, Stop
from protocol.control import Peer
from protocol.policy import ClassPolicy, PathSettings, Policy
from protocol.sent_again import Resent
from tests.unit.agent_relay import SESSIONS, UNDERLAY
from tests.unit.inner_packets import HOST1, HOST2

PEER = UNDERLAY[1]
MTU = 1500
MSS = 1400
OVERHEAD_BYTES = (52 + 32 + 28 + 14) * 3 // 2
"""Headers of a segment on the link (IPv4 and TCP with timestamps; ours; UDP and IPv4; Ethernet), and of half an ACK."""
STALLED_S = 1.0
"""A grant without anything sent is given back after that."""
STANDING = ("flows_granted", "flows_waiting", "flows_unscheduled")


def policy_with(admission: AdmissionPolicy | None, version: int = 1) -> Policy:
    granted = ClassPolicy(PathSettings("granted"))
    return Policy(version, "test", short=granted, long=granted, control=granted, admission=admission)


def unknown(flow: bytes) -> Unsent | None:
    """Return None: no socket of this host."""
    return None


class AdmittingAgent:
    """The first host's agent. Times are seconds of a made-up clock."""

    def __init__(
        self,
        admission: AdmissionPolicy | None = None,
        overlay: tuple[str, str] = (HOST1, HOST2),
        now: float = 0.0,
    ) -> None:
        self.core, self.peer = (
            AgentCore(f"h{host + 1}", SESSIONS[host], MTU, np.random.default_rng(host), now=now)
            for host in (0, 1)
        )
        peers = [Peer(f"h{host + 1}", UNDERLAY[host], [overlay[host]], SESSIONS[host]) for host in (0, 1)]
        for core in (self.core, self.peer):
            core.set_directory(peers, now)
        self.core.set_policy(policy_with(admission or AdmissionPolicy()), now)

    def __len__(self) -> int:
        return int(self.core.counters()["admission_flows"])

    def sent(self, packet: bytes, announced: float | None, now: float, segment_bytes: int = MSS) -> None:
        """Send a packet, or a super-packet of segments, from the host; *announced*: bytes of the flow that it opens."""
        seen = look(packet)
        if packet[seen.transport + 13] & SYN and announced is not None:
            self.core.announce(seen.flow, announced)
        self.core.super_packet_from_host(packet, segment_bytes, now)
        self.core.datagrams_to_send()

    def received(self, packets: Iterable[bytes], now: float) -> list[bytes]:
        """Feed the peer these packets of its host, and return what the first host gets."""
        for packet in packets:
            self.peer.packet_from_host(packet, now)
        for datagram in self.peer.datagrams_to_send():
            self.core.receive_datagram(datagram.data, PEER, datagram.source_port, datagram.tos, now=now)
        return self.updates()

    def updates(self) -> list[bytes]:
        """Return what else the host gets."""
        return self.core.packets_to_deliver()

    def decided(self, message: Grant | Stop, now: float) -> None:
        self.core.gate.decided(message, now)

    def messages_to_send(
        self, now: float = 0.0, unsent: Callable[[bytes], Unsent | None] = unknown
    ) -> list[Request | Finished]:
        return self.core.gate.messages_to_send(now, unsent)

    def get_timer(self) -> float:
        return self.core.get_timer()

    def handle_timer(self, now: float) -> None:
        self.core.handle_timer(now)
        self.core.datagrams_to_send()

    def release(self, now: float) -> None:
        """Set the policy of another scheme, without admission."""
        self.core.set_policy(policy_with(None, version=2), now)

    def totals(self) -> dict[str, float]:
        return self.core.counters()

    def standing(self) -> dict[str, float]:
        counters = self.core.counters()
        return {name: counters[name] for name in STANDING}

    def resent(self, now: float) -> list[Resent]:
        """Return the retransmission episodes that are over."""
        return self.core.gate.resent(now)
