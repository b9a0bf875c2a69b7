"""What two agents said to each other before their decisions were compiled, said again: agents of then and of now carry
one overlay together.

The conversations are those of the Python core of commit d7038cc: each step is what happened to one of the two (a packet
of its host, a datagram, a timer, a new policy), and what followed from it. An agent of now is given what an agent of
then was given, datagrams of the other one included, and has to send the same datagrams, deliver the same packets, and
want its timer no later than that.

Feedback is apart: agents of then sent less of it while a datagram was missing. An agent of now has to report all that
an agent of then reported, at most 5 ms later. The feedback that it sends more takes numbers, so later datagrams have
higher ones, and feedback of then is given to it with the numbers of now. TR's paths are apart, too: it measures since
then by how much packets are later than expected, so a datagram may have the label of another path.
"""

from __future__ import annotations

import hashlib
import json
import math
import zlib
from copy import deepcopy
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from host_agent.core import AgentCore
from host_agent.underlay_datagrams import Outgoing
from plain.reading import build
from protocol.control import Peer
from protocol.policy import Policy
from protocol.underlay import EV_FIRST
from tests.unit.datagram_reference import DatagramError, Feedback, Kind, Receipt, decode, encode

_VECTORS: Final = sorted((Path(__file__).parents[1] / "vectors").glob("conversation-*.json.z"))
_UNDERLAY: Final = ("10.0.1.1", "10.0.2.1")
_FEEDBACK_AFTER_S: Final = 0.005
"""What arrives is reported at the latest so long after it."""


class Reports:
    """What an agent's feedback said so far."""

    def __init__(self) -> None:
        self.sent = 0
        self.receipts: set[Receipt] = set()
        self.lost: set[int] = set()
        self.recovered = 0
        self.outer: set[tuple[str, int, int, int]] = set()
        """Addresses, ports and types of service that it was sent with."""

    def add(self, feedback: Feedback, outer: tuple[str, int, int, int]) -> None:
        self.sent += 1
        assert self.receipts.isdisjoint(feedback.receipts), "a datagram is reported once"
        self.receipts.update(feedback.receipts)
        self.lost.update(number for first, count in feedback.lost for number in range(first, first + count))
        self.recovered += feedback.recovered
        self.outer.add(outer)

    def include(self, then: Reports) -> bool:
        """Return True if all of `then` is reported here."""
        return then.receipts <= self.receipts and then.lost <= self.lost and then.recovered <= self.recovered


class Replay:
    """One of the two agents."""

    def __init__(self, host: int, said: dict[str, Any]) -> None:
        self.host = host
        self.said = said
        self.core = self._core(said["sessions"][host])
        self.drawn = False
        """Whether entropy values and seeds are drawn, so that only their ranges are the same."""
        self.rerouted = False
        """Whether TR chooses paths, so that only some label is given where one was."""
        self.now, self.then = Reports(), Reports()
        self.awaited: list[tuple[float, Reports]] = []
        """When an agent of now has to have reported what, at the latest."""
        self.numbers: dict[int, int] = {}
        """Numbers of our datagrams, now by then."""
        self.next_number = 0

    def _core(self, session: int) -> AgentCore:
        return AgentCore(f"h{self.host + 1}", session, self.said["mtu"], np.random.default_rng(self.host))

    def happen(self, now: float, kind: str, *what: Any) -> None:
        core = self.core
        match kind:
            case "begin":
                self.core = self._core(what[0])
                self.now, self.then, self.awaited = Reports(), Reports(), []
                self.numbers, self.next_number = {}, 0
            case "policy":
                policy = Policy.from_dict(self.said["policies"][what[0]])
                self.drawn = policy.short.path.kind == "spray"
                self.rerouted = "tr" in (policy.short.path.kind, policy.long.path.kind)
                core.set_policy(policy, now)
            case "directory":
                core.set_directory([build(Peer, one, "peer") for one in what[0]], now)
            case "paths":
                core.set_paths({leaf: tuple(stamps) for leaf, stamps in what[0].items()}, {})
            case "packet":
                core.packet_from_host(bytes.fromhex(what[0]), now)
            case "super":
                core.super_packet_from_host(bytes.fromhex(what[0]), what[1], now)
            case "announce":
                core.announce(bytes.fromhex(what[0]), what[1])
            case "timer":
                core.handle_timer(now)
            case "datagram":
                data = bytes.fromhex(self.said["datagrams"][what[0]])
                core.receive_datagram(
                    self.as_of_now(data), _UNDERLAY[1 - self.host], what[1], what[2], now=now
                )
            case _:
                raise AssertionError(kind)

    def as_of_now(self, data: bytes) -> bytes:
        """Return a datagram of the other agent; feedback with the numbers that our datagrams have now."""
        try:
            header, body = decode(data)
            feedback = Feedback.decode(body)
        except DatagramError:
            return data
        if header.kind is not Kind.FEEDBACK:
            return data
        receipts = [replace(each, number=self.number(each.number)) for each in feedback.receipts]
        lost: list[tuple[int, int]] = []
        for first, count in feedback.lost:
            for number in map(self.number, range(first, first + count)):
                if lost and number == sum(lost[-1]):
                    lost[-1] = (lost[-1][0], lost[-1][1] + 1)
                else:
                    lost.append((number, 1))
        return encode(header, replace(feedback, receipts=tuple(receipts), lost=tuple(lost)).encode())

    def number(self, then: int) -> int:
        return self.numbers.get(then, then)

    def give_time(self, until: float) -> None:
        """Wake the agent whenever it wants before `until`: what is due then is feedback alone."""
        while (due := self.core.get_timer()) < until:
            self.core.handle_timer(due)
            assert not self.sent(), due
            assert not self.core.packets_to_deliver(), due

    def sent(self) -> list[Outgoing]:
        """Return what was sent, without the feedback that is among it."""
        others = []
        for out in self.core.datagrams_to_send():
            header, body = decode(out.data)
            assert header.number == self.next_number
            self.next_number += 1
            if header.kind is Kind.FEEDBACK:
                outer = (out.underlay_ip, out.source_port, out.destination_port, out.tos)
                self.now.add(Feedback.decode(_without_marks(body)), outer)
            else:
                others.append(out)
        return others

    def sent_then(self, sent: list[list[int]], now: float) -> list[list[int]]:
        """Return what was sent then, without the feedback that is among it."""
        others = []
        for then in sent:
            index, source_port, destination_port, tos = then
            header, body = decode(bytes.fromhex(self.said["datagrams"][index]))
            if header.kind is Kind.FEEDBACK:
                outer = (_UNDERLAY[1 - self.host], source_port, destination_port, tos)
                self.then.add(Feedback.decode(body), outer)
                self.awaited.append((now + _FEEDBACK_AFTER_S, deepcopy(self.then)))
                self.numbers[header.number] = header.number + self.now.sent - self.then.sent
            else:
                others.append(then)
        return others

    def has_reported(self, now: float) -> bool:
        """Return True if all is reported that has to be."""
        awaited = [then for due, then in self.awaited if due <= now]
        del self.awaited[: len(awaited)]
        return not awaited or self.now.include(awaited[-1])

    def as_then(self, out: Outgoing, then: list[int]) -> bool:
        """Return True if a datagram is the one that was sent then: but for its number, and what is drawn."""
        index, source_port, destination_port, tos = then
        data = bytes.fromhex(self.said["datagrams"][index])
        if (out.underlay_ip, out.destination_port, out.tos) != (
            _UNDERLAY[1 - self.host],
            destination_port,
            tos,
        ):
            return False
        header, body = decode(out.data)
        before, body_before = decode(data)
        self.numbers[before.number] = header.number
        before = replace(before, number=header.number)
        if not self.drawn:
            other_path = self.rerouted and max(out.source_port, source_port) < EV_FIRST
            same_port = out.source_port == source_port or other_path
            return same_port and out.data == encode(before, body_before)
        if (out.source_port >= EV_FIRST) != (source_port >= EV_FIRST) or header != before:
            return False
        if header.kind is Kind.REPAIR:
            return len(body) == len(body_before) and bytes(body[:4]) == bytes(body_before[:4])
        return body == body_before


