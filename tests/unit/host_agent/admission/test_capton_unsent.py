"""What sockets hold unsent: the kernel's answer for sockets of our own, over both IP versions."""

from __future__ import annotations

import fcntl
import ipaddress
import socket
import struct
from contextlib import suppress

import pytest

from host_agent.admission.unsent import Unsent, UnsentBytes
from host_agent.inner_packet import TCP
from protocol.admission import AdmissionPolicy, Finished, Grant, Request
from tests.unit.admission_agent import PEER, AdmittingAgent
from tests.unit.host_agent.admission.test_capton_host import ON_THE_LINK, Host

SIOCOUTQNSD = 0x894B


def key_of(connection: socket.socket) -> bytes:
    (source, source_port), (target, target_port) = connection.getsockname()[:2], connection.getpeername()[:2]
    packed = ipaddress.ip_address(source).packed + ipaddress.ip_address(target).packed
    return bytes((TCP,)) + packed + struct.pack("!HH", source_port, target_port)


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_the_kernel_reports_what_a_socket_holds_and_whether_its_program_waits(address: str) -> None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    asked = UnsentBytes()
    with socket.create_server((address, 0), family=family) as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
        sender = socket.create_connection(server.getsockname()[:2])
        receiver, _ = server.accept()  # who does not read
        with sender, receiver:
            assert unsent(asked, key_of(sender)) == (0, False)
            sender.setblocking(False)
            total = 0
            with suppress(BlockingIOError):
                while True:
                    total += sender.send(bytes(65536))
            found = asked.of(key_of(sender))
            assert found is not None
            answer = struct.unpack("=i", fcntl.ioctl(sender.fileno(), SIOCOUTQNSD, bytes(4)))[0]
            assert (found.bytes, found.more) == (answer, True)
            assert 0 < found.bytes <= total
            assert unsent(asked, key_of(receiver)) == (0, False)
            reported = receiver.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 8)
            assert found.scale == reported[6] >> 4, "the peer's own scale"
            assert found.segment_bytes == sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG)
            info = sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
            assert found.most_segment_bytes == struct.unpack_from("=I", info, 84)[0], "tcpi_advmss"
            assert found.segment_bytes < found.most_segment_bytes, "half of so small a window"
            sender.shutdown(socket.SHUT_WR)
            closed = asked.of(key_of(sender))
            assert closed is not None
            assert closed.segment_bytes == 0, "nothing new can be sent"
        assert (
            asked.of(bytes((TCP,)) + ipaddress.ip_address(address).packed * 2 + bytes((0, 1, 0, 1))) is None
        )
    asked.close()


def unsent(asked: UnsentBytes, flow: bytes) -> tuple[int, bool] | None:
    found = asked.of(flow)
    return None if found is None else (found.bytes, found.more)


def unannounced(policy: AdmissionPolicy) -> tuple[AdmittingAgent, Host]:
    """Return an agent, and a host whose unannounced flow has just sent more than the threshold."""
    agent = AdmittingAgent(policy)
    host = Host(agent, announced=None)
    host.open(0.0)
    assert agent.messages_to_send(0.0, lambda key: Unsent(10**6, False)) == []
    host.send(11, 0.0)
    return agent, host


@pytest.mark.parametrize("more", [False, True])
def test_a_flow_without_announcement_asks_for_what_its_socket_holds(more: bool) -> None:
    """And for as much again as it has sent, if its program is kept waiting."""
    agent, host = unannounced(AdmissionPolicy())
    messages = agent.messages_to_send(0.0, lambda key: Unsent(50_000, more))
    assert messages == [Request(1, 1, PEER, round((50_000 + more * host.sent) * ON_THE_LINK))]


def test_a_flow_whose_socket_is_empty_is_over_and_may_ask_again() -> None:
    policy = AdmissionPolicy()
    agent, host = unannounced(policy)
    (request,) = agent.messages_to_send(0.0, lambda key: Unsent(50_000, False))
    agent.decided(Grant(1, request.flow, request.sequence, 10**7), 0.001)
    agent.handle_timer(policy.refresh_s + 0.01)
    (finished,) = agent.messages_to_send(policy.refresh_s + 0.01, lambda key: Unsent(0, False))
    assert isinstance(finished, Finished)
    host.took(agent.updates())
    host.send(11, 1.0)
    (again,) = agent.messages_to_send(1.0, lambda key: Unsent(70_000, False))
    assert isinstance(again, Request)
