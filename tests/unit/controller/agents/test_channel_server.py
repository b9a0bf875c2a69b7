"""The controller's end of the agents' channel, over real sockets: who gets in, and what bad ones can do."""

from __future__ import annotations

import dataclasses
import json
import logging
import socket
import ssl
import stat
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from controller.agents.listeners import TcpListener
from controller.agents.server import AgentServer
from controller.agents.session import OPENING_BYTES, AgentSession, Timing
from controller.agents.settings import ChannelSettings
from controller.agents.shares import MOST_UNKNOWN_PER_PEER
from controller.agents.token import TokenError, host_tokens
from host_agent.channel import Connected
from protocol.admission import Stop
from protocol.control import (
    Challenge,
    Counters,
    Directory,
    Pong,
    Refused,
    SetPolicy,
    Welcome,
)
from protocol.frames import encode
from protocol.policy import Policy
from tests.unit.agents_channel import TOKEN, RawAgent, agent_config, frame, hello, running_channel, served
from tests.unit.own_ca import make_ca
from tests.waiting import eventually


def test_an_agent_that_knows_the_token_is_a_member_and_in_everybodys_directory(tmp_path: Path) -> None:
    with served(tmp_path) as at:
        first, second = RawAgent.joined(at.socket_path, 1), RawAgent.joined(at.socket_path, 2)
        for agent in (first, second):
            while [peer.host for peer in agent.next(Directory).peers] != ["h1", "h2"]:
                continue
        assert [member.host for member in at.joined] == ["h1", "h2"]
        assert at.connected() == ["h1", "h2"]
        first.close()
        second.close()


def test_a_wrong_proof_gets_a_reason_and_nothing_else(tmp_path: Path) -> None:
    with served(tmp_path) as at:
        thief = RawAgent.unix(at.socket_path)
        thief.send(hello(1, thief.next(Challenge).nonce, token="a guess at the token"))
        assert [type(message) for message in thief.all()] == [Refused]
        assert at.server.agents() == []
        assert at.joined == []


def test_a_recorded_hello_is_worth_nothing_on_another_connection(tmp_path: Path) -> None:
    with served(tmp_path) as at:
        honest = RawAgent.unix(at.socket_path)
        recorded = hello(1, honest.next(Challenge).nonce)
        honest.send(recorded)
        honest.next(Welcome)
        honest.close()
        replayed = RawAgent.unix(at.socket_path)
        replayed.next(Challenge)
        replayed.send(recorded)
        answer = replayed.all()
        assert [type(message) for message in answer] == [Refused]
        assert "proof does not match" in answer[0].reason  # type: ignore[union-attr]


BAD_FRAMES = {
    "a length beyond all bounds": frame(2**32 - 1, 0x4A, b""),
    "length 0": frame(0, 0x4A, b""),
    "another format": frame(5, 0x99, b"abcd"),
    "no JSON": frame(6, 0x4A, b"{nope"),
    "JSON that is not an object": frame(3, 0x4A, b"[]"),
    "bottomless JSON": frame(60_001, 0x4A, b"[" * 60_000),
    "a type that is not known": frame(16, 0x4A, b'{"type":"quit"}'),
    "a field of another type": frame(25, 0x4A, b'{"type":"ping","id":"x"}'),
    "bytes that are no text": frame(4, 0x4A, b"\xff\xfe\xfd"),
    "text of another protocol": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "what only a controller says": encode(SetPolicy({"version": 5})),
}


@pytest.mark.parametrize("bad", BAD_FRAMES.values(), ids=BAD_FRAMES)
@pytest.mark.parametrize("known", [False, True], ids=["before the hello", "after the welcome"])
def test_a_bad_frame_ends_its_own_connection_only(tmp_path: Path, bad: bytes, known: bool) -> None:
    with served(tmp_path) as at:
        good = RawAgent.joined(at.socket_path, 1)
        broken = RawAgent.unix(at.socket_path)
        if known:
            broken.register(2)
        broken.connection.sendall(bad)
        broken.all()  # returns: the server closes
        eventually(lambda: at.connected() == ["h1"], "the bad one gone")
        at.server.set_policy(Policy(3, "caps"))
        assert good.next(SetPolicy).policy["version"] == 3
        good.close()


