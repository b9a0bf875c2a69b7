"""The agent's decisions, on plain data: packets and datagrams in, datagrams and packets out, time passed in.

They are compiled (`native/agent`); here is what is rare: policy documents, the directory, reports, impairments. Times
are seconds of one monotonic clock.
"""

from __future__ import annotations

import heapq
import ipaddress
import re
import socket
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from ipaddress import ip_address
from operator import itemgetter
from typing import Final

from capstan_native import HostCore

from host_agent.addresses import packed, text
from host_agent.admission.gate import Gate
from host_agent.impairment import Impairment
from host_agent.inner_packet import addresses, ports
from host_agent.paths.own import OwnPathPolicy
from host_agent.paths.steering import check, load_of, path_load
from host_agent.randomness import RandomSource
from host_agent.underlay_datagrams import Arrived, Outgoing
from protocol.control import (
    MOST_FLOWS,
    DatagramKeys,
    FinishedFlows,
    FlowEntry,
    FlowTypes,
    Impair,
    PathLoad,
    Peer,
)
from protocol.policy import DEFAULT_POLICY, Policy
from protocol.priority import types_problem

MOST_VALUES: Final = 65536
"""Values of types that are kept."""
NEVER: Final = 1 << 62
"""More bytes than any flow sends."""
MOST_FINISHED: Final = 512
"""Ended flows in one message: reading it is not to hold up the controller."""
MOST_BLOCKING: Final = 256
"""Peers of which pB is reported: the controller takes 512 counters of an agent."""


