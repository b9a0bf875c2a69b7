"""The loop that moves bytes: TUN device, underlay sockets, control channel, timer. It decides nothing."""

from __future__ import annotations

import gc
import logging
import math
import os
import secrets
import select
import signal
import time
from types import FrameType
from typing import Final

import capstan_native

from host_agent.admission.closed_windows import closed_windows, segment_outside_window
from host_agent.admission.unsent import Unsent, UnsentBytes
from host_agent.announcements import Announcements
from host_agent.channel import Channel, Connected, Disconnected, Received
from host_agent.config import AgentConfig
from host_agent.core import AgentCore
from host_agent.inner_packet import PacketError, is_opening
from host_agent.paths.own import read_path_policy
from host_agent.randomness import StandardRandom
from host_agent.tun import Tun
from host_agent.underlay import Underlay, announce, mac_of, mtu_of
from protocol.admission import Grant, Stop
from protocol.control import (
    ActiveFlows,
    Counters,
    Crash,
    DatagramKeys,
    Directory,
    FlowReport,
    FlowTypes,
    Impair,
    PathLoad,
    Paths,
    PolicyApplied,
    Report,
    SetPolicy,
    WatchFlows,
)
from protocol.limits import ERROR_CHARS
from protocol.policy import Policy, PolicyError
from protocol.sent_again import SentAgain
from protocol.version import VERSION

_LOG: Final = logging.getLogger(__name__)
COUNTERS_EVERY_S: Final = 1.0
SHARE_EVERY_S: Final = 0.05
"""How often the controller gets what we have on our paths, where a path policy shares it."""
FINISHED_EVERY_S: Final = 0.5
"""How often the controller gets the flows that have ended, where the policy predicts."""
ANNOUNCE_EVERY_S: Final = 10.0
_WINDOW_SEQUENCES: Final = (0, 1 << 31)
"""Of the segments upon which peers state closed windows again: one for each round, a second apart."""
_MOST_READS: Final = 4
_SMALL_MTU: Final = (
    "interface %s has an MTU of %d B, so datagrams of up to %d B are lost there: raise it, or give agents "
    "--underlay-mtu %d"
)


