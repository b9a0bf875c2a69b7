"""The socket at which programs announce what flows will send: what comes there ends no agent, and holds none up."""

from __future__ import annotations

import json
import secrets
import socket
import threading
from collections.abc import Iterator

import pytest

from host_agent import announcements
from host_agent.announcements import MOST_AT_ONCE, Announcements
from host_agent.inner_packet import ACK, SYN, is_opening
from tests.unit.inner_packets import HOST1, HOST1_V6, HOST2, HOST2_V6, tcp
from tests.waiting import PATIENCE_S
from workloads import announce

NAME = f"\0capstan-announcements-{secrets.token_hex(8)}"


@pytest.fixture
def agents_end(monkeypatch: pytest.MonkeyPatch) -> Iterator[Announcements]:
    monkeypatch.setattr(announcements, "NAME", NAME)
    end = Announcements()
    yield end
    end.close()


def announcement(size: int) -> bytes:
    said = {"protocol": "tcp", "source": "10.128.1.1", "source_port": 5}
    return json.dumps({**said, "destination": "10.128.2.1", "destination_port": 80, "bytes": size}).encode()


def test_what_is_no_announcement_is_counted_and_the_next_one_read(agents_end: Announcements) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as program:
        for data in (announcement(10**400), b"{", announcement(7)):
            program.sendto(data, NAME)
    assert [size for _, size in agents_end.read()] == [7.0]
    assert agents_end.malformed == 2
    assert agents_end.read() == []


def test_a_program_that_announces_without_end_does_not_hold_up_the_agent(
    agents_end: Announcements, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Refilled:
        """A socket at which something is always waiting."""

        reads = 0

        def recv(self, most: int) -> bytes:
            self.reads += 1
            assert self.reads <= 100 * MOST_AT_ONCE, "it is read for ever"
            return announcement(7)

    refilled, end = Refilled(), agents_end._socket
    monkeypatch.setattr(agents_end, "_socket", refilled)
    assert len(agents_end.read()) == refilled.reads == MOST_AT_ONCE
    monkeypatch.setattr(agents_end, "_socket", end)


@pytest.mark.parametrize(("source", "destination"), [(HOST1, HOST2), (HOST1_V6, HOST2_V6)])
def test_packets_before_which_announcements_are_read_are_known_however_the_device_gave_them(
    source: str, destination: str
) -> None:
    """A device without super-packets says nothing of headers, and one with them nothing of IPv6's."""
    opening = tcp(b"", source, destination, flags=SYN)
    assert is_opening(opening)
    assert not is_opening(tcp(b"data", source, destination, flags=ACK))
    assert not is_opening(opening[:-1]), "no packet that is carried"


def fill() -> None:
    """Announce until there is no more room, each time by a socket of its own: one alone may have less room."""
    while True:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as program:
            try:
                program.sendto(announcement(7), NAME)
            except BlockingIOError:
                return


def test_an_announcement_waits_until_an_agent_that_is_behind_has_room(
    agents_end: Announcements, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of flows that began at once in a network namespace the twelfth was of unknown size, and nothing said so."""
    monkeypatch.setattr(announce, "NAME", NAME)
    monkeypatch.setattr(announce, "PATIENCE_S", PATIENCE_S)
    fill()
    got: list[tuple[bytes, float]] = []
    behind = threading.Timer(0.1, lambda: got.extend(agents_end.read()))
    behind.start()
    assert announce.announce(("10.128.1.1", 5), ("10.128.2.1", 80), 9)
    behind.join()
    while some := agents_end.read():
        got += some
    assert [size for _, size in got[-2:]] == [7.0, 9.0]


def test_an_agent_that_reads_nothing_holds_up_no_program_for_long(
    agents_end: Announcements, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(announce, "NAME", NAME)
    fill()
    assert not announce.announce(("10.128.1.1", 5), ("10.128.2.1", 80), 9)
    monkeypatch.setattr(announce, "NAME", f"{NAME}-none")
    assert not announce.announce(("10.128.1.1", 5), ("10.128.2.1", 80), 9), "no agent listens"
