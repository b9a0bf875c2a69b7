"""A host and its agent: real decisions, a clock of its own, a channel to the controller, and a record of packets."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import numpy as np

from controller.agents.membership import Member
from host_agent.core import AgentCore
from host_agent.underlay_datagrams import Outgoing
from protocol.admission import Finished, Grant, Request, Stop
from protocol.control import Directory, FlowTypes, Paths, SetPolicy
from protocol.frames import FrameReader
from protocol.policy import Policy
from tests.unit.fabric_shapes import SimHost
from tests.unit.inner_packets import TCP, UDP, packed, tcp, udp
from tests.world.clock import Channel, Clock

CHANNEL_S: Final = 0.001
"""Of a message between an agent and the controller, on average."""
MTU: Final = 1426
NUMBER_BYTES: Final = 8
HEADERS: Final = {UDP: 28, TCP: 40}
"""Bytes before a packet's payload, by protocol."""


@dataclass(eq=False)
class Session:
    """An agent's connection with a controller. Of messages that wait, the newest of a kind is kept."""

    host: str
    to_agent: Channel
    to_controller: Channel
    open: bool = False
    """The controller has welcomed the agent."""
    _newest: dict[str, bytes] = field(default_factory=dict)
    _cut: bool = False

    def put_newest(self, kind: str, frame: bytes, host: Host) -> None:
        self._newest[kind] = frame
        self._flush(host)

    def _flush(self, host: Host) -> None:
        if not self._cut and self.open:
            newest, self._newest = self._newest, {}
            for frame in newest.values():
                self.to_agent.send(partial(host.obey, self, frame))

    def cut(self, host: Host, reachable: bool) -> None:
        self._cut = not reachable
        for channel in (self.to_agent, self.to_controller):
            channel.mend() if reachable else channel.cut()
        self._flush(host)

    def close(self) -> None:
        self.to_agent.close()
        self.to_controller.close()


@dataclass
class Sent:
    """An inner packet: where it is to come out, and the agents' starts (receivers) that have given it to their host."""

    data: bytes
    target: str
    at: float
    came_out: Counter[int] = field(default_factory=Counter)


class WrongDeliveryError(AssertionError):
    """A host got what it should not have."""


