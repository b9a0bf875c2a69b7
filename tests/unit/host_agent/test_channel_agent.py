"""The agent's end of the control channel, over real sockets: what it believes, and how it comes back."""

from __future__ import annotations

import json
import logging
import socket
import threading
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from controller.agents.listeners import TcpListener
from host_agent import channel as channel_module
from host_agent.channel import LAST_RETRY_S, OUTGOING_LIMIT, Channel, Connected, Disconnected
from host_agent.config import ConfigError
from protocol.control import (
    Challenge,
    Counters,
    Directory,
    FlowEntry,
    FlowReport,
    Hello,
    Ping,
    PolicyApplied,
    Pong,
    Refused,
    SetPolicy,
    Welcome,
)
from protocol.frames import FrameReader, encode
from protocol.policy import Policy
from tests.unit.agents_channel import RawAgent, agent_config, frame, impostor, running_channel, served
from tests.unit.host_agent.channel_controller import receive, welcome
from tests.unit.own_ca import make_ca
from tests.waiting import eventually


def test_an_agent_gets_directory_and_policy_and_confirms_over_a_unix_socket(tmp_path: Path) -> None:
    with served(tmp_path) as at, running_channel(agent_config(f"unix:{at.socket_path}")) as agent:
        at.server.set_policy(Policy(7, "caps"))
        agent.wait(Connected)
        assert [peer.host for peer in agent.wait(Directory)[-1].peers] == ["h1"]
        assert agent.wait(SetPolicy)[-1].policy["version"] == 7
        assert [one.why for one in at.server.wait_applied(7, 0.1)] == ["has not confirmed policy 7"]
        agent.channel.send(PolicyApplied(7))
        assert at.server.wait_applied(7, 10) == ()


def test_the_same_over_tcp_and_tls_with_an_authority_of_our_own(tmp_path: Path) -> None:
    ca = make_ca(tmp_path / "ca")
    with served(tmp_path, TcpListener("127.0.0.1", 0, ca.certificate, ca.key)) as at:
        url = f"tls:127.0.0.1:{at.server.tcp_port}"
        with running_channel(agent_config(url, ca=ca.authority)) as agent:
            agent.wait(Directory)
            at.server.set_policy(Policy(3, "caps"))
            agent.wait(SetPolicy)
            agent.channel.send(PolicyApplied(3))
            assert at.server.wait_applied(3, 10) == ()
            # far more than a socket's buffer, both ways at once, through one TLS connection
            entry = FlowEntry("sender", 6, "a" * 200, 1, "b", 2, "short", 3, 4, 0.0, 1.0)
            for number in range(4, 9):
                at.server.set_policy(Policy(number, "caps"))
                agent.channel.send(FlowReport(number, [entry] * 2000))
            eventually(lambda: agent.has(SetPolicy)[-1].policy["version"] == 8, "the newest policy")
            agent.channel.send(PolicyApplied(8))
            assert at.server.wait_applied(8, 10) == ()


@pytest.mark.parametrize("wrong", ["authority", "name"])
def test_a_controller_with_another_certificate_never_learns_who_we_are(
    tmp_path: Path, wrong: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    ours = make_ca(tmp_path / "ours")
    theirs = make_ca(tmp_path / "theirs", "127.0.0.1" if wrong == "authority" else "192.0.2.1")
    believed = ours if wrong == "authority" else theirs
    with served(tmp_path, TcpListener("127.0.0.1", 0, theirs.certificate, theirs.key)) as at:
        url = f"tls:127.0.0.1:{at.server.tcp_port}"
        with running_channel(agent_config(url, ca=believed.authority)) as agent:
            eventually(lambda: "CERTIFICATE_VERIFY_FAILED" in caplog.text, "a refusal in the log")
            assert not agent.has(Connected)
        assert at.joined == []


def test_an_authority_that_cannot_be_read_is_said_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "empty.pem").write_text("nothing")
    for name in ("missing.pem", "empty.pem"):
        with pytest.raises(ConfigError, match=rf"certificate authority .*{name}"):
            running_channel(agent_config("tls:127.0.0.1:1", ca=tmp_path / name)).__enter__()


def test_a_wrong_token_is_refused_with_the_reason_and_tried_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    with served(tmp_path) as at:
        config = agent_config(f"unix:{at.socket_path}", token="some other token, just as long")
        with running_channel(config) as agent:
            eventually(
                lambda: caplog.text.count("do both sides have the same token file, for this host?") >= 2,
                "two refusals",
            )
            assert not agent.has(Connected)
        assert at.server.agents() == []


