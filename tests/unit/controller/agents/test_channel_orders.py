"""What the controller sends agents over the channel: policies, impairments, and what they confirm and report."""

from __future__ import annotations

import socket
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import pytest

from controller.agents.listeners import ChannelError
from protocol.control import (
    FlowEntry,
    FlowReport,
    Impair,
    Ping,
    PolicyApplied,
    Pong,
    Report,
    SetPolicy,
)
from protocol.policy import Policy
from tests.unit.agents_channel import RawAgent, served
from tests.waiting import eventually


@pytest.mark.slow
def test_newest_policy_only_for_those_who_read_late(tmp_path: Path) -> None:
    """Policies that no agent has read yet are replaced, not queued: memory stays bounded."""
    with served(tmp_path) as at:
        late = RawAgent.joined(at.socket_path, 1)
        for version in range(1, 2001):
            at.server.set_policy(Policy(version, "y" * 2000))
        versions = [late.next(SetPolicy).policy["version"]]
        while versions[-1] != 2000:
            versions.append(late.next(SetPolicy).policy["version"])
        assert versions == sorted(set(versions))
        assert len(versions) < 1000
        late.close()


def test_a_refused_policy_is_known_at_once_and_says_why(tmp_path: Path) -> None:
    with served(tmp_path) as at:
        agents = [RawAgent.joined(at.socket_path, number) for number in (1, 2)]
        at.server.set_policy(Policy(5, "caps"))
        for agent in agents:
            agent.next(SetPolicy)
        agents[0].send(PolicyApplied(5, "policy.short: no such code"))
        agents[1].send(PolicyApplied(5))
        found = at.server.wait_applied(5, 3600)
        assert [(one.who, one.why) for one in found] == [("agent h1", "policy.short: no such code")]
        for agent in agents:
            agent.close()


def test_an_error_of_any_length_is_kept_in_part(tmp_path: Path) -> None:
    """It is in every answer about agents; 16 MB of it were."""
    with served(tmp_path) as at:
        agent = RawAgent.joined(at.socket_path, 1)
        agent.send(PolicyApplied(5, "x" * 60_000))
        (unconfirmed,) = at.server.wait_applied(5, 3600)
        assert unconfirmed.why == "x" * 4096
        agent.close()


def test_who_comes_late_gets_the_policy_and_old_confirmations_count_for_nothing(tmp_path: Path) -> None:
    with served(tmp_path) as at:
        at.server.set_policy(Policy(9, "caps"))
        agent = RawAgent.joined(at.socket_path, 1)
        assert agent.next(SetPolicy).policy["version"] == 9
        agent.send(PolicyApplied(8))
        assert [one.why for one in at.server.wait_applied(9, 0.2)] == ["has not confirmed policy 9"]
        agent.close()
        eventually(lambda: at.connected() == [], "h1 away")
        assert [one.why for one in at.server.wait_applied(9, 0.0)] == ["has no channel to the controller"]


def test_reports_name_who_did_not_answer(tmp_path: Path) -> None:
    entry = FlowEntry("sender", 6, "10.128.1.1", 1, "10.128.1.2", 2, "short", 3, 4, 0.0, 1.0)
    with served(tmp_path) as at:
        one, two = RawAgent.joined(at.socket_path, 1), RawAgent.joined(at.socket_path, 2)
        one.send(FlowReport(99, [entry]))  # not asked for: no answer to anything
        two.connection.setblocking(True)
        forget = list[bool]()

        def answer() -> None:
            while (message := one.message()) is not None:
                if isinstance(message, Report):
                    forget.append(message.forget)
                    one.send(FlowReport(message.id, [entry, entry]))

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        reports = [at.server.report(True, 0.2)]
        while not reports[-1].hosts:  # a busy machine: the answer came too late
            assert reports[-1].missing == ["h1", "h2"]
            reports.append(at.server.report(True, 0.2))
        assert {host: len(flows) for host, flows in reports[-1].hosts.items()} == {"h1": 2}
        assert reports[-1].missing == ["h2"]
        assert forget == [True] * len(reports)
        one.connection.shutdown(socket.SHUT_RDWR)
        thread.join()
        one.close()
        two.close()


def test_a_report_has_a_bound_however_many_parts_it_comes_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("controller.agents.session.MOST_FLOWS", 5)
    entry = FlowEntry("sender", 6, "10.128.1.1", 1, "10.128.1.2", 2, "short", 3, 4, 0.0, 1.0)
    with served(tmp_path) as at:
        one = RawAgent.joined(at.socket_path, 1)

        def answer() -> None:
            asked = one.next(Report)
            for _ in range(6):
                one.send(FlowReport(asked.id, [entry], more=True))
            one.all()

        thread = threading.Thread(target=answer)
        thread.start()
        assert at.server.report(True, 30.0).missing == ["h1"]
        thread.join()
        assert "6 are more than the 5 of a report" in caplog.text


def test_an_impairment_is_in_force_when_the_call_returns(tmp_path: Path) -> None:
    with served(tmp_path) as at:
        agent = RawAgent.joined(at.socket_path, 1)
        with pytest.raises(KeyError):
            at.server.impair("h7", Impair(loss=0.1), 1)
        with pytest.raises(ChannelError, match=r"'h1' has not confirmed within 0.2 s"):
            at.server.impair("h1", Impair(loss=0.1), 0.2)
        assert agent.next(Impair).loss == 0.1
        assert isinstance(agent.message(), Ping), "the ping whose answer says that the order was carried out"
        agent.close()
        eventually(lambda: at.connected() == [], "h1 away")
        with pytest.raises(ChannelError, match="'h1' has no channel"):
            at.server.impair("h1", Impair(), 1)


def test_an_agent_that_begins_anew_is_impaired_as_before(tmp_path: Path) -> None:
    with served(tmp_path) as at:
        agent = RawAgent.joined(at.socket_path, 1)
        with ThreadPoolExecutor(1) as pool:
            impaired = pool.submit(at.server.impair, "h1", Impair(loss=0.2), 60)
            assert agent.next(Impair).loss == 0.2
            while not impaired.done():
                agent.send(Pong(agent.next(Ping).id))
                wait([impaired], 0.05)
        impaired.result()
        agent.close()
        again, other = RawAgent.joined(at.socket_path, 1, session=77), RawAgent.joined(at.socket_path, 2)
        assert again.next(Impair).loss == 0.2
        at.server.stop()
        assert not [one for one in other.all() if isinstance(one, Impair)], "others are not"
        for one in (again, other):
            one.close()
