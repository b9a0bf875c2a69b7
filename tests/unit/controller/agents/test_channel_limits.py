"""How much an agent may send: of one message, in a second, in halves of frames; and what costs other agents nothing."""

from __future__ import annotations

import struct
import time
from pathlib import Path

import pytest

from controller.agents.inbound import BURST_BYTES, BYTES_PER_S, HalfFrames, Inbound
from controller.agents.membership import Member, Membership
from controller.agents.session import Timing
from host_agent.channel import Connected
from protocol.frames import JSON_FORMAT, ControlError
from protocol.limits import MIB
from tests.unit.agents_channel import RawAgent, agent_config, running_channel, served
from tests.waiting import eventually


def begun(kind: str, size: int, sent: int = 100) -> bytes:
    """The first *sent* bytes of a frame whose body has *size*."""
    body = f'{{"type":"{kind}","x":"'.encode()
    return (struct.pack("!IB", size + 1, JSON_FORMAT) + body + b"x" * sent)[: 5 + sent]


def inbound(may_report: bool = False) -> Inbound:
    return Inbound(lambda: may_report, HalfFrames(), lambda reason: None, 0.0)


@pytest.mark.parametrize(
    ("kind", "most"),
    [("counters", 1 << 16), ("hello", 1 << 16), ("policy-applied", 1 << 16), ("sent-again", MIB),
     ("active-flows", 2 * MIB), ("finished-flows", 4 * MIB), ("flows", 4 * MIB)],
)  # fmt: skip
def test_a_message_has_a_size_by_its_type(kind: str, most: int) -> None:
    assert inbound().take(begun(kind, most)) == []
    with pytest.raises(ControlError, match=f"{kind}: {most + 1} B are more than {most} B"):
        inbound().take(begun(kind, most + 1))


def test_a_report_that_was_asked_for_may_be_larger() -> None:
    assert inbound(may_report=True).take(begun("flows", 10 * MIB)) == []
    with pytest.raises(ControlError):
        inbound(may_report=True).take(begun("flows", 10 * MIB + 1))


def test_an_agent_is_read_at_a_rate() -> None:
    """However fast it sends: all of a burst, and from then on so many bytes a second."""
    one, now, taken = inbound(may_report=True), 0.0, 0
    while now < 60.0:
        head = b'{"type":"pong","id":1,"x":"'
        body = head + b" " * (60_000 - len(head) - 2) + b'"}'
        one.take(struct.pack("!IB", len(body) + 1, JSON_FORMAT) + body)
        taken += len(body) + 5
        now += one.wait_s(now)
    assert BURST_BYTES + 59 * BYTES_PER_S < taken < BURST_BYTES + 61 * BYTES_PER_S


def test_halves_of_frames_have_a_size_together_and_the_largest_goes() -> None:
    halves, gone = HalfFrames(1000), list[str]()
    closers = {name: (lambda reason, name=name: gone.append(name)) for name in "abc"}
    halves.hold(closers["a"], 600)
    halves.hold(closers["b"], 300)
    halves.hold(closers["a"], 650)
    assert (gone, halves.total_bytes) == ([], 950)
    halves.hold(closers["c"], 100)
    assert (gone, halves.total_bytes) == (["a"], 400)
    halves.hold(closers["b"], 0)
    assert halves.total_bytes == 100


def test_a_channel_that_is_over_holds_no_half(tmp_path: Path) -> None:
    with served(tmp_path) as at:
        agent = RawAgent.joined(at.socket_path, 1)
        agent.connection.sendall(begun("flows", 4 * MIB, 100_000))
        halves = at.server._halves
        eventually(lambda: halves.total_bytes == 100_005, "half a frame")
        agent.close()
        eventually(lambda: halves.total_bytes == 0, "nothing")


def test_time_in_which_the_loop_did_not_run_is_no_silence(tmp_path: Path) -> None:
    """One agent's message took it for 14 s, and all others' channels were closed at the end."""
    with (
        served(tmp_path, timing=Timing(ping_s=0.05, dead_s=1.0)) as at,
        running_channel(agent_config(f"unix:{at.socket_path}")) as agent,
    ):
        agent.wait(Connected)
        for _ in range(3):
            at.server.call(lambda: time.sleep(1.5))
        time.sleep(0.2)
        assert at.connected() == ["h1"]
        assert len(agent.has(Connected)) == 1, "and never ended"


def test_owners_of_addresses_are_listed_anew_where_members_change_only() -> None:
    members = Membership((), 0.0, grace_s=1.0)
    first = Member("h1", "10.0.1.1", "02:00:00:00:00:01", ("10.128.1.1",), 1, "")
    members.join(first, 0.0)
    owners = members.owners()
    assert owners == {"10.128.1.1": "h1"}
    assert members.owners() is owners
    members.join(Member("h2", "10.0.1.2", "02:00:00:00:00:02", ("10.128.1.2",), 1, ""), 0.0)
    assert members.owners() == {"10.128.1.1": "h1", "10.128.1.2": "h2"}
    members.disconnect("h1", 0.0)
    members.expire(2.0)
    assert members.owners() == {"10.128.1.2": "h2"}