@pytest.mark.parametrize(
    "path", _VECTORS, ids=lambda path: path.name.split(".")[0].removeprefix("conversation-")
)
def test_an_agent_of_now_says_what_an_agent_of_then_said(path: Path) -> None:
    said = json.loads(zlib.decompress(path.read_bytes()))
    agents = [Replay(0, said), Replay(1, said)]
    for step, ((host, now, *what), (sent, delivered, _)) in enumerate(
        zip(said["events"], said["outputs"], strict=True)
    ):
        agent = agents[host]
        where = f"step {step}, {now} s, h{host + 1}: {what[0]}"
        agent.give_time(now)
        wanted = agent.core.get_timer()
        agent.happen(now, *what)
        out, sent = agent.sent(), agent.sent_then(sent, now)
        assert len(out) == len(sent), where
        assert all(map(agent.as_then, out, sent)), where
        packets = [hashlib.sha256(packet).hexdigest()[:12] for packet in agent.core.packets_to_deliver()]
        assert packets == delivered, where
        assert agent.has_reported(now), where
        if what[0] == "timer" and (sent or delivered):  # more than feedback was due
            assert wanted <= now, where
    end = said["events"][-1][1]
    for agent, then in zip(agents, said["ends"], strict=True):
        counters, counters_then = (
            {name: value for name, value in counters.items() if value}
            for counters in (agent.core.counters(), then["counters"])
        )
        # those that were lost or late then fell when a peer began anew
        for name in ("datagrams_lost", "datagrams_late", "feedbacks_sent"):
            assert counters.pop(name, 0) >= counters_then.pop(name, 0)
        assert counters == counters_then
        flows = [asdict(flow) for flow in agent.core.flow_report(forget=False)]
        assert sorted(map(_text, flows)) == sorted(map(_text, then["flows"]))
        blocking = agent.core.blocking_probability(end)
        assert blocking.keys() == then["blocking"].keys()
        assert all(math.isclose(blocking[host], pb, abs_tol=1e-12) for host, pb in then["blocking"].items())
        assert agent.now.outer == agent.then.outer
        assert agent.has_reported(math.inf)


def _without_marks(feedback: memoryview) -> memoryview:
    """Return the body of feedback as agents wrote it that said nothing of marks: bit 15 beside each stamp is one."""
    body = bytearray(feedback)
    for receipt in range(body[0]):
        body[8 + 8 * receipt + 2] &= 0x7F
    return memoryview(body)


def _text(flow: dict[str, Any]) -> str:
    return json.dumps(flow, sort_keys=True)
