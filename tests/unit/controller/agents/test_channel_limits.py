"""How much an agent may send: of one message, in a second, in halves of frames; and what costs other agents nothing."""

from __future__ import annotations

import asyncio
import gc
import socket
import struct
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from itertools import count
from pathlib import Path

import pytest

from controller.agents import directory_distribution
from controller.agents import session as session_module
from controller.agents.inbound import (
    BURST_BYTES,
    BYTES_PER_S,
    HalfFrames,
    HandlingTime,
    Inbound,
)
from controller.agents.membership import Member, Membership
from controller.agents.own_flows import own_flows
from controller.agents.policy_distribution import PolicyDistribution
from controller.agents.session import AgentSession, SessionClosed, Timing
from controller.live.flow_sampling import Answers
from protocol.control import (
    ActiveFlows,
    Challenge,
    Counters,
    Directory,
    FinishedFlows,
    FlowEntry,
    FlowReport,
    Message,
    PathLoad,
    Ping,
    Pong,
    WatchFlows,
)
from protocol.frames import JSON_FORMAT, ControlError, FrameReader, encode
from protocol.limits import MIB
from protocol.policy import ClassPolicy, PathSettings, Policy
from tests.unit.agents_channel import TOKEN, RawAgent, hello, served
from tests.unit.virtual_time import VirtualClock, run
from tests.waiting import eventually


def begun(kind: str, size: int, sent: int = 100) -> bytes:
    """Return the head of a frame whose body has *size* bytes, and the first *sent* bytes of the body."""
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


@asynccontextmanager
async def channel(
    answers: Callable[[], bool] = lambda: True,
) -> AsyncIterator[tuple[AgentSession, asyncio.Task[None]]]:
    """Yield a running session and its task; it is pinged each 0.05 s and dead after 1 s of silence.

    The agent answers at once while *answers*.
    """
    ours, agents = socket.socketpair()
    session = AgentSession(
        *await asyncio.open_connection(sock=ours),
        Timing(0.05, 1.0),
        lambda: None,
        lambda session, report: None,
    )
    reader, writer = await asyncio.open_connection(sock=agents)

    async def answer() -> None:
        frames = FrameReader()
        while data := await reader.read(65536):
            for message in frames.feed(data):
                if isinstance(message, Challenge):
                    writer.write(encode(hello(1, message.nonce)))
                elif isinstance(message, Ping) and answers():
                    writer.write(encode(Pong(message.id)))

    answering = asyncio.create_task(answer())
    assert await session.open(lambda host: TOKEN) is not None
    session.welcome(TOKEN)
    running = asyncio.create_task(session.run())
    yield session, running
    session.close("the test is over")
    await asyncio.gather(running, answering)
    writer.close()


def test_a_pause_is_no_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, pauses = VirtualClock(), [3.0]
    resumed = list[float]()

    @contextmanager
    def pause(*_: object) -> Iterator[float]:
        yield pauses.pop() if pauses else 0.0
        resumed.append(clock.now)

    async def talk() -> None:
        async with channel() as (session, running):
            await asyncio.sleep(2.9)
            assert (pauses, resumed, session.end_reason) == ([], [], ""), "not while it pauses"
            await asyncio.sleep(3.0)
            assert len(resumed) > 3.0 / 0.05 / 2, "it is read again"
            assert (running.done(), session.end_reason) == (False, ""), "and never ended"

    monkeypatch.setattr(HandlingTime, "pause", pause)
    monkeypatch.setattr(session_module, "time", clock.as_module())
    run(talk(), clock)


def test_what_was_not_asked_for_is_not_even_decoded() -> None:
    wrong = encode(PathLoad({"1": 1}, {})).replace(b'"1":1', b'"1":x')
    asked = set[str]()
    frames = Inbound(
        lambda: "flows" in asked, HalfFrames(), lambda reason: None, 0.0, asked=lambda kind: kind in asked
    )
    report = encode(FlowReport(1, []))
    assert frames.take(wrong + report + wrong[:7]) == []
    assert frames.take(wrong[7:]) == []
    asked |= {"path-load", "flows"}
    assert frames.take(report) == [FlowReport(1, [])]
    with pytest.raises(ControlError, match="not a message"):
        frames.take(wrong)