class AgentCore:
    """One host's agent.

    Args:
        host: our name in the directory.
        session: the random number of this start, as the controller knows it.
        mtu: bytes of the largest inner packet.
        rng: all randomness there is.
        broadcasts: broadcast addresses of the overlay, 4 bytes each.
        own_path: what ``entropy: file`` means here.
    """

    def __init__(
        self,
        host: str,
        session: int,
        mtu: int,
        rng: RandomSource,
        *,
        now: float = 0.0,
        broadcasts: frozenset[bytes] = frozenset(),
        own_path: OwnPathPolicy | None = None,
    ) -> None:
        self.host = host
        self.mtu = mtu
        self.policy: Policy = DEFAULT_POLICY
        self._first_after_end = False
        """Whether the next policy is the first since a channel has ended."""
        self._rng = rng
        self._own_path = own_path
        seed = int(rng.integers(1 << 63))
        self._core = HostCore(DEFAULT_POLICY, session, mtu, [*broadcasts], seed, now)
        self._types: FlowTypes | None = None
        self._types_refused = 0
        self._records_dropped = 0
        self._impairment: Impairment[Arrived] | None = None
        self._hosts: dict[bytes, str] = {}
        """Names of peers by their underlay addresses."""
        self.gate = Gate(self._core)
        """Of flows that ask the controller before they send."""

    # -- what the controller says --------------------------------------------------------------------

    def set_policy(self, policy: Policy, now: float) -> None:
        """Act on this policy from the next packet on; flows, positions and numbers go on. Raises PolicyError.

        A controller says it anew on every connection: nothing changes by the one that is in force, nor, as the first
        after a connection's end, by one that differs in its version alone: a controller that was started again takes
        the next version. Within a connection such a policy begins anew, as each run does.
        """
        again, self._first_after_end = self._first_after_end, False
        if policy == self.policy:
            return
        if again and replace(policy, version=self.policy.version) == self.policy:
            self.policy = policy
            self._use_types()
            return
        file = None
        if check(policy, self._own_path) and self._own_path is not None:
            file = self._own_path(self._rng, policy.packet_time_s)
        self._core.set_policy(policy, file, now)
        self.policy = policy
        self._use_types()

    def set_directory(self, peers: Sequence[Peer], now: float) -> None:
        """Set the agents that there are, by overlay address; what those that are gone send is dropped."""
        own, others = None, []
        self._hosts = {}
        for peer in peers:
            if peer.host == self.host:
                own = [packed(address) for address in peer.overlay]
                continue
            address = socket.inet_aton(peer.underlay_ip)
            self._hosts[address] = peer.host
            others.append((address, peer.session, peer.leaf, [packed(overlay) for overlay in peer.overlay]))
        self._core.set_directory(others, own)

    def set_keys(self, message: DatagramKeys | None) -> None:
        """Authenticate datagrams by these keys from now on, and take none that are not; None: none is authenticated.

        What is no key is left out, and nothing is taken from that peer. Raises ValueError for an address that is none.
        """
        keys = {}
        for address, numbered in ({} if message is None else message.keys).items():
            usable = [
                (int(number), bytes.fromhex(key)) for number, key in numbered.items() if _is_key(number, key)
            ]
            keys[ipaddress.IPv4Address(address).packed] = (
                0 if message is None else message.sending % 256,
                usable,
            )
        self._core.set_keys(keys)

    def set_paths(
        self, paths: Mapping[str, tuple[int, ...]], by_class: Mapping[str, tuple[int, ...]]
    ) -> None:
        """Set which paths are alive from our leaf (`protocol.control.Paths`); path policies keep to them."""
        self._core.set_paths(_stamps(paths), _stamps(by_class))

    def path_load(self, now: float) -> PathLoad | None:
        """Return what the other agents of our leaf are to know of us; None: no path policy shares anything."""
        load = self._core.path_load(now)
        return None if load is None else path_load(load)

    def set_path_load(self, load: PathLoad, now: float) -> None:
        """Set what the other agents of our leaf have together on its paths, from now on."""
        self._core.set_path_load(load_of(load), now)

    def disconnected(self, now: float) -> None:
        """Forget what other agents have on our paths: the channel has ended, and the next one begins with nothing."""
        self._first_after_end = True
        self.set_path_load(PathLoad({}, {}), now)

    def set_flow_types(self, types: FlowTypes) -> None:
        """Set types of flows with thresholds of their own; in force from each flow's next packet on."""
        self._types = types
        self._use_types()

    def _use_types(self) -> None:
        types, priority = self._types, self.policy.priority
        if types is None or types.version != self.policy.version:
            self._core.set_flow_types([], [])
            return
        if not priority.predicted or types_problem(types.features, types.types, priority):
            self._types_refused += 1
            self._core.set_flow_types([], [])
            return
        values: list[tuple[bytes, list[int]]] = []
        for flow_type in types.types:
            for value in flow_type.values[: MOST_VALUES - len(values)]:
                key = _value(types.features, value)
                if key is not None:
                    values.append((key, [min(threshold, NEVER) for threshold in flow_type.thresholds_bytes]))
        self._core.set_flow_types([*types.features], values)

    def finished_flows(self, now: float) -> FinishedFlows | None:
        """Return flows of our host that ended since the last time, where the policy predicts; None: none did."""
        flows = self._core.finished_flows(MOST_FINISHED)
        if not flows:
            return None
        between = [addresses(key) for key, _, _, _ in flows]
        places = [ports(key) for key, _, _, _ in flows]
        return FinishedFlows(
            now_s=now,
            protocol=[key[0] for key, _, _, _ in flows],
            source=[text(source) for source, _ in between],
            source_port=[port for port, _ in places],
            destination=[text(destination) for _, destination in between],
            destination_port=[port for _, port in places],
            bytes=[payload for _, payload, _, _ in flows],
            start_s=[first for _, _, first, _ in flows],
            end_s=[end for _, _, _, end in flows],
        )

    def set_impairment(self, setting: Impair) -> None:
        """Impair arriving datagrams from now on; all zero: stop. Those delayed already still come in their time."""
        if self._impairment is None:
            self._impairment = Impairment(setting, self._rng)
        else:
            self._impairment.set(setting)

    def announce(self, key: bytes, size: float) -> None:
        """Note that the host will send *size* bytes of payload on this flow (`InnerPacket.flow`); `math.inf`:
        without end.
        """
        self._core.announce(key, size)

    @property
    def compiled(self) -> HostCore | None:
        """Return what may take packets directly; None while Python has to see each of them."""
        harmed = self._impairment is not None and (self._impairment.harmful or self._impairment.deadline())
        return None if harmed else self._core

    # -- what happens --------------------------------------------------------------------------------

    def packet_from_host(self, packet: bytes, now: float) -> None:
        """Take in an inner IP packet that the host sends into the overlay."""
        self._core.packet_from_host(packet, now)

    def super_packet_from_host(self, packet: bytes, size: int, now: float) -> None:
        """Take in a TCP packet that the host left us to cut into segments of *size* bytes of payload."""
        self._core.super_packet_from_host(packet, size, now)

    def receive_datagram(
        self, data: bytes, underlay_ip: str, source_port: int, tos: int, *, now: float
    ) -> None:
        """Take a datagram that came from the underlay, from any sender."""
        if self._impairment is None or not self._impairment.harmful:
            self._core.receive_datagram(data, socket.inet_aton(underlay_ip), source_port, tos, now)
            return
        for item in self._impairment.arrive(Arrived(data, underlay_ip, source_port, tos), now):
            self._harmed(item, now)

    def _harmed(self, item: Arrived, now: float) -> None:
        assert self._impairment is not None
        data, address = self._impairment.damage(item.data), socket.inet_aton(item.underlay_ip)
        self._core.receive_datagram(data, address, item.source_port, item.tos, now)

    def handle_timer(self, now: float) -> None:
        """Do what is due: to be called when `get_timer`'s time has come, harmless at any other."""
        if self._impairment is not None:
            for item in self._impairment.due(now):
                self._harmed(item, now)
        self._core.handle_timer(now)

    # -- what follows --------------------------------------------------------------------------------

    def get_timer(self) -> float:
        """Return when `handle_timer` wants to be called, seconds on the clock of its *now*."""
        harmed = None if self._impairment is None else self._impairment.deadline()
        timer = self._core.timer()
        return timer if harmed is None else min(timer, harmed)

    def datagrams_to_send(self) -> list[Outgoing]:
        """Return datagrams for the underlay, in order; each is given once."""
        return [Outgoing(*datagram) for datagram in self._core.datagrams_to_send()]

    def packets_to_deliver(self) -> list[bytes]:
        """Return inner packets for the host, in order; each is given once."""
        return self._core.packets_to_deliver()

    def counters(self) -> dict[str, float]:
        """Return totals since the start, by name."""
        totals: Counter[str] = Counter(self._core.counters())
        totals["flow_types_refused"] += self._types_refused
        totals["flow_records_dropped"] += self._records_dropped
        totals.update(self.gate.counters())
        return dict(totals)

    def blocking_probability(self, now: float) -> dict[str, float]:
        """Return the estimated blocking probability towards each peer (by host name), where coding needs one."""
        return {self._hosts[address]: pb for address, pb in self._core.blocking_probability(now)}

    def blocking_gauges(self, now: float) -> dict[str, float]:
        """Return `blocking_probability` as counters; with more than `MOST_BLOCKING` peers the largest."""
        known = self.blocking_probability(now).items()
        return {
            f"blocking_probability.{host}": round(probability, 4)
            for host, probability in heapq.nlargest(MOST_BLOCKING, known, key=itemgetter(1))
        }

    def flow_report(self, forget: bool) -> list[FlowEntry]:
        """Return what was counted of each flow since the last report that forgot; what is more than `MOST_FLOWS` is
        dropped, and counted if it is forgotten.
        """
        entries = self._core.flow_report(forget)
        if forget:
            self._records_dropped += max(0, len(entries) - MOST_FLOWS)
        return [FlowEntry(**entry) for entry in entries[:MOST_FLOWS]]

    def active_flows(self, since: float, most: int) -> tuple[list[FlowEntry], int]:
        """Return flows with a packet since then (seconds), at most *most*, those that have carried the most first; and
        how many more.
        """
        entries, more = self._core.active_flows(since, most)
        return [FlowEntry(**entry) for entry in entries], more


def _stamps(paths: Mapping[str, Sequence[int]]) -> dict[str, list[int]]:
    return {name: [stamp for stamp in stamps if 0 <= stamp <= 0xFFFF] for name, stamps in paths.items()}


def _value(features: Sequence[str], value: Sequence[str]) -> bytes | None:
    """Return the bytes of a value's texts; None where one is no address or port, which no flow has."""
    bytes_ = b""
    for name, feature_value in zip(features, value, strict=True):
        try:
            bytes_ += (
                int(feature_value).to_bytes(2, "big")
                if name.endswith("_port")
                else ip_address(feature_value).packed
            )
        except (ValueError, OverflowError):
            return None
    return bytes_


def _is_key(number: str, key: str) -> bool:
    return number.isdecimal() and int(number) < 256 and re.fullmatch("[0-9a-f]{32}", key) is not None