@pytest.mark.parametrize("changes", [{"nonce": "\ud800"}, {"host": "h\udfff"}, {"version": "\ud83d"}])
def test_a_hello_with_half_a_character_makes_no_member(tmp_path: Path, changes: dict[str, Any]) -> None:
    with served(tmp_path) as one:
        agent = RawAgent.unix(one.socket_path)
        agent.send(dataclasses.replace(hello(1, agent.next(Challenge).nonce), **changes))
        (refused,) = agent.all()
        assert isinstance(refused, Refused)
        assert "half a character" in refused.reason
        assert one.server.agents() == []
        assert one.joined == []


def test_an_error_of_ours_costs_a_channel_and_leaves_no_ghost(tmp_path: Path) -> None:
    with served(tmp_path, grace_s=0.2) as one:
        first = RawAgent.joined(one.socket_path)
        failures = [KeyError("h1")]

        def fail(host: str) -> None:
            if failures:
                raise failures.pop()

        one.server.gone.subscribe(fail)
        second = RawAgent.unix(one.socket_path)
        second.send(hello(1, second.next(Challenge).nonce, session=77))
        assert isinstance(second.all()[-1], Refused)
        assert isinstance(first.all()[-1], Refused)
        eventually(lambda: one.server.agents() == [], "it has expired")


def test_counters_have_a_number_and_names_a_length(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with served(tmp_path) as one:
        refused = (({f"n{number}": 1.0 for number in range(513)}, "513 are more"), ({"n" * 101: 1.0}, "101"))
        for values, why in refused:
            agent = RawAgent.joined(one.socket_path)
            agent.send(Counters(values))
            agent.all()
            eventually(lambda: one.connected() == [], "it is let go")
            assert one.server.agents()[0].counters == {}
            assert "lost: counters: " in caplog.records[-1].getMessage(), "and not because it said nothing"
            assert why in caplog.records[-1].getMessage()
        agent = RawAgent.joined(one.socket_path)
        agent.send(Counters({f"n{number}": 1.0 for number in range(512)}))
        eventually(lambda: len(one.server.agents()[0].counters) == 512, "so many are taken")


def test_silent_connections_of_one_address_shut_no_other_out(tmp_path: Path) -> None:
    ca = make_ca(tmp_path / "ca")
    with served(tmp_path, TcpListener("0.0.0.0", 0, ca.certificate, ca.key)) as one, ExitStack() as stack:
        port = one.server.tcp_port
        assert port is not None
        context = ssl.create_default_context(cafile=str(ca.authority))
        for _ in range(MOST_UNKNOWN_PER_PEER):
            silent = stack.enter_context(RawAgent.tls(port, context).connection)
            assert RawAgent(silent).next(Challenge).nonce
        late = RawAgent.tls(port, context)
        (refused,) = late.all()
        assert "try again later" in refused.reason  # type: ignore[union-attr]
        plain = socket.create_connection(("127.0.0.1", port), timeout=60, source_address=("127.0.0.2", 0))
        other = RawAgent(context.wrap_socket(plain, server_hostname="127.0.0.1"))
        other.register(2)
        agent = RawAgent.joined(one.socket_path)
        assert set(one.connected()) == {"h1", "h2"}
        agent.connection.close()
        other.connection.close()


def test_half_a_frame_and_then_nothing_is_dropped_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("controller.agents.session.OPENING_TIMEOUT_S", 0.3)
    with served(tmp_path) as at:
        began = time.monotonic()
        slow = RawAgent.unix(at.socket_path)
        whole = encode(hello(1, slow.next(Challenge).nonce))
        slow.connection.sendall(whole[:-1])
        assert [type(message) for message in slow.all()] == [Refused]
        assert time.monotonic() - began >= 0.3


def test_truncated_frames_at_the_end_of_a_connection_do_no_harm(tmp_path: Path) -> None:
    with served(tmp_path) as at:
        for cut in (1, 4, 5, 40):
            agent = RawAgent.joined(at.socket_path, 1)
            agent.connection.sendall(encode(Counters({"packets": 1.0}))[:cut])
            agent.close()
            eventually(lambda: at.connected() == [], "disconnected")
        agent = RawAgent.joined(at.socket_path, 1)
        agent.send(Counters({"packets": 2.0}))
        eventually(lambda: at.server.agents()[0].counters == {"packets": 2.0}, "counters")
        agent.close()


def test_no_client_may_say_much_before_it_is_known_who_speaks(tmp_path: Path) -> None:
    with served(tmp_path) as at:
        flood = RawAgent.unix(at.socket_path)
        flood.next(Challenge)
        flood.connection.sendall(frame(16 * 1024 * 1024, 0x4A, b""))
        said = 0
        with suppress(OSError):
            while said < 16 * 1024 * 1024:
                said += flood.connection.send(b" " * 4096)
        assert said < OPENING_BYTES + 2 * 1024 * 1024, "what the buffers of two sockets and a reader hold"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"host": "../../etc"}, "host name '../../etc' must be letters"),
        ({"host": ""}, "host name '' must be letters"),
        ({"underlay_ip": "10.0.1"}, "10.0.1"),
        ({"underlay_ip": "fd00::1"}, "fd00::1"),
        ({"underlay_mac": "00:00"}, "underlay_mac '00:00' is not an Ethernet address"),
        ({"overlay": []}, "needs 1 to 64 overlay addresses"),
        ({"overlay": ["10.128.1.1/9"]}, "10.128.1.1/9"),
        ({"session": 2**32}, "not a 32-bit number"),
        ({"session": -1}, "not a 32-bit number"),
    ],
)
def test_an_agent_that_cannot_be_gets_the_reason(
    tmp_path: Path, changes: dict[str, object], reason: str
) -> None:
    with served(tmp_path) as at:
        agent = RawAgent.unix(at.socket_path)
        agent.send(hello(1, agent.next(Challenge).nonce, **changes))
        assert reason in agent.next(Refused).reason
        assert at.server.agents() == []