def test_loads_of_paths_are_asked_for_by_policies_that_share_them_and_flows_while_they_are_watched() -> None:
    policies = PolicyDistribution({})
    of = [PathLoad.type, ActiveFlows.type, FinishedFlows.type, Counters.type]
    assert [policies.asks_for(kind) for kind in of] == [True, False, True, True]
    policies.set_policy(Policy(1, "caps"))
    assert [policies.asks_for(kind) for kind in of] == [False, False, True, True]
    policies.watch_flows(WatchFlows(1.0, 5))
    policies.set_policy(Policy(2, "tr", long=ClassPolicy(PathSettings("tr"))))
    assert [policies.asks_for(kind) for kind in of] == [True, True, True, True]
    policies.watch_flows(WatchFlows(0.0, 0))
    assert not policies.asks_for(ActiveFlows.type)


def test_what_was_not_asked_for_is_counted(tmp_path: Path) -> None:
    with served(tmp_path) as at:
        at.server.set_policy(Policy(1, "caps"))
        agent = RawAgent.joined(at.socket_path)
        agent.send(PathLoad({"1": 1}, {}))
        agent.send(ActiveFlows(1.0, []))
        wanted = {"connections": 1, "messages-not-asked-for": 2}
        eventually(lambda: {**at.server.counters()} == wanted, f"{wanted}")
        agent.close()


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


def test_a_channel_that_is_closed_here_holds_no_half_of_what_had_arrived() -> None:
    """An agent's successor closed it while it was not read."""
    halves = HalfFrames()

    async def talk() -> None:
        ours, agents = socket.socketpair()
        reader, writer = await asyncio.open_connection(sock=ours)
        session = AgentSession(reader, writer, Timing(), lambda: None, lambda session, report: None, halves)
        running = asyncio.create_task(session.run())
        with agents:
            agents.sendall(begun("counters", 1 << 16))
            while halves.total_bytes != 105:
                await asyncio.sleep(0.001)
            reader.feed_data(b"x" * 50)
            session.close("another channel of this host")
            await running

    asyncio.run(asyncio.wait_for(talk(), 60))
    assert halves.total_bytes == 0


def test_time_in_which_the_loop_did_not_run_is_no_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    """One agent's message took it for 14 s, and all others' channels were closed at the end."""
    clock = VirtualClock()

    async def talk() -> None:
        async with channel() as (session, running):
            await asyncio.sleep(1.0)
            for _ in range(3):
                clock.now += 1.5  # without a turn of the loop
                await asyncio.sleep(0.0)
            await asyncio.sleep(0.2)
            assert (running.done(), session.end_reason) == (False, ""), "and never ended"

    monkeypatch.setattr(session_module, "time", clock.as_module())
    run(talk(), clock)


def test_silence_of_the_agent_ends_its_channel_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock that is set on above is the one by which a channel ends."""
    clock = VirtualClock()
    begin = clock.now

    async def talk() -> None:
        async with channel(answers=lambda: clock.now < begin + 2.0) as (session, running):
            await running
            assert session.end_reason == "nothing came from the agent for 1 s"
            assert begin + 2.9 < clock.now < begin + 3.1

    monkeypatch.setattr(session_module, "time", clock.as_module())
    run(talk(), clock)


def test_a_lost_answer_to_a_ping_is_made_good_by_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where half of them were lost, the agent was not asked any more after some seconds, and ended its channel."""
    clock, pings = VirtualClock(), count()

    async def talk() -> None:
        async with channel(answers=lambda: next(pings) % 2 == 1) as (session, running):
            for _ in range(200):
                await asyncio.sleep(0.1)
                confirmed = session.ping(wait=True)
                assert confirmed is not None
                await confirmed
            assert (running.done(), session.end_reason) == (False, "")

    monkeypatch.setattr(session_module, "time", clock.as_module())
    run(talk(), clock)


def test_what_nothing_waits_for_any_more_is_no_error_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """A report that an agent which reads nothing was asked for was one, with its traceback."""

    async def talk() -> None:
        async with channel() as (session, _):
            session.new_report()
            with suppress(SessionClosed):
                while True:
                    session.queue(Ping(1))
            assert session.end_reason == "the agent does not read: 64 messages wait"
            gc.collect()

    asyncio.run(asyncio.wait_for(talk(), 60))
    assert "never retrieved" not in caplog.text


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


def seen(side: str, source: str, destination: str, **more: object) -> FlowEntry:
    return FlowEntry(side, 6, source, 1, destination, 2, "short", 1, 1, 0.0, 1.0, **more)  # type: ignore[arg-type]


