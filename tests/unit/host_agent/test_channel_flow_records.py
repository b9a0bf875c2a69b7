"""Records of flows on the agent's channel: they outlive connections, and room that is full."""

from __future__ import annotations

import socket
import ssl
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from host_agent.channel import OUTGOING_LIMIT, Connected
from protocol.control import (
    FLOWS_PER_PART,
    Challenge,
    Counters,
    FinishedFlows,
    FlowEntry,
    FlowReport,
    Hello,
    Message,
    Ping,
    PolicyApplied,
    Pong,
    Report,
    Welcome,
    proof,
)
from protocol.frames import FrameReader, encode
from protocol.limits import FRAME_BYTES
from tests.unit.agents_channel import TOKEN, agent_config, impostor, running_channel, served
from tests.unit.host_agent.channel_controller import receive, welcome
from tests.unit.own_ca import make_ca
from tests.waiting import eventually


def finished(port: int) -> FinishedFlows:
    """Return one flow's record; its source port distinguishes it from others."""
    return FinishedFlows(9.0, [6], ["10.128.1.1"], [port], ["10.128.1.2"], [80], [1000], [1.0], [2.0])


def test_records_of_flows_outlive_a_connection_that_is_being_made_or_lost(tmp_path: Path) -> None:
    """Sent while the controller is away, or its welcome on the way, they arrive once and in order."""
    path = tmp_path / "agents.sock"
    half_welcomed, go_on = threading.Event(), threading.Event()
    got: list[Message] = []

    def behave(connection: socket.socket, number: int) -> None:
        connection.sendall(encode(Challenge("ab")))
        hello = receive(connection, Hello)
        if number == 1:
            half_welcomed.set()
            assert go_on.wait(60)
        connection.sendall(encode(Welcome(proof(TOKEN, "controller", hello.nonce))))
        reader = FrameReader()
        connection.settimeout(60)
        while len(got) < 4:
            got.extend(reader.feed(connection.recv(65536)))

    with running_channel(agent_config(f"unix:{path}")) as agent:
        agent.channel.send(finished(1))
        agent.channel.send(PolicyApplied(7))
        with impostor(path, behave):
            assert half_welcomed.wait(60)
            agent.channel.send(finished(2))
            agent.channel.send(Counters({"old": 1.0}))
            agent.channel.send(finished(3))
            go_on.set()
            agent.wait(Connected)
            agent.channel.send(Counters({"new": 1.0}))
            eventually(lambda: len(got) >= 4, "four messages")
        assert agent.channel.dropped == 2
    assert got == [finished(1), finished(2), finished(3), Counters({"new": 1.0})]


def test_a_record_that_went_in_part_goes_whole_on_the_next_connection(tmp_path: Path) -> None:
    path = tmp_path / "agents.sock"
    big = replace(finished(0), source=["10.128.1.1" * 100] * 4_000)
    got: list[Message] = []

    def behave(connection: socket.socket, number: int) -> None:
        welcome(connection)
        connection.settimeout(60)
        if number == 1:
            connection.recv(10)
            connection.close()
            return
        reader = FrameReader()
        while not got:
            got.extend(reader.feed(connection.recv(65536)))

    with impostor(path, behave) as times, running_channel(agent_config(f"unix:{path}")) as agent:
        agent.channel.send(big)
        eventually(lambda: got, "the record")
        assert len(times) == 2
        assert agent.channel.dropped == 0
    assert got == [big]


def test_where_all_room_is_taken_records_of_flows_replace_what_would_not_last(tmp_path: Path) -> None:
    with running_channel(agent_config(f"unix:{tmp_path / 'agents.sock'}")) as agent:
        for number in range(OUTGOING_LIMIT):
            agent.channel.send(Counters({"number": float(number)}))
        for number in range(OUTGOING_LIMIT + 5):
            agent.channel.send(finished(number))
        assert agent.channel.dropped == OUTGOING_LIMIT + 5
        with served(tmp_path) as at:
            eventually(lambda: len(at.finished) == OUTGOING_LIMIT, "all that found room")
    assert [record.source_port for record in at.finished] == [[number] for number in range(OUTGOING_LIMIT)]