def test_a_host_with_a_token_of_its_own_takes_no_others_name(tmp_path: Path) -> None:
    tokens = host_tokens(tmp_path / "agent-tokens", ["h1", "h2"])
    assert tokens == host_tokens(tmp_path / "agent-tokens", ["h1", "h2"])
    assert len({*tokens.values()}) == 2
    assert stat.S_IMODE((tmp_path / "agent-tokens").stat().st_mode) == 0o700
    path = tmp_path / "agents.sock"
    settings = ChannelSettings(path, tmp_path / "members.json", host_tokens=tokens)
    server = AgentServer(settings, TOKEN)
    server.start()
    try:
        for number in (1, 2):
            with running_channel(
                agent_config(f"unix:{path}", number, token=tokens[f"h{number}"]), number
            ) as agent:
                agent.wait(Connected)
                for claimed, token in (
                    (1, tokens["h2"]),
                    (2, tokens["h1"]),
                    (3, tokens["h1"]),
                    (1, TOKEN),
                    (3, TOKEN),
                ):
                    other = RawAgent.unix(path)
                    other.send(hello(claimed, other.next(Challenge).nonce, token, session=99))
                    (refused,) = other.all()
                    assert "for this host" in refused.reason  # type: ignore[union-attr]
                assert {one.host: one.connected for one in server.agents()}[f"h{number}"]
    finally:
        server.stop()


@pytest.mark.parametrize("host", ["../h1", "", "a/b", ".h", "h" * 64, "h\n"])
def test_what_is_no_host_name_has_no_token(tmp_path: Path, host: str) -> None:
    with pytest.raises(TokenError, match="not a host name"):
        host_tokens(tmp_path / "agent-tokens", [host])


def test_an_address_has_one_owner(tmp_path: Path) -> None:
    with served(tmp_path, grace_s=60) as at:
        first = RawAgent.joined(at.socket_path, 1)
        second = RawAgent.unix(at.socket_path)
        second.send(hello(2, second.next(Challenge).nonce, underlay_ip="10.0.1.1"))
        assert "address 10.0.1.1 belongs to host 'h1', which is here" in second.next(Refused).reason
        first.close()
        eventually(lambda: at.connected() == [], "h1 without a channel")
        third = RawAgent.joined(at.socket_path, 2, underlay_ip="10.0.1.1")
        assert [member.host for member in at.left] == ["h1"], "a host that is not here cannot keep an address"
        third.close()


