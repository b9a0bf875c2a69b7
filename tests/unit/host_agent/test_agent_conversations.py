"""What two agents said to each other before their decisions were compiled, said again: agents of then and of now carry
one overlay together.

The conversations are those of the Python core of commit d7038cc: each step is what happened to one of the two (a packet
of its host, a datagram, a timer, a new policy), and what followed from it. An agent of now is given what an agent of
then was given, datagrams of the other one included, and has to send the same datagrams, deliver the same packets, and
want its timer at the same time.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import zlib
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
from tests.unit.datagram_reference import Kind, decode

_VECTORS: Final = sorted((Path(__file__).parents[1] / "vectors").glob("conversation-*.json.z"))
_UNDERLAY: Final = ("10.0.1.1", "10.0.2.1")


class Replay:
    """One of the two agents."""

    def __init__(self, host: int, said: dict[str, Any]) -> None:
        self.host = host
        self.said = said
        self.core = self._core(said["sessions"][host])
        self.drawn = False
        """Whether entropy values and seeds are drawn, so that only their ranges are the same."""

    def _core(self, session: int) -> AgentCore:
        return AgentCore(f"h{self.host + 1}", session, self.said["mtu"], np.random.default_rng(self.host))

    def happen(self, now: float, kind: str, *what: Any) -> None:
        core = self.core
        match kind:
            case "begin":
                self.core = self._core(what[0])
            case "policy":
                policy = Policy.from_dict(self.said["policies"][what[0]])
                self.drawn = policy.short.path.kind == "spray"
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
                core.receive_datagram(data, _UNDERLAY[1 - self.host], what[1], what[2], now=now)
            case _:
                raise AssertionError(kind)

    def sent(self) -> list[Outgoing]:
        return self.core.datagrams_to_send()

    def as_then(self, out: Outgoing, then: list[int]) -> bool:
        """Whether a datagram is the one that was sent then: to the bit, but for what is drawn."""
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
        if header.kind is Kind.FEEDBACK:
            same_port = self.drawn or out.source_port == source_port
            return same_port and header == before and _without_marks(body) == body_before
        if not self.drawn:
            return out.source_port == source_port and out.data == data
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
    for step, ((host, now, *what), (sent, delivered, timer)) in enumerate(
        zip(said["events"], said["outputs"], strict=True)
    ):
        agent = agents[host]
        agent.happen(now, *what)
        where = f"step {step}, {now} s, h{host + 1}: {what[0]}"
        out = agent.sent()
        assert len(out) == len(sent), where
        assert all(map(agent.as_then, out, sent)), where
        packets = [hashlib.sha256(packet).hexdigest()[:12] for packet in agent.core.packets_to_deliver()]
        assert packets == delivered, where
        assert agent.core.get_timer() == timer, where
    end = said["events"][-1][1]
    for agent, then in zip(agents, said["ends"], strict=True):
        counters, counters_then = (
            {name: value for name, value in counters.items() if value}
            for counters in (agent.core.counters(), then["counters"])
        )
        for name in ("datagrams_lost", "datagrams_late"):  # which then fell when a peer began anew
            assert counters.pop(name, 0) >= counters_then.pop(name, 0)
        assert counters == counters_then
        flows = [dataclasses.asdict(flow) for flow in agent.core.flow_report(forget=False)]
        assert sorted(map(_text, flows)) == sorted(map(_text, then["flows"]))
        blocking = agent.core.blocking_probability(end)
        assert blocking.keys() == then["blocking"].keys()
        assert all(math.isclose(blocking[host], pb, abs_tol=1e-12) for host, pb in then["blocking"].items())


def _without_marks(feedback: memoryview) -> bytes:
    """Return the body of feedback as agents wrote it that said nothing of marks: bit 15 beside each stamp is one."""
    body = bytearray(feedback)
    for receipt in range(body[0]):
        body[8 + 8 * receipt + 2] &= 0x7F
    return bytes(body)


def _text(flow: dict[str, Any]) -> str:
    return json.dumps(flow, sort_keys=True)
