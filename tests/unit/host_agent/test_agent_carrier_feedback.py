"""When feedback leaves an agent whose packets are carried without the interpreter: with packets, or else alone."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import replace

import capstan_native
import pytest

from protocol.policy import ClassPolicy, PathSettings, Policy
from tests.unit.carrier_kernel import FEEDBACK_S, THERE, Kernel, agent, policy_of
from tests.unit.datagram_reference import Kind, decode_fields
from tests.unit.device_writes import VNET
from tests.unit.inner_packets import HOST1, HOST2, udp

PLAIN = policy_of(coded=False, release=False)
LEARNING = replace(PLAIN, long=ClassPolicy(PathSettings("reps")))
CODED = policy_of(coded=True, release=False)
LEAST_FEEDBACK_S = 0.005
"""After which feedback is due where packets are short."""


def _owing(due_s_ago: float, policy: Policy, close: ExitStack) -> tuple[Kernel, capstan_native.HostCore]:
    """Return the kernel of an agent whose feedback for a datagram was due *due_s_ago* s ago, and the compiled core."""
    rig = Kernel(agent(policy, 0, time.monotonic() + 3600.0), close)  # so that nothing else is due
    peer = agent(policy, 1)
    peer.packet_from_host(udp(b"u", HOST2, HOST1), 0.0)
    datagram = peer.datagrams_to_send()[0]
    due = time.monotonic() - due_s_ago
    came = due - max(LEAST_FEEDBACK_S, 2 * policy.packet_time_s)
    rig.core.receive_datagram(datagram.data, THERE, datagram.source_port, datagram.tos, now=came)
    core = rig.core.compiled
    assert core is not None
    rig.carrier.flush(core)
    assert rig.core.get_timer() == pytest.approx(due)
    return rig, core


def _reports_with_a_packet(due_s_ago: float, policy: Policy) -> bool:
    """Return True if feedback that was due *due_s_ago* s ago leaves when the host sends a packet."""
    with ExitStack() as close:
        rig, core = _owing(due_s_ago, policy, close)
        rig.host.send(bytes(VNET.size) + udp(b"u"))
        rig.carry(core)
        kinds = [decode_fields(data)[0] for _, data in rig.sent()]
        assert Kind.SOURCE in kinds
        return Kind.FEEDBACK in kinds


def test_feedback_that_is_due_waits_for_a_packet_to_leave_with() -> None:
    with ExitStack() as close:
        rig, core = _owing(0.1, PLAIN, close)
        assert rig.carrier.carry(core, time.monotonic()) == []
        assert rig.sent() == []
        rig.host.send(bytes(VNET.size) + udp(b"u"))
        rig.carry(core)
        assert [decode_fields(data)[0] for _, data in rig.sent()] == [Kind.SOURCE, Kind.FEEDBACK]


def test_feedback_that_has_waited_twice_as_long_leaves_alone() -> None:
    with ExitStack() as close:
        rig, core = _owing(FEEDBACK_S + 0.1, PLAIN, close)
        assert rig.carrier.carry(core, time.monotonic()) == []
        assert [decode_fields(data)[0] for _, data in rig.sent()] == [Kind.FEEDBACK]


@pytest.mark.parametrize(
    ("policy", "used"),
    [(PLAIN, False), (LEARNING, True), (CODED, True)],
    ids=["unread", "path policy", "estimator"],
)
def test_feedback_that_nothing_reads_leaves_with_fewer_packets(policy: Policy, used: bool) -> None:
    policy = replace(policy, packet_time_s=0.001)
    assert _reports_with_a_packet(0.02, policy) == used
    assert _reports_with_a_packet(0.2, policy)
