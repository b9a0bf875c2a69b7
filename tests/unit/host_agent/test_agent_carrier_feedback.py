"""When feedback leaves an agent whose packets are carried without the interpreter: with packets, or else alone."""

from __future__ import annotations

import time
from contextlib import ExitStack

import capstan_native
import pytest

from tests.unit.carrier_kernel import FEEDBACK_S, THERE, Kernel, agent, policy_of
from tests.unit.datagram_reference import Kind, decode_fields
from tests.unit.device_writes import VNET
from tests.unit.inner_packets import HOST1, HOST2, udp


def _owing(due_s_ago: float, close: ExitStack) -> tuple[Kernel, capstan_native.HostCore]:
    """Return the kernel of an agent whose feedback for a datagram was due *due_s_ago* s ago, and the compiled core."""
    policy = policy_of(coded=False, release=False)
    now = time.monotonic()
    rig = Kernel(agent(policy, 0, now + 3600.0), close)  # so that nothing else is due
    peer = agent(policy, 1)
    peer.packet_from_host(udp(b"u", HOST2, HOST1), 0.0)
    (datagram,) = peer.datagrams_to_send()
    came = now - due_s_ago - FEEDBACK_S
    rig.core.receive_datagram(datagram.data, THERE, datagram.source_port, datagram.tos, now=came)
    core = rig.core.compiled
    assert core is not None
    rig.carrier.flush(core)
    assert rig.core.get_timer() == pytest.approx(now - due_s_ago)
    return rig, core


def test_feedback_that_is_due_waits_for_a_packet_to_leave_with() -> None:
    with ExitStack() as close:
        rig, core = _owing(0.1, close)
        assert rig.carrier.carry(core, time.monotonic()) == []
        assert rig.sent() == []
        rig.host.send(bytes(VNET.size) + udp(b"u"))
        rig.carry(core)
        assert [decode_fields(data)[0] for _, data in rig.sent()] == [Kind.SOURCE, Kind.FEEDBACK]


def test_feedback_that_has_waited_twice_as_long_leaves_alone() -> None:
    with ExitStack() as close:
        rig, core = _owing(FEEDBACK_S + 0.1, close)
        assert rig.carrier.carry(core, time.monotonic()) == []
        assert [decode_fields(data)[0] for _, data in rig.sent()] == [Kind.FEEDBACK]