def test_why_a_channel_is_ended_is_in_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Of two agents of one host each said that the controller had closed its connection, and no more."""
    with served(tmp_path) as at, running_channel(agent_config(f"unix:{at.socket_path}")) as agent:
        agent.wait(Connected)
        other = RawAgent.joined(at.socket_path, 1, session=77)
        eventually(lambda: "another agent of host 'h1' has registered" in caplog.text, "the reason")
        other.close()


def test_who_does_not_know_the_token_cannot_give_orders(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """An impostor at the controller's address: the agent asks it for a proof before it obeys."""
    caplog.set_level(logging.INFO)

    def pretend(connection: socket.socket, number: int) -> None:
        connection.sendall(encode(Challenge("ab")))
        hello = receive(connection, Hello)
        # the best it can do: give the agent's own proof back, in the other role
        connection.sendall(encode(Welcome(hello.proof)) + encode(SetPolicy(Policy(99, "evil").to_dict())))

    path = tmp_path / "agents.sock"
    with impostor(path, pretend) as times, running_channel(agent_config(f"unix:{path}")) as agent:
        eventually(lambda: len(times) >= 3, "three attempts")
        assert agent.got == []
    assert "does not know the token" in caplog.text


def frame_of(data: dict[str, Any]) -> bytes:
    body = json.dumps(data).encode()
    return frame(len(body) + 1, 0x4A, body)


@pytest.mark.parametrize(
    "rubbish",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        frame(2**31, 0x4A, b""),
        frame(0, 0x4A, b""),
        frame(3, 0x4A, b"{}"),
        frame(9, 0x42, b"binary.."),
        encode(Ping(1)),
        encode(Refused("go away")),
        encode(Welcome("é" * 64)),
        frame_of({"type": "welcome", "proof": "\ud800"}),
        frame_of({"type": "ping", "id": int("9" * 4000)}),
        frame_of({"type": "ping", "id": 1e308}),
        b"",
    ],
    ids=[
        "text",
        "oversize",
        "length 0",
        "no type",
        "format",
        "ping first",
        "refused",
        "odd proof",
        "half a character",
        "long number",
        "large number",
        "nothing",
    ],
)
@pytest.mark.parametrize("when", ["first", "after the challenge", "after the welcome"])
def test_rubbish_from_the_controller_ends_the_connection_and_not_the_agent(
    tmp_path: Path, rubbish: bytes, when: str
) -> None:
    def behave(connection: socket.socket, number: int) -> None:
        if number > 1 or when == "after the welcome":
            welcome(connection)
        elif when == "after the challenge":
            connection.sendall(encode(Challenge("ab")))
            receive(connection, Hello)
        if number == 1:
            connection.sendall(rubbish)
            connection.close()
        else:
            connection.sendall(encode(SetPolicy({"version": number})))

    path = tmp_path / "agents.sock"
    with impostor(path, behave), running_channel(agent_config(f"unix:{path}")) as agent:
        assert agent.wait(SetPolicy)[0].policy == {"version": 2}


class RecordedWaits(threading.Event):
    """Not set, and waited for without a wait: keeps for how many seconds it was to be."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: list[float | None] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.seconds.append(timeout)
        return super().wait(0.0)


def test_attempts_become_rarer_but_never_rarer_than_the_last_wait(tmp_path: Path) -> None:
    path = tmp_path / "agents.sock"
    channel = Channel(agent_config(f"unix:{path}"), 1, "00:00:00:00:01:01", "0.1.0")
    channel._stop = waits = RecordedWaits()
    with impostor(path, lambda connection, _: connection.close()) as times:
        channel.start()
        eventually(lambda: len(times) >= 9, "nine attempts")
        channel.stop()
    assert waits.seconds[:8] == [0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0, 2.0]
    assert all(wait == LAST_RETRY_S for wait in waits.seconds[5:])


def test_connections_that_end_at_once_become_rarer_too(tmp_path: Path) -> None:
    """Two agents of one host took each other's place ten times a second, each time with an event."""
    path = tmp_path / "agents.sock"
    channel = Channel(agent_config(f"unix:{path}"), 1, "00:00:00:00:01:01", "0.1.0")
    channel._stop = waits = RecordedWaits()

    def behave(connection: socket.socket, number: int) -> None:
        welcome(connection)
        connection.close()

    with impostor(path, behave):
        channel.start()
        eventually(lambda: (channel.messages(), len(waits.seconds) >= 8)[1], "eight connections")
        channel.stop()
    assert waits.seconds[:8] == [0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0, 2.0]


def test_a_controller_that_restarts_finds_its_agent_again_and_the_agent_its_policy(tmp_path: Path) -> None:
    with served(tmp_path) as at:
        at.server.set_policy(Policy(4, "caps"))
        agent_context = running_channel(agent_config(f"unix:{at.socket_path}"))
        agent = agent_context.__enter__()
        agent.wait(SetPolicy)
    try:
        assert not (tmp_path / "agents.sock").exists()
        agent.got.clear()
        with served(tmp_path) as at:
            at.server.set_policy(Policy(5, "rps"))
            assert [member.host for member in at.joined] == ["h1"], "known before it has a channel"
            agent.wait(Connected)
            assert agent.wait(SetPolicy)[-1].policy["scheme"] == "rps"
            assert len(at.joined) == 2
    finally:
        agent_context.__exit__(None, None, None)
    # nothing but what a controller sent ever came: with none there, the agent keeps what it has
    assert {type(message) for message in agent.got} <= {Connected, Disconnected, Directory, SetPolicy}