def test_a_second_agent_of_a_host_takes_the_place_of_the_first(tmp_path: Path) -> None:
    with served(tmp_path) as at:
        old = RawAgent.joined(at.socket_path, 1)
        new = RawAgent.joined(at.socket_path, 1, session=77)
        assert "another agent of host 'h1'" in old.next(Refused).reason
        assert old.message() is None
        assert [agent.session for agent in at.server.agents() if agent.connected] == [77]
        assert at.left == []
        new.close()


def test_a_welcome_is_the_first_that_an_agent_receives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where flows of its host are decided about while the agent before it is refused, which may take a second."""
    with served(tmp_path) as at:
        old = RawAgent.joined(at.socket_path, 1)
        refuse = AgentSession.refuse

        async def refuse_and_decide(session: AgentSession, reason: str) -> None:
            at.server.decide("h1", Stop(1, 1, 1))
            await refuse(session, reason)

        monkeypatch.setattr(AgentSession, "refuse", refuse_and_decide)
        new = RawAgent.unix(at.socket_path)
        new.send(hello(1, new.next(Challenge).nonce, session=77))
        assert isinstance(new.message(), Welcome)
        old.close()
        new.close()


@pytest.mark.slow
def test_an_agent_that_reads_nothing_is_dropped_and_delays_no_other(tmp_path: Path) -> None:
    with served(tmp_path, timing=Timing(ping_s=0.05, dead_s=3.0)) as at:
        deaf = RawAgent.joined(at.socket_path, 1)
        deaf.connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        good = RawAgent.joined(at.socket_path, 2)
        policy = Policy(1, "x" * 20_000)
        for version in range(1, 60):
            at.server.set_policy(Policy(version, policy.scheme))
            while good.next(SetPolicy).policy["version"] != version:
                good.send(Pong(0))
            good.send(Pong(0))
        eventually(lambda: (good.send(Pong(0)), at.connected() == ["h2"])[1], "the deaf one dropped")
        good.close()


@pytest.mark.slow
def test_silence_costs_the_channel_and_then_the_membership(tmp_path: Path) -> None:
    with served(tmp_path, grace_s=2.0, timing=Timing(ping_s=0.05, dead_s=0.3)) as at:
        began = time.monotonic()
        silent = RawAgent.joined(at.socket_path, 1)
        eventually(lambda: at.connected() == [], "its channel closed")
        members = [agent.host for agent in at.server.agents()]
        assert members == ["h1"] or time.monotonic() - began >= 2.3, "still a member: its data plane goes on"
        eventually(lambda: at.left, "its membership ended")
        assert time.monotonic() - began >= 2.3
        assert at.server.agents() == []
        silent.close()


def test_members_outlive_the_controller_and_a_damaged_list_does_not_stop_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with served(tmp_path) as at:
        RawAgent.joined(at.socket_path, 1).close()
    assert stat.S_IMODE((tmp_path / "members.json").stat().st_mode) == 0o600
    with served(tmp_path) as at:
        assert [member.host for member in at.joined] == ["h1"]
    for damage in (b"", b"[{", b'{"a": 1}', b'[{"host": 1}]', b"\xff", b"[" * 100_000):
        (tmp_path / "members.json").write_bytes(damage)
        caplog.clear()
        with served(tmp_path) as at:
            assert at.joined == []
            RawAgent.joined(at.socket_path, 2).close()
        assert "is lost" in caplog.text
        assert [one["host"] for one in json.loads((tmp_path / "members.json").read_text())] == ["h2"]


def test_the_log_says_why_a_client_was_refused_and_never_the_token(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with served(tmp_path) as at:
        thief = RawAgent.unix(at.socket_path)
        thief.connection.sendall(b"GET / HTTP/1.1\r\n\r\n")
        thief.all()
        RawAgent.joined(at.socket_path, 1).close()
        eventually(lambda: "agent h1 lost: " in caplog.text, "a line in the log")
    assert "agent refused: frame" in caplog.text
    assert TOKEN not in caplog.text
