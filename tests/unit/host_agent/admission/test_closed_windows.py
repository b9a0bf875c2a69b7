"""Closed windows: which connections the kernel lists, and the segment that has them stated again."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from host_agent.admission.closed_windows import closed_windows, probing, segment_outside_window
from host_agent.inner_packet import TCP, look
from tests.unit.host_agent.admission.test_capton_unsent import key_of
from tests.unit.inner_packets import pseudo_header, words_sum
from tests.waiting import eventually

PORTS = st.tuples(st.integers(1, 0xFFFF), st.integers(1, 0xFFFF))
ADDRESSES = st.sampled_from([4, 16]).flatmap(lambda size: st.binary(min_size=2 * size, max_size=2 * size))
FLOWS = st.builds(lambda ends, ports: bytes([TCP]) + ends + struct.pack("!HH", *ports), ADDRESSES, PORTS)


@pytest.mark.parametrize(
    ("server", "client"), [("127.0.0.1", "127.0.0.1"), ("::1", "::1"), ("127.0.0.1", "::ffff:127.0.0.1")]
)
def test_a_connection_whose_peer_does_not_read_is_listed_and_no_other(server: str, client: str) -> None:
    families = [socket.AF_INET6 if ":" in address else socket.AF_INET for address in (server, client)]
    with socket.create_server((server, 0), family=families[0]) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
        with socket.socket(families[1]) as sender:
            sender.connect((client, listening.getsockname()[1]))
            receiver, (_, port, *_) = listening.accept()
            with receiver:
                ends = ipaddress.ip_address(server).packed * 2 + struct.pack(
                    "!HH", port, listening.getsockname()[1]
                )
                flow = bytes([TCP]) + ends
                assert flow not in closed_windows([server])
                sender.setblocking(False)
                with contextlib.suppress(BlockingIOError):
                    while True:
                        sender.send(bytes(65536))
                eventually(lambda: flow in closed_windows([server]))
                assert key_of(receiver) not in closed_windows([server])
                assert flow not in closed_windows(["127.0.0.9"]), "of no address of ours"


def test_a_table_without_a_probing_connection_gives_none() -> None:
    assert probing(Path("/proc/net/tcp").read_text().splitlines()[0]) == []


@given(FLOWS, st.integers(0, 0xFFFFFFFF))
def test_a_segment_is_one_of_the_flow_with_checksums_that_fit(flow: bytes, sequence: int) -> None:
    packet = segment_outside_window(flow, sequence)
    seen = look(packet)
    assert (seen.flow, seen.payload, seen.control, seen.opening) == (flow, 0, True, False)
    segment = packet[seen.transport :]
    assert struct.unpack_from("!I", segment, 4)[0] == sequence
    assert words_sum(pseudo_header(packet, len(segment), TCP) + segment) == 0xFFFF
    if packet[0] >> 4 == 4:
        assert words_sum(packet[:20]) == 0xFFFF
        assert int.from_bytes(packet[2:4], "big") == len(packet)