class Agent:
    """One host's agent, running: `run` returns after SIGTERM or SIGINT."""

    def __init__(self, config: AgentConfig) -> None:
        self._config = config
        session = secrets.randbits(32)
        now = time.monotonic()
        self._core = AgentCore(
            config.host,
            session,
            config.overlay_mtu,
            StandardRandom(config.seed),
            now=now,
            broadcasts=config.broadcasts,
            own_path=read_path_policy(config.path_policy) if config.path_policy is not None else None,
        )
        self._underlay = Underlay(config.underlay_ip, config.underlay_mtu)
        try:
            # before the device, which would outlive what these refuse where it is kept
            self._channel = Channel(config, session, mac_of(config.interface), VERSION)
            if (mtu := mtu_of(config.interface)) < config.underlay_mtu:
                _LOG.warning(_SMALL_MTU, config.interface, mtu, config.underlay_mtu, mtu)
            self._tun = Tun(
                config.tun,
                config.overlay,
                config.overlay_mtu,
                offloads=config.offloads,
                congestion_control=config.congestion_control,
                persistent=config.keep_tun,
            )
        except BaseException:
            self._underlay.close()
            raise
        self._announcements: Announcements | None = None
        try:
            self._announcements = Announcements()
        except OSError as error:
            _LOG.warning("sizes of flows cannot be announced here, is there another agent? %s", error)
        self._stopping = False
        self._refused = 0
        self._carrier: capstan_native.Carrier | None = None
        self._unsent: UnsentBytes | None = None
        try:
            self._unsent = UnsentBytes()
        except OSError as error:
            _LOG.warning("the kernel does not say what the host's sockets hold unsent: %s", error)
        self._next_share = math.inf
        self._next_finished = math.inf
        self._watch = WatchFlows(0.0, 0)
        self._next_watch = math.inf
        self._watched_until = 0.0
        """Up to when the controller has got active flows."""
        self._shared: PathLoad | None = None
        """What the controller got last."""
        self._dropped = 0
        """How many messages the channel had dropped by then: if there are more, what was shared may be one of them."""
        self._sequences = list(_WINDOW_SEQUENCES) if self._tun.taken_over else []
        """Still to ask with. An agent whose device is new has no predecessor whose connections go on."""
        self._has_peers = False

    def run(self) -> None:
        """Carry packets until a signal to stop; leaves no device behind."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        wake_read, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        self._channel.start()
        _LOG.info(
            "%s carries %s over %s, %s",
            self._config.host,
            ", ".join(self._config.overlay),
            self._config.underlay_ip,
            "super-packets" if self._tun.super_packets else "a packet at a time (no IFF_VNET_HDR here)",
        )
        try:
            self._loop(wake_read)
        finally:
            signal.set_wakeup_fd(-1)
            self._channel.stop()
            self._tun.close()
            self._underlay.close()
            if self._announcements is not None:
                self._announcements.close()

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self._stopping = True

    def _loop(self, wake_read: int) -> None:
        core, tun, underlay = self._core, self._tun, self._underlay
        poll = select.epoll()
        for fd in (tun.fd, self._channel.wake_fd, wake_read, *underlay.sockets):
            poll.register(fd, select.EPOLLIN)
        announcements = self._announcements
        if announcements is not None:
            poll.register(announcements.fd, select.EPOLLIN)
        next_counters = next_announcement = time.monotonic() + COUNTERS_EVERY_S
        gc.collect()
        gc.freeze()  # what is here stays: no collection has to look at it again
        deadline = next_counters
        timer = min(core.get_timer(), deadline)
        reads = 1  # a lone packet goes on at once: to ask for more would only delay it
        tun_fd, wake_fd, receive = tun.fd, self._channel.wake_fd, underlay.receive
        carrier = self._carrier = underlay.carrier(tun, poll.fileno())
        while not self._stopping:
            if core.compiled is not None and tun.super_packets:
                events = carrier.carry(core.compiled, deadline)
            else:
                events = [fd for fd, _ in poll.poll(max(0.0, timer - time.monotonic()))]
                if (late_s := time.monotonic() - timer) > 0:
                    core.gate.late(late_s, timer + late_s)
            now = time.monotonic()
            for fd in events:
                if fd == tun_fd:
                    reads = min(_MOST_READS, 2 * reads) if self._read_tun(reads, now) == reads else 1
                elif fd == wake_fd:
                    for message in self._channel.messages():
                        self._handle(message, now)
                elif announcements is not None and fd == announcements.fd:
                    self._read_announcements()
                elif fd != wake_read:
                    for item in receive(fd):
                        core.receive_datagram(*item, now=now)
            self._put_out()
            timer = core.get_timer()
            if now >= timer:
                core.handle_timer(now)
                self._put_out()
                timer = core.get_timer()
            now = time.monotonic()
            if now >= next_counters:
                next_counters = now + COUNTERS_EVERY_S
                self._ask_for_windows(now)
                self._channel.send(Counters(self._counters(now)))
                resent = core.gate.resent(now)
                if resent:
                    self._channel.send(*SentAgain.parts(now, resent))
                if now >= next_announcement:
                    next_announcement = now + ANNOUNCE_EVERY_S
                    announce(self._config.interface, self._config.underlay_ip)
            if now >= self._next_finished:
                self._next_finished = now + FINISHED_EVERY_S
                finished = core.finished_flows(now)
                if finished is not None:
                    self._channel.send(finished)
            if now >= self._next_share:
                self._share(now)
            if now >= self._next_watch:
                self._send_flows(now)
            deadline = min(next_counters, self._next_finished, self._next_share, self._next_watch)
            timer = min(timer, deadline)

    def _put_out(self) -> None:
        # before the packets: while they wake others, the controller decides
        for message in self._core.gate.messages_to_send(time.monotonic(), self._unsent_of):
            self._channel.send(message)
        compiled = self._core.compiled
        if compiled is not None and self._carrier is not None and self._tun.super_packets:
            self._carrier.flush(compiled)
            return
        outgoing = self._core.datagrams_to_send()
        if outgoing:
            self._underlay.send(outgoing)
        packets = self._core.packets_to_deliver()
        if packets:
            self._refused += self._tun.write(packets)

    def _ask_for_windows(self, now: float) -> None:
        """Have peers state their windows where an agent that died has left them closed."""
        if self._has_peers and self._sequences:
            sequence = self._sequences.pop(0)
            own = [address.partition("/")[0] for address in self._config.overlay]
            for flow in closed_windows(own):
                self._core.packet_from_host(segment_outside_window(flow, sequence), now)
            self._put_out()

    def _read_announcements(self) -> None:
        if self._announcements is not None:
            for key, size in self._announcements.read():
                self._core.announce(key, size)

    def _unsent_of(self, flow: bytes) -> Unsent | None:
        return None if self._unsent is None else self._unsent.of(flow)

    def _read_tun(self, most: int, now: float) -> int:
        """Return how many packets there were."""
        for count in range(most):
            try:
                got = self._tun.read()
            except PacketError as error:
                _LOG.warning("a packet from the host was dropped: %s", error)
                continue
            if got is None:
                return count
            packet, size, seen = got
            if is_opening(packet) if seen is None else seen.opening:
                self._read_announcements()  # what was said of this flow was said before
            if size:
                self._core.super_packet_from_host(packet, size, now)
            else:
                self._core.packet_from_host(packet, now)
        return most

    def _handle(self, message: Received, now: float) -> None:
        if isinstance(message, Connected):
            announce(self._config.interface, self._config.underlay_ip)
            _LOG.info("connected to the controller at %s", self._config.controller)
            self._shared, self._next_watch = None, math.inf
            self._core.gate.connected(now)
        elif isinstance(message, Disconnected):
            self._core.disconnected(now)
        elif isinstance(message, Grant | Stop):
            self._core.gate.decided(message, now)
        elif isinstance(message, WatchFlows):
            self._watch, self._watched_until = message, now - message.every_s
            self._next_watch = now if message.every_s > 0 else math.inf
        elif isinstance(message, Directory):
            self._core.set_directory(message.peers, now)
            self._has_peers = True
            if not message.authenticated:
                self._core.set_keys(None)
        elif isinstance(message, DatagramKeys):
            self._core.set_keys(message)
        elif isinstance(message, Paths):
            self._core.set_paths(message.paths, message.by_class)
        elif isinstance(message, PathLoad):
            self._core.set_path_load(message, now)
        elif isinstance(message, FlowTypes):
            self._core.set_flow_types(message)
        elif isinstance(message, SetPolicy):
            self._apply(message, now)
        elif isinstance(message, Report):
            self._channel.send(*FlowReport.parts(message.id, self._core.flow_report(message.forget)))
        elif isinstance(message, Impair):
            self._core.set_impairment(message)
        elif isinstance(message, Crash):
            _LOG.warning("killed by the controller: a fault made on purpose")
            os.kill(os.getpid(), signal.SIGKILL)

    def _apply(self, message: SetPolicy, now: float) -> None:
        try:
            policy = Policy.from_dict(message.policy)
            self._core.set_policy(policy, now)
        except PolicyError as error:
            _LOG.error("the policy cannot be used, the old one stays: %s", error)
            version = message.policy.get("version")
            self._channel.send(
                PolicyApplied(version if isinstance(version, int) else -1, str(error)[:ERROR_CHARS])
            )
            return
        try:
            self._tun.set_initial_window(
                None if policy.admission is None else policy.admission.initial_window_packets
            )
        except OSError as error:
            _LOG.warning("TCP's first window stays what it was: %s", error)
        self._shared = None
        self._next_share = math.inf if self._core.path_load(now) is None else now
        self._next_finished = now if policy.priority.predicted else math.inf
        self._channel.send(PolicyApplied(policy.version))

    def _share(self, now: float) -> None:
        self._next_share = now + SHARE_EVERY_S
        load = self._core.path_load(now)
        if load is None or not self._channel.has_room:
            return
        if load != self._shared or self._channel.dropped > self._dropped:
            self._channel.send(load)
            self._shared, self._dropped = load, self._channel.dropped

    def _send_flows(self, now: float) -> None:
        self._next_watch = now + self._watch.every_s
        flows, more = self._core.active_flows(self._watched_until, self._watch.most)
        self._watched_until = now
        self._channel.send(ActiveFlows(now, flows, more))

    def _counters(self, now: float) -> dict[str, float]:
        values = self._core.counters()
        values["unsent"] = self._underlay.unsent
        values["refused_by_host"] = self._refused
        if self._carrier is not None:
            values["unsent"] += self._carrier.unsent
            values["refused_by_host"] += self._carrier.refused
        values["control_messages_dropped"] = self._channel.dropped
        if self._announcements is not None:
            values["announcements_malformed"] = self._announcements.malformed
        values["cpu_s"] = time.process_time()
        return values | self._core.blocking_gauges(now)
