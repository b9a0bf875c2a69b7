"""Senders are held, paced and stopped by the window that they are told, and nothing makes TCP send twice."""

from __future__ import annotations

import math

import pytest
from capstan_native import WindowClamp
from hypothesis import given, settings
from hypothesis import strategies as st

from host_agent.inner_packet import look
from tests.unit.inner_packets import (
    HOST1,
    HOST1_V6,
    HOST2,
    HOST2_V6,
    check_ip,
    check_transport,
    tcp,
)

MSS = 1400
SYN, ACK, PSH = 0x02, 0x10, 0x08
PORTS = (40000, 80)


def scaled(scale: int | None) -> bytes:
    """Options of a SYN."""
    return b"\x02\x04\x05\x78" + (b"" if scale is None else bytes((1, 3, 3, scale)))


class Connection:
    """A host that sends as much as its window lets it, and a peer that acknowledges after half a round-trip time each
    way. The window is all that limits the host: what it does besides is what a TCP sender must do."""

    def __init__(
        self,
        clamp: WindowClamp,
        scale: int | None = 7,
        own: int | None = 7,
        isn: int = 2**32 - 5000,
        v6: bool = False,
    ) -> None:
        self.clamp, self.isn, self.rtt = clamp, isn, 0.004
        self.scale = scale if scale is not None and own is not None else 0
        self.real_window = min(65535 << self.scale, 400_000)
        self.names = (HOST1_V6, HOST2_V6) if v6 else (HOST1, HOST2)
        self.sent = self.acked = 0
        self.room = 0
        """Up to where the host may send, in bytes of payload."""
        self.way: list[tuple[float, int]] = []
        """ACKs under way: when they are here, and what they acknowledge."""
        self.log: list[tuple[float, int]] = []
        self.given: list[bytes] = []
        self.stopped_in_flight = 0
        self.overtaking = False
        """Every second ACK is faster than the one before it."""
        self.stamp = self.newest_stamp = 5
        self.data = tcp(bytes(MSS), *self.names, ports=PORTS, flags=ACK | PSH, partial=True)
        syn = tcp(b"", *self.names, ports=PORTS, sequence=isn, flags=SYN, options=scaled(own))
        clamp.left(syn, look(syn))
        answer = tcp(
            b"",
            *reversed(self.names),
            ports=PORTS[::-1],
            sequence=77,
            ack=isn + 1,
            flags=SYN | ACK,
            options=scaled(scale),
            window=65535,
        )
        self.take(clamp.arrived(answer, look(answer), 0.0))

    def take(self, packet: bytes) -> None:
        """The host gets a packet of its peer, or one that looks so."""
        at = 20 if packet[0] >> 4 == 4 else 40
        check_ip(packet)
        check_transport(packet, at, 6)
        self.given.append(packet)
        ack = (int.from_bytes(packet[at + 8 : at + 12], "big") - self.isn - 1) % 2**32
        if packet[at + 12] >> 4 == 8:
            stamp = int.from_bytes(packet[at + 24 : at + 28], "big")
            if stamp < self.newest_stamp or ack < self.acked:
                return  # what was overtaken says nothing (RFC 7323, 5.3; RFC 9293, 3.10.7.4)
            self.newest_stamp = stamp
        window = int.from_bytes(packet[at + 14 : at + 16], "big")
        self.acked = max(self.acked, ack)
        self.room = ack + (window << (0 if packet[at + 13] & SYN else self.scale))
        if not window and self.sent > self.acked:
            self.stopped_in_flight += 1

    def run(self, until: float, now: float, step: float = 0.0005) -> float:
        while now < until:
            now += step
            while self.sent + MSS <= self.room:
                data = self.segment()
                self.clamp.left(data, look(data))
                self.sent += MSS
                self.log.append((now, self.sent))
                self.way.append((now + self.rtt, self.sent))
            while self.way and self.way[0][0] <= now:
                few = 2 if self.overtaking else 1
                packets = [self.ack(ack) for _, ack in self.way[:few]]
                del self.way[:few]
                for packet in reversed(packets):
                    self.take(self.clamp.arrived(packet, look(packet), now))
            due = self.clamp.deadline()
            if due is not None and due <= now:
                update = self.clamp.update(now)
                assert update is not None, "a deadline without anything to tell"
                self.take(update)
        return now

    def segment(self) -> bytes:
        """What the host sends next; its checksum is not finished, as from a TUN device with offloads."""
        at = len(self.data) - MSS - 16
        number = (self.isn + 1 + self.sent) % 2**32
        return self.data[:at] + number.to_bytes(4, "big") + self.data[at + 4 :]

    def ack(self, ack: int) -> bytes:
        """The peer's, with its real window."""
        self.stamp += 1
        return tcp(
            b"",
            *reversed(self.names),
            ports=PORTS[::-1],
            sequence=78,
            ack=self.isn + 1 + ack,
            options=b"\x01\x01\x08\x0a" + self.stamp.to_bytes(4, "big") + (9).to_bytes(4, "big"),
            window=self.real_window >> self.scale,
        )

    def told(self, rate: float, now: float) -> None:
        """The controller decides."""
        self.clamp.set_rate(rate, now)
        update = self.clamp.update(now)
        if update is not None:
            self.take(update)


cases = st.tuples(
    st.sampled_from((None, 0, 7, 14)), st.sampled_from((None, 7)), st.integers(0, 2**32 - 1), st.booleans()
)


