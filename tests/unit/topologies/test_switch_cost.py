"""Of the measurement of a switch: which of its parts count, and which frames."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from topologies.registry import LabError
from topologies.switch_cost import PACKETS, Part, lone_packet_us, pass_frames

WHOLE_S = 0.01
"""Processor time of a part: 100 us a packet."""


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    sender, switch = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with sender, switch:
        yield sender, switch


def test_a_part_in_which_a_packet_was_late_does_not_count() -> None:
    parts = [Part(PACKETS, WHOLE_S), Part(PACKETS - 1, 7 * WHOLE_S), Part(PACKETS, WHOLE_S)]
    assert lone_packet_us(parts) == pytest.approx(WHOLE_S / PACKETS * 1e6)


@pytest.mark.parametrize("bad", [Part(PACKETS - 1, WHOLE_S), Part(PACKETS, 0.0)])
def test_where_most_parts_lack_packets_or_times_that_is_an_error(bad: Part) -> None:
    with pytest.raises(LabError, match="most of 3 tries"):
        lone_packet_us([bad, Part(PACKETS, WHOLE_S), bad])


def test_a_frame_that_comes_late_is_not_taken_for_a_later_one(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    sender, switch = pair
    port, receiver = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with port, receiver:
        receiver.settimeout(0.05)

        def hold_the_second_back() -> None:
            port.send(switch.recv(2048))
            second, third = switch.recv(2048), switch.recv(2048)
            for frame in (second, third):
                port.send(frame)

        thread = threading.Thread(target=hold_the_second_back)
        thread.start()
        arrived = pass_frames(sender, receiver, range(3))
        thread.join()
    assert arrived == 1 + 1
