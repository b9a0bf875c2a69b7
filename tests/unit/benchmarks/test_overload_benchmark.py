"""The overload benchmark's minimal switch, against the controller's own end; and its verdicts."""

from __future__ import annotations

import asyncio
import contextlib
import random
import signal
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from werkzeug.serving import WSGIRequestHandler, make_server

from benchmarks import overload, overload_agents, overload_bodies
from benchmarks.openflow_peer import Committed, FrameOut, OpenFlowPeer, packet_in
from benchmarks.overload_agents import AgentsOverload
from benchmarks.overload_bodies import BodiesOverload
from benchmarks.overload_figures import Block, Measured, figures
from benchmarks.overload_floor import answer, ask
from controller.openflow.cookies import Rule
from controller.openflow.session import OpenFlowSession
from controller.openflow.session_events import MeterCount, PacketIn, Ready, SessionEvent, UpdateDone
from controller.openflow.tables import SHORT_METER, Table
from controller.openflow.wanted import Difference, FlowRule, Match, Meter, Output
from tests.unit.agents_channel import TOKEN, served
from tests.unit.api_world import api_world


class Quiet(WSGIRequestHandler):
    def log_request(self, *_: Any) -> None:
        pass


def exchange(session: OpenFlowSession, peer: OpenFlowPeer) -> tuple[list[SessionEvent], list[object]]:
    """Carry bytes both ways until nothing is left; return what each end makes of them."""
    events: list[SessionEvent] = []
    asked: list[object] = []
    while True:
        down, up = session.data_to_send(), peer.data_to_send()
        if not down and not up:
            return events, asked
        asked += peer.receive(down)
        events += session.receive(up, 0.0)


@pytest.mark.parametrize("ports", [1, 900, 4000])
def test_it_shakes_hands_and_says_its_ports(ports: int) -> None:
    session, peer = OpenFlowSession(0.0), OpenFlowPeer(0xFAB, range(1, ports + 1))
    [ready], asked = exchange(session, peer)
    assert isinstance(ready, Ready)
    assert asked == []
    assert ready.dpid == 0xFAB
    assert [port.number for port in ready.ports] == list(range(1, ports + 1))
    assert all(port.up for port in ready.ports)


def test_updates_frames_meters_and_packets_go_their_ways() -> None:
    session, peer = OpenFlowSession(0.0), OpenFlowPeer(0xFAB, [1, 2])
    exchange(session, peer)
    flow = FlowRule(Table.CLASSIFY, 10, Match(in_port=1), (Output(2),), cookie=Rule.CLASS)
    session.apply(Difference(add_meters=(Meter(SHORT_METER),), add_flows=(flow,)), False, now=1.0)
    session.packet_out(2, b"a frame")
    session.read_meters()
    events, asked = exchange(session, peer)
    assert asked == [Committed(frozenset({Rule.CLASS})), FrameOut(2, b"a frame")]
    assert [type(event) for event in events] == [UpdateDone, MeterCount]
    [packet] = session.receive(packet_in(1, Rule.FIRST_SHORT, b"short"), 0.0)
    assert packet == PacketIn(1, Rule.FIRST_SHORT, b"short")


def test_goals_are_against_the_same_run_without_load() -> None:
    alone = Block([1.0, 2.0], [20.0, 21.0], [5.0], [1.0, 1.0], 100 << 20)
    loaded = Block([2.0, 5.0], [21.0, 22.0], [150.0], [4.0, 4.0], 200 << 20)
    result = figures(Measured(alone, loaded, alone, links_after=8))
    assert result["on_p99_after_to_alone"].met(2) is True
    assert result["off_p99_after_to_alone"].met(2) is True
    assert result["health_p99_loaded"].met(2) is False
    assert result["health_p99_after"].met(2) is True
    assert result["memory_kept_after"].value == 0
    assert result["links_after"].met(2) is True
    assert result["floor_p99_loaded_to_alone"].value == pytest.approx(4.0)
    assert result["on_p99_loaded_over_floor"].value == pytest.approx(4.97 - 4.0)
    assert result["floor_p99_loaded_to_alone"].goal is None, "it is the machine's"


def test_what_the_load_leaves_behind_is_judged() -> None:
    """Connections were counted, and the count was used nowhere."""
    block = Block([1.0], [20.0], [5.0], [1.0], 100 << 20)
    left = Measured(block, block, block, connections_before=40, connections_after=80, hosts_after=3)
    result = figures(left)
    assert (result["connections_after"].value, result["connections_after"].met(2)) == (40, False)
    assert (result["hosts_after"].value, result["hosts_after"].met(2)) == (3, False)
    loads = {"seconds": 10.0, "packet_ins": 50_000, "packet_ins_taken": 40_000}
    result = figures(Measured(block, block, block, loads=loads, connections_before=40, connections_after=42))
    assert result["connections_after"].met(2) is True
    assert result["hosts_after"].met(2) is True
    assert (result["packet_ins"].value, result["packet_ins_taken"].value) == (5000, 4000)