def test_what_is_said_once_takes_the_room_of_what_is_said_again(tmp_path: Path) -> None:
    """A host's many requests to a controller that was started again took the room of its word on the policy.

    Nor did it answer pings then, of which a controller lets 32 wait, and sends no more.
    """
    path = tmp_path / "agents.sock"
    may_ping, may_read = threading.Event(), threading.Event()
    got: list[Message] = []

    def behave(connection: socket.socket, number: int) -> None:
        welcome(connection)
        assert may_ping.wait(60)
        connection.sendall(encode(Ping(5)))
        assert may_read.wait(60)
        reader = FrameReader()
        connection.settimeout(60)
        while Pong(5) not in got:
            got.extend(reader.feed(connection.recv(65536)))

    with impostor(path, behave), running_channel(agent_config(f"unix:{path}")) as agent:
        agent.wait(Connected)
        while not agent.channel.dropped:
            agent.channel.send(Counters({f"counter{number}": 1.0 for number in range(500)}))
        agent.channel.send(PolicyApplied(7))
        assert agent.channel.dropped == 2
        may_ping.set()
        eventually(lambda: agent.channel.dropped == 3, "an answer to the ping that takes room, too", 30)
        may_read.set()
        eventually(lambda: Pong(5) in got, "the answer to the ping", 30)
    assert PolicyApplied(7) in got


@pytest.mark.slow
def test_a_record_that_takes_room_leaves_the_frame_that_tls_has_begun(tmp_path: Path) -> None:
    """TLS that could not write must be given the same bytes again, though it says that none of them have gone."""
    ca = make_ca(tmp_path / "ca")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(ca.certificate, ca.key)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        config = agent_config(f"tls:127.0.0.1:{listener.getsockname()[1]}", ca=ca.authority)
        with (
            running_channel(config) as agent,
            context.wrap_socket(listener.accept()[0], server_side=True) as connection,
        ):
            welcome(connection)
            agent.wait(Connected)
            sent = records = replaced = 0
            while replaced < OUTGOING_LIMIT // 2:
                dropped = agent.channel.dropped
                agent.channel.send(
                    Counters({f"{sent}.{number}": 1.0 for number in range(500 + 10 * (sent % 7))})
                )
                sent += 1
                if agent.channel.dropped > dropped:  # no room; its thread may make some at any time
                    dropped = agent.channel.dropped
                    agent.channel.send(finished(records))
                    records += 1
                    replaced += agent.channel.dropped - dropped
            reader, got = FrameReader(), list[Message]()
            connection.settimeout(60)
            while finished(records - 1) not in got:
                data = connection.recv(65536)
                assert data, "the agent ended the connection"
                got.extend(reader.feed(data))
    numbers = [int(next(iter(one.values)).partition(".")[0]) for one in got if isinstance(one, Counters)]
    assert numbers == sorted(set(numbers))
    assert len(numbers) == sent - agent.channel.dropped
    assert [one for one in got if isinstance(one, FinishedFlows)] == [
        finished(number) for number in range(records)
    ]


@pytest.mark.slow
def test_a_report_of_more_flows_than_a_frame_holds_arrives_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("protocol.frames.FRAME_BYTES", 100_000)
    flows = [
        FlowEntry("sender", 6, "10.128.1.1", port, "10.128.1.2", 2, "short", 3, 4, 0.0, 1.0)
        for port in range(5000)
    ]
    with (
        served(tmp_path) as at,
        running_channel(agent_config(f"unix:{at.socket_path}")) as agent,
        ThreadPoolExecutor(1) as asking,
    ):
        agent.wait(Connected)
        for count in (5000, 256, 0):
            asked = asking.submit(at.server.report, True, 60.0)
            eventually(lambda: agent.has(Report) or None, "a report is asked for")
            agent.channel.send(*FlowReport.parts(agent.has(Report)[-1].id, flows[:count]))
            assert asked.result().hosts == {"h1": flows[:count]}
            agent.got.clear()
        assert agent.channel.dropped == 0


def test_a_message_that_no_frame_holds_does_not_end_the_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("protocol.frames.FRAME_BYTES", 100_000)
    with served(tmp_path) as at, running_channel(agent_config(f"unix:{at.socket_path}")) as agent:
        agent.wait(Connected)
        agent.channel.send(PolicyApplied(1, "x" * 100_000))
        assert agent.channel.dropped == 1
        agent.channel.send(Counters({"still": 1.0}))
        eventually(lambda: at.server.agents()[0].counters, "counters")


@pytest.mark.slow
def test_the_parts_of_a_report_fit_their_frames_whatever_paths_its_flows_took() -> None:
    paths = {str(0xFFFF - stamp): 2**63 for stamp in range(1024)}
    entry = FlowEntry("receiver", 6, "f" * 39, 65535, "f" * 39, 65535, "control", 2**63, 2**63, 1 / 3, 1 / 3)
    entry = replace(entry, paths=paths, paths_by_class={"control": paths})
    (first, last) = FlowReport.parts(1, [entry] * (FLOWS_PER_PART + 1))
    assert (first.more, last.more) == (True, False)
    assert len(encode(first)) <= FRAME_BYTES