@settings(deadline=None, max_examples=15)
@given(cases, st.floats(3e5, 1e7))
def test_a_granted_sender_keeps_to_its_rate_and_a_stopped_one_to_what_it_was_told(
    case: tuple[int | None, int | None, int, bool], rate: float
) -> None:
    clamp = WindowClamp(0.002)
    host = Connection(clamp, *case)
    host.told(rate, 0.0)
    now = host.run(0.2, 0.0)
    most = min(rate, host.real_window / (host.rtt + 0.001))
    step = 2 << host.scale
    slack = 3 * MSS + rate * 0.003 + step  # the burst, steps of the window
    assert most * 0.2 * 0.85 - slack <= host.sent <= rate * 0.2 + 65535 + slack
    sent = host.sent
    host.told(0.0, now)
    now = host.run(0.3, now)
    assert host.sent - sent <= max(2 * MSS, rate * 0.002) + 2 * MSS + step
    assert host.acked == host.sent  # all that has left is acknowledged: nothing to be sent twice
    if host.scale < 14:
        assert host.stopped_in_flight == 0  # and no window was closed over it
    host.told(rate, now)
    host.run(0.5, now)
    assert host.sent > sent + min(most * 0.2 * 0.8, 10 * MSS)


def test_an_acknowledgement_that_was_overtaken_does_not_close_a_granted_window() -> None:
    clamp = WindowClamp(0.002)
    host = Connection(clamp)
    host.overtaking = True
    host.told(1e6, 0.0)
    now = host.run(0.2, 0.0)
    assert host.sent >= 0.85 * 0.2e6
    host.told(0.0, now)
    now = host.run(0.4, now)
    assert (host.way, host.acked) == ([], host.sent)
    old, sent = host.ack(host.sent - MSS), host.sent
    host.stamp -= 2
    same = host.ack(host.sent)  # acknowledges as much, but was sent before the newest
    for packet in (old, same):
        host.take(clamp.arrived(packet, look(packet), now))
    host.told(1e6, now)
    assert host.room >= sent + MSS, "the host was told by a packet that it believes"
    host.run(0.6, now)
    assert host.sent - sent >= 0.85 * 0.2e6


@settings(deadline=None, max_examples=10)
@given(cases)
def test_without_a_limit_packets_pass_as_they_are(case: tuple[int | None, int | None, int, bool]) -> None:
    host = Connection(WindowClamp(0.002), *case)
    host.run(0.05, 0.0)
    assert host.sent > 10 * MSS
    packet = host.ack(host.acked)
    assert host.clamp.arrived(packet, look(packet), 0.06) is packet
    assert host.clamp.deadline() is None


def test_a_flow_that_is_known_to_be_large_sends_nothing_before_its_grant() -> None:
    clamp = WindowClamp(0.002)
    clamp.set_rate(0.0, 0.0)
    host = Connection(clamp)
    now = host.run(0.1, 0.0)
    assert host.sent == 0
    host.told(1e6, now)
    assert host.room >= MSS  # the grant is told at once
    host.run(0.2, now)
    assert host.sent == pytest.approx(1e5, rel=0.1)


def test_a_window_update_is_a_bare_acknowledgement_of_everything() -> None:
    clamp = WindowClamp(0.002)
    host = Connection(clamp)
    now = host.run(0.01, 0.0)
    clamp.set_rate(0.0, now)
    now = host.run(0.02, now)
    stamps = b"\x01\x01\x08\x0a" + (50).to_bytes(4, "big") + (90).to_bytes(4, "big")
    data = tcp(
        b"answer",
        HOST2,
        HOST1,
        ports=PORTS[::-1],
        sequence=78,
        ack=host.isn + 1 + host.sent,
        flags=ACK | PSH,
        options=stamps,
        number=9,
    )
    host.take(clamp.arrived(data, look(data), now))
    assert host.room == host.sent
    clamp.set_rate(math.inf, now)
    update = clamp.update(now)
    assert update is not None
    seen = look(update)
    assert (seen.payload, update[33], seen.flow) == (0, ACK, look(data).flow)
    assert int.from_bytes(update[24:28], "big") == 78 + len(b"answer")
    assert update[40:52] == stamps
    assert clamp.update(now) is None  # told once


def test_a_connection_whose_beginning_was_not_seen_is_left_alone() -> None:
    clamp = WindowClamp(0.002)
    clamp.set_rate(0.0, 0.0)
    packet = tcp(b"", HOST2, HOST1, ports=PORTS[::-1], ack=5000)
    assert not clamp.known
    assert clamp.arrived(packet, look(packet), 0.0) is packet
    assert clamp.update(1.0) is None


def test_a_host_whose_segments_were_small_when_its_flow_was_joined_is_not_starved() -> None:
    """Linux bounds segments by half the largest window that it was told, and says so long after windows have grown."""
    sent = {}
    for most in (0, MSS):
        clamp = WindowClamp(
            0.0012
        )  # 1500 bytes ahead: three of the small segments are one of the large ones, and some
        connection = Connection(clamp, scale=9, own=9)
        clamp.join(9, 512, most)
        clamp.set_rate(0.0, 0.0)
        clamp.set_rate(1.25e6, 0.0)
        connection.run(1.0, 0.0)
        sent[most] = connection.sent
    assert sent[MSS] > 0.4e6, "two segments a round trip of 4 ms are 0.7 MB/s"
    assert sent[0] < 0.1e6, "it waits for room for a whole segment, and the clamp for it to use what it has"