@pytest.mark.parametrize(
    ("floor_ms", "raw", "less_floor"),
    [(1.4, False, False), (2.0, None, False), (3.5, None, True), (0.5, False, False)],
)
def test_a_ratio_is_judged_where_the_floor_allows_it(
    floor_ms: float, raw: bool | None, less_floor: bool
) -> None:
    """Two processes that share only the processors may be above the goal: then what is added to them is taken off."""
    alone = Block([2.0, 2.0], [20.0, 20.0], [5.0], [1.0, 1.0], 100 << 20)
    loaded = Block([5.0, 5.0], [20.0, 20.0], [5.0], [floor_ms, floor_ms], 100 << 20)
    result = figures(Measured(alone, loaded, alone, links_after=8))
    assert result["on_p99_loaded_to_alone"].value == pytest.approx(2.5), "it is shown in any case"
    assert result["on_p99_loaded_to_alone"].met(2) is raw
    assert result["on_p99_loaded_less_floor"].met(2) is less_floor
    assert result["off_p99_loaded_less_floor"].met(2) is True


def test_the_floor_asks_and_is_answered_after_its_work() -> None:
    asking, asked = socket.socketpair()
    with asking, asked:
        answering = threading.Thread(target=answer, args=(asked, 0.02))
        answering.start()
        took_ms = ask(asking, 2, 3600.0, random.Random(1))
        assert ask(asking, 2, 0.0, random.Random(1)) == [], "the time is over"
        asking.shutdown(socket.SHUT_WR)
        answering.join()
    assert len(took_ms) == 2
    assert min(took_ms) >= 0.02 * 1e3 / 4, "its thread computes beside others of this process"


def test_blocks_of_agents_and_bodies_are_judged_as_the_flood_is() -> None:
    alone = Block([1.0, 2.0], [20.0, 21.0], [5.0], [1.0, 1.0], 100 << 20)
    agents = Block([2.0, 5.0], [21.0, 22.0], [150.0], [1.0, 1.0], 200 << 20)
    bodies = Block([1.0, 2.0], [21.0, 22.0], [50.0], [1.0, 1.0], 2000 << 20)
    clients = {
        "agents": {"seconds": 10.0, "messages": 500, "sent_bytes": 20 << 20},
        "bodies": {"seconds": 5.0, "answers_201": 10, "sent_bytes": 20 << 20},
    }
    measured = Measured(alone, alone, alone, links_after=8, agents=agents, bodies=bodies, clients=clients)
    result = figures(measured)
    assert (result["on_p99_agents_to_alone"].met(2), result["on_p99_bodies_to_alone"].met(2)) == (False, True)
    assert (result["health_p99_agents"].met(2), result["health_p99_bodies"].met(2)) == (False, True)
    assert (result["memory_agents"].met(2), result["memory_bodies"].met(2)) == (True, False)
    assert (result["agents_messages"].value, result["agents_sent"].value) == (50.0, 2.0)
    assert (result["bodies_answers_201"].value, result["bodies_sent"].value) == (2.0, 4.0)
    names = {name.replace("_loaded", "_X") for name in result if "_loaded" in name}
    assert {name.replace("_agents", "_X") for name in result if "_agents" in name} == names


async def _for_a_moment(load: AgentsOverload | BodiesOverload, done: Callable[[], bool]) -> None:
    began = asyncio.Event()
    task = asyncio.create_task(load.run(began.set))
    async with asyncio.timeout(60):
        await began.wait()
        while not done():
            await asyncio.sleep(0.02)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


def test_agents_of_the_flood_are_taken_for_agents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overload_agents, "AGENTS", 3)
    monkeypatch.setattr(overload_agents, "UNPROVED", 6)
    with served(tmp_path) as at:
        load = AgentsOverload(str(at.socket_path), TOKEN)

        def done() -> bool:
            agents = [agent for agent in at.server.agents() if agent.counters]
            return len(agents) == 3 and load.counts["refusals"] > 1 and len(at.finished) > 3

        asyncio.run(_for_a_moment(load, done))
        counters = at.server.counters()
        assert counters["wrong-proofs"] > 1
        assert counters.get("bad-frames", 0) == 0
    assert load.counts["welcomes"] == 3
    assert min(load.counts[name] for name in ("silent", "halves", "messages")) > 1


@pytest.mark.slow
def test_bodies_of_the_flood_are_runs_or_as_long_as_one_may_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overload_bodies, "FLOWS", 20)
    with api_world(tmp_path) as world:
        server = make_server("127.0.0.1", 0, world.app, request_handler=Quiet, threaded=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            load = BodiesOverload(server.server_port)
            assert len(load._no_run) == 64 << 20
            counts = load.counts
            asyncio.run(_for_a_moment(load, lambda: counts["answers_201"] > 2 and counts["answers_422"] > 0))
        finally:
            server.shutdown()
            server.server_close()
    assert set(counts) <= {"answers_201", "answers_422", "sent_bytes"}


@pytest.mark.parametrize(("ends", "code"), [(True, -signal.SIGKILL), (False, 0)])
def test_programs_are_waited_for_unless_the_benchmark_is_ended(
    ends: bool, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "import sys, time\nprint('ready', flush=True)\nsys.stdin.read()\ntime.sleep(0.5)\n"
    (tmp_path / "flood.py").write_text(text)
    monkeypatch.setattr(overload, "ROOT", tmp_path)
    with (
        contextlib.suppress(SystemExit),
        overload._program("flood", first="ready", patience_s=60.0) as program,
    ):
        if ends:
            raise SystemExit(143)
    assert program.returncode == code