@dataclass
class Host:
    """A host with an agent; ``core`` is None while the agent is dead."""

    place: SimHost
    overlay: str
    clock: Clock
    rng: random.Random
    sent: dict[int, Sent]
    """All hosts' packets, by number."""
    core: AgentCore | None = None
    session_number: int = 0
    reachable: bool = True
    stalled_until: float = 0.0
    session: Session | None = None
    policy_version: int = 0
    peers: frozenset[tuple[str, int]] = frozenset()
    paths: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    flow_types: FlowTypes | None = None
    problems: list[str] = field(default_factory=list)
    moved: bool = False
    """It is at another port than at first, and not everything may know that yet."""
    timer: float = float("inf")
    """When the core wants to be called, on the world's clock."""
    touched: bool = False
    """The core has been called: it may have something to send or to give to its host."""
    _reader: FrameReader = field(default_factory=FrameReader)
    _offset: float = 0.0
    """The host's clock minus the world's."""
    _held_up: list[tuple[bytes, str, int, int]] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.place.name

    def start(self) -> None:
        """Start the agent's process (again)."""
        self.session_number = self.rng.randrange(1 << 32)
        self._offset = self.rng.choice((0.0, -999.0, 1e6, self.rng.random() * 1e5))
        self.policy_version, self.peers, self.paths, self.flow_types = 0, frozenset(), {}, None
        self._reader = FrameReader()
        self._held_up.clear()
        self.stalled_until = 0.0
        seed = np.random.default_rng(self.rng.randrange(1 << 32))
        self.core = AgentCore(self.name, self.session_number, MTU, seed, now=self._now())
        self._touched()

    def end(self) -> None:
        """Kill the agent's process."""
        self.core, self.timer = None, float("inf")
        if self.session is not None:
            self.session.close()
            self.session = None

    def member(self) -> Member:
        place = self.place
        return Member(place.name, place.ipv4, place.mac, (self.overlay,), self.session_number, "0.1.0")

    def new_channel(self) -> None:
        """Begin anew with what comes on the channel."""
        self._reader = FrameReader()

    # What the controller says

    def welcomed(self, session: Session) -> None:
        """Connect the agent's gate: the controller has let the agent in, and listens."""
        if self.session is session and self.core is not None:
            self.core.gate.connected(self._now())
            self._touched()

    def questions(self) -> list[Request | Finished]:
        """Return what the agent asks the controller now."""
        return [] if self.core is None else self.core.gate.messages_to_send(self._now(), lambda flow: None)

    def obey(self, session: Session, frame: bytes) -> None:
        """Do with a frame of the channel what the agent's shell does."""
        if self.session is not session or self.core is None:
            return
        for message in self._reader.feed(frame):
            match message:
                case SetPolicy(document):
                    policy = Policy.from_dict(document)
                    self.core.set_policy(policy, self._now())
                    self.policy_version = policy.version
                    session.to_controller.send(lambda: None)  # PolicyApplied
                case Directory(peers):
                    self.core.set_directory(peers, self._now())
                    self.peers = frozenset((peer.host, peer.session) for peer in peers)
                case FlowTypes():
                    self.core.set_flow_types(message)
                    self.flow_types = message
                case Grant() | Stop():
                    self.core.gate.decided(message, self._now())
                case Paths(paths, by_class):
                    self.core.set_paths(paths, by_class)
                    self.paths = paths
                case _:
                    raise AssertionError(f"an agent gets no {message.type}")
        self._touched()

    # Packets

    def send(self, target: Host, size: int, ports: tuple[int, int]) -> None:
        """Send a UDP packet with *size* bytes of payload from an application of this host."""
        if self.core is None:
            return
        number = len(self.sent)
        payload = number.to_bytes(NUMBER_BYTES, "big") + bytes(max(0, size - NUMBER_BYTES))
        packet = udp(payload, self.overlay, target.overlay, ports=ports)
        self.sent[number] = Sent(packet, target.name, self.clock.now)
        self.core.packet_from_host(packet, self._now())
        self._touched()

    def send_tcp(self, target: Host, size: int, ports: tuple[int, int], sequence: int, flags: int) -> None:
        """Send a segment of a TCP connection of this host; with *size* 0 the connection begins or ends."""
        if self.core is None:
            return
        payload = b""
        if size:
            number = len(self.sent)
            payload = number.to_bytes(NUMBER_BYTES, "big") + bytes(max(0, size - NUMBER_BYTES))
        packet = tcp(payload, self.overlay, target.overlay, ports=ports, sequence=sequence, flags=flags)
        if size:
            self.sent[number] = Sent(packet, target.name, self.clock.now)
        self.core.packet_from_host(packet, self._now())
        self._touched()

    def datagram(self, data: bytes, sender: str, source_port: int, tos: int) -> None:
        """Handle a datagram that arrives at the host."""
        if self.core is None:
            return
        if self.clock.now < self.stalled_until:
            self._held_up.append((data, sender, source_port, tos))
            return
        self.core.receive_datagram(data, sender, source_port, tos, now=self._now())
        self._touched()

    def stall(self, seconds: float) -> None:
        """Give the process no processor for so many seconds; its clock goes on."""
        self.stalled_until = self.clock.now + seconds
        self.timer = self.stalled_until

    def on_timer(self) -> None:
        """Call the core: its time has come, or the end of a stall."""
        assert self.core is not None
        held_up, self._held_up = self._held_up, []
        for one in held_up:
            self.core.receive_datagram(*one, now=self._now())
        self.core.handle_timer(self._now())
        self._touched()
        if self.timer <= self.clock.now:
            raise AssertionError(f"{self.name}: a timer that is due for ever would spin")

    def outgoing(self) -> list[Outgoing]:
        """Return the datagrams that the agent sends now."""
        return [] if self.core is None else self.core.datagrams_to_send()

    def collect(self) -> None:
        """Take what the agent gives to its host. Raises WrongDeliveryError."""
        if self.core is None:
            return
        for packet in self.core.packets_to_deliver():
            if packet[0] >> 4 != 4 or packet[9] not in HEADERS or len(packet) == HEADERS[packet[9]]:
                continue  # an ICMP error for what could not be sent, or the end of a TCP connection
            begin = HEADERS[packet[9]]
            number = int.from_bytes(packet[begin : begin + NUMBER_BYTES], "big")
            sent = self.sent.get(number)
            if sent is None or sent.data != packet:
                raise WrongDeliveryError(f"{self.name} got a packet that was never sent: {packet[:48].hex()}")
            if sent.target != self.name or packet[16:20] != packed(self.overlay):
                raise WrongDeliveryError(f"{self.name} got packet {number}, which is for {sent.target}")
            sent.came_out[self.session_number] += 1
            if sent.came_out[self.session_number] > 1:
                raise WrongDeliveryError(f"{self.name} got packet {number} twice")

    def _now(self) -> float:
        return self.clock.now + self._offset

    def _touched(self) -> None:
        """Set the timer: the core may want to be called at another time."""
        assert self.core is not None
        self.touched = True
        timer = self.core.get_timer() - self._offset
        # Two clocks differ by what floating-point numbers lose: the core must not be called too soon for ever.
        self.timer = max(self.stalled_until, timer + 1e-6)