def test_the_agent_learns_that_it_has_no_controller(tmp_path: Path) -> None:
    with running_channel(agent_config(f"unix:{tmp_path / 'agents.sock'}")) as agent:
        for count in (1, 2):
            with served(tmp_path):
                agent.wait(Connected, count)
            agent.wait(Disconnected, count)
        ends = [type(one) for one in agent.got if isinstance(one, Connected | Disconnected)]
        assert ends == [Connected, Disconnected, Connected, Disconnected]


@pytest.mark.slow
def test_a_controller_that_fell_silent_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that lost power closes no TCP connection: without this an agent would wait for a quarter hour."""
    monkeypatch.setattr(channel_module, "SILENCE_S", 0.6)
    path = tmp_path / "agents.sock"
    with (
        impostor(path, lambda connection, _: welcome(connection)) as times,
        running_channel(agent_config(f"unix:{path}")) as agent,
    ):
        agent.wait(Connected, 3)
    assert all(later - before > 0.2 for before, later in pairwise(times))


@pytest.mark.slow
def test_pings_are_answered_and_keep_the_channel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A controller that says nothing but pings keeps its agent for longer than it may be silent.

    Where this process itself had to wait so long for a processor, the next connection is looked at.
    """
    monkeypatch.setattr(channel_module, "SILENCE_S", 1.0)
    kept: list[float] = []

    def behave(connection: socket.socket, number: int) -> None:
        welcome(connection)
        reader = FrameReader()
        began = time.monotonic()
        for ping in range(12):
            connection.sendall(encode(Ping(ping)))
            assert receive(connection, Pong, reader).id == ping
            time.sleep(0.125)
        connection.sendall(encode(Ping(12)))
        assert receive(connection, Pong, reader).id == 12
        kept.append(time.monotonic() - began)

    path = tmp_path / "agents.sock"
    with impostor(path, behave), running_channel(agent_config(f"unix:{path}")):
        eventually(lambda: kept, "thirteen pongs on one connection")
    assert kept[0] >= 1.5


@pytest.mark.slow
def test_a_controller_that_does_not_read_delays_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channel_module, "SILENCE_S", 3600.0)
    path = tmp_path / "agents.sock"
    with (
        impostor(path, lambda connection, _: welcome(connection)) as times,
        running_channel(agent_config(f"unix:{path}")) as agent,
    ):
        agent.wait(Connected)
        big = Counters({f"counter{number}": 1.0 for number in range(3000)})
        sent = 0
        while agent.channel.dropped < 10:
            agent.channel.send(big)
            sent += 1
        assert sent > OUTGOING_LIMIT
        assert len(times) == 1


def test_what_was_said_to_a_lost_connection_is_not_said_to_the_next(tmp_path: Path) -> None:
    with running_channel(agent_config(f"unix:{tmp_path / 'agents.sock'}")) as agent:
        for number in range(200):
            agent.channel.send(PolicyApplied(number))
        assert (agent.channel.dropped, agent.channel.has_room) == (200 - OUTGOING_LIMIT, False)
        with served(tmp_path) as at:
            agent.wait(Connected)
            agent.channel.send(Counters({"one": 1.0}))
            eventually(lambda: at.server.agents()[0].counters, "counters")
            assert at.server.agents()[0].policy_version == -1


def test_newer_fields_of_a_controller_are_passed_over(tmp_path: Path) -> None:
    def behave(connection: socket.socket, number: int) -> None:
        welcome(connection)
        body = json.dumps({"type": "policy", "policy": {"version": 8}, "later": 1}).encode()
        connection.sendall(frame(len(body) + 1, 0x4A, body))

    path = tmp_path / "agents.sock"
    with impostor(path, behave), running_channel(agent_config(f"unix:{path}")) as agent:
        assert agent.wait(SetPolicy)[0].policy == {"version": 8}


def test_raw_agents_speak_as_real_ones_do(tmp_path: Path) -> None:
    """The tests of the server use `RawAgent`: it must get what a real agent gets."""
    with served(tmp_path) as at:
        at.server.set_policy(Policy(2, "caps"))
        raw = RawAgent.joined(at.socket_path, 1)
        with running_channel(agent_config(f"unix:{at.socket_path}", 2), 2) as agent:
            agent.wait(Directory)
            eventually(lambda: len(agent.has(Directory)[-1].peers) == 2, "both")
            agent.wait(SetPolicy)
        assert raw.next(SetPolicy).policy == agent.has(SetPolicy)[0].policy
        raw.close()