def test_an_agent_speaks_of_its_own_hosts_flows_only() -> None:
    mine, other = "10.128.1.1", "10.128.1.2"
    owners = {mine: "h1", other: "h2"}
    right = [seen("sender", mine, other), seen("receiver", other, mine), seen("sender", mine, "8.8.8.8")]
    wrong = [seen("sender", other, mine), seen("receiver", mine, other), seen("both", mine, mine),
             seen("receiver", mine, "8.8.8.8")]  # fmt: skip
    report = ActiveFlows(1.0, [*wrong, *right], 5)
    assert own_flows(report, "h1", owners, 32) == ActiveFlows(1.0, right, 5)
    assert own_flows(report, "h1", owners, 2).flows == right[:2]
    assert own_flows(report, "h3", owners, 32).flows == []


def test_what_is_no_path_is_left_out_of_a_flow() -> None:
    """800 000 names of paths were 181 MB, for ever."""
    paths = {"0": 1, "7": 2, "4095": 3}
    names = {**paths, "4096": 1, "00007": 1, "x": 1, "": 1, "-1": 1, "\u0663": 1, "99999": 1}
    entry = seen("sender", "a", "b", paths=names, paths_by_class={"short": names})
    (kept,) = own_flows(ActiveFlows(1.0, [entry]), "h1", {"a": "h1"}, 32).flows
    assert (kept.paths, kept.paths_by_class) == (paths, {})
    many = seen("sender", "a", "b", paths={str(one): 1 for one in range(2000)})
    (kept,) = own_flows(ActiveFlows(1.0, [many]), "h1", {"a": "h1"}, 32).flows
    assert len(kept.paths) == 1024


def test_active_flows_that_were_not_asked_for_are_dropped(tmp_path: Path) -> None:
    """They were queued without an end while no client watched."""
    with served(tmp_path) as at:
        got: list[tuple[str, ActiveFlows]] = []
        at.server.call(lambda: at.server.active_flows.subscribe(lambda host, said: got.append((host, said))))
        agent = RawAgent.joined(at.socket_path, 1)
        flow = seen("sender", "10.128.1.1", "10.128.1.2")
        agent.send(ActiveFlows(1.0, [flow]))
        agent.send(Counters({"first": 1.0}))
        eventually(lambda: at.server.agents()[0].counters, "what came after")
        assert got == []
        at.server.watch_flows(0.5, 32)
        agent.send(ActiveFlows(2.0, [flow, seen("sender", "10.128.1.2", "10.128.1.1")]))
        eventually(lambda: got, "what was asked for")
        at.server.watch_flows(0.0, 0)
        agent.send(ActiveFlows(3.0, [flow]))
        agent.send(Counters({"second": 1.0}))
        eventually(lambda: "second" in at.server.agents()[0].counters, "what came after")
        assert got == [("h1", ActiveFlows(2.0, [flow]))]
        agent.close()


def test_reports_that_wait_are_the_newest_of_each_host() -> None:
    waiting = Answers()
    for number in range(100):
        for host in ("h1", "h2"):
            waiting.put(host, ActiveFlows(float(number), []), float(number))
    taken = waiting.take()
    assert [(host, at) for host, _, at in taken] == [
        (host, 96.0 + n) for host in ("h1", "h2") for n in range(4)
    ]
    assert waiting.take() == []


def test_a_timer_that_fails_once_is_planned_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directory_distribution, "AGAIN_S", 0.05)
    failures = list[OSError]()

    def failing(message: Message) -> bytes:
        if failures:
            raise failures.pop()
        return encode(message)

    monkeypatch.setattr(directory_distribution, "encode", failing)
    with served(tmp_path) as at:
        first = RawAgent.joined(at.socket_path, 1)
        while [peer.host for peer in first.next(Directory).peers] != ["h1"]:
            continue
        failures.append(OSError("of ours"))
        at.server.call(at.server._directory.changed)
        assert first.next(Directory).peers[0].host == "h1"
        assert failures == []
        first.close()


def test_what_is_refused_is_counted(tmp_path: Path) -> None:
    with served(tmp_path) as at:
        thief = RawAgent.unix(at.socket_path)
        thief.send(hello(1, thief.next(Challenge).nonce, token="a guess"))
        thief.all()
        for before in (True, False):
            broken = RawAgent.unix(at.socket_path) if before else RawAgent.joined(at.socket_path, 2)
            broken.connection.sendall(b"GET / HTTP/1.1\r\n\r\n")
            broken.all()
        nameless = RawAgent.unix(at.socket_path)
        nameless.send(hello(1, nameless.next(Challenge).nonce, host="../x"))
        nameless.all()
        wanted = {"wrong-proofs": 1, "bad-frames": 2, "refused-members": 1, "connections": 2}
        eventually(lambda: {**at.server.counters()} == wanted, f"{wanted}")
