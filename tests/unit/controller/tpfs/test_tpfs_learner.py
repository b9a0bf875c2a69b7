"""From agents' records to their thresholds, through the whole controller: channel, store, process, API."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from sqlalchemy import text

from controller.schemes.loader import load
from controller.schemes.overrides import with_overrides
from controller.schemes.scheme import Prediction
from controller.store.database import open_database
from controller.store.finished_flows import ABANDONED_S, FinishedFlowStore
from controller.tpfs import learner as learner_module
from controller.tpfs.learner import TypeLearner, TypesFailed, TypesLearnt
from controller.tpfs.record_store import StoredRecords
from controller.tpfs.records import Names, Records, RecordWindow
from controller.tpfs.types import differ, flow_types
from protocol.control import FinishedFlows, FlowTypes, SetPolicy
from tests.unit.agents_channel import RunningChannel, agent_config, running_channel
from tests.unit.api_world import World, api_world
from tests.unit.application_records import FOUR, addresses, records_of
from tests.waiting import eventually

OVERLAY = ("10.128.1.1", "10.128.1.2")
QUICK = {"scheme": "tpfs", "overrides": {"priority.prediction.interval_s": 0.5}, "timeout_s": 0.2}


def _said(records: Records, source: str = OVERLAY[0], destination: str = OVERLAY[1]) -> FinishedFlows:
    count = len(records)
    return FinishedFlows(
        now_s=100.0,
        protocol=[6] * count,
        source=[source] * count,
        source_port=records["source_port"].tolist(),
        destination=[destination] * count,
        destination_port=records["destination_port"].tolist(),
        bytes=records["bytes"].tolist(),
        start_s=[90.0] * count,
        end_s=[99.0] * count,
    )


def _report(agent: RunningChannel, records: Records, ended_s_ago: float = 1.0) -> None:
    for at in range(0, len(records), 500):
        agent.channel.send(replace(_said(records[at : at + 500]), now_s=99.0 + ended_s_ago))


def _learnt(world: World) -> dict[str, object]:
    """Wait until there are types; return the API's answer."""
    found: dict[str, object] = eventually(
        lambda: (answer := world.get("/tpfs"))["types"] and answer, "types are learnt", 90
    )
    return found


@pytest.mark.slow
def test_agents_records_become_their_thresholds_and_survive_a_restart(tmp_path: Path) -> None:
    records, _ = records_of(FOUR, 2000, np.random.default_rng(0))
    socket = f"unix:{tmp_path / 'agents.sock'}"
    with (
        api_world(tmp_path) as world,
        running_channel(agent_config(socket, 1)) as agent,
        running_channel(agent_config(socket, 2)),
    ):
        eventually(lambda: len(world.get("/agents")["agents"]) == 2, "both agents are there")
        assert world.get("/tpfs")["learning"] is False
        world.ask("PUT", "/scheme", 504, json=QUICK)  # these agents confirm nothing
        _report(agent, records)
        lies = _said(records[:20], source=OVERLAY[1])
        agent.channel.send(lies)
        answer = _learnt(world)
        types = answer["types"]
        assert isinstance(types, dict)
        assert types["features"] == ["destination_port"]
        assert sorted(value for one in types["types"] for value in one["values"]) == [
            [str(5000 + number)] for number in range(4)
        ]
        assert answer["refused"] == {"h1": {"foreign_source": 20}}
        assert answer["types_version"] == world.get("/scheme")["version"]
        first = eventually(
            lambda: next((one for one in world.get("/tpfs")["history"] if one["types"]), None), "its record"
        )
        assert (first["features"], first["types"], first["outcome"]) == (
            ["destination_port"],
            4,
            "sent to agents",
        )
        assert 0 < first["slowdown_ratio"] < 1
        (reported,) = agent.wait(FlowTypes)[:1]
        (policy,) = agent.wait(SetPolicy, 2)[-1:]
        assert reported.version == policy.policy["version"]
        assert [list(map(list, one.values)) for one in reported.types] == [
            one["values"] for one in types["types"]
        ]
        eventually(
            lambda: world.get("/tpfs")["last_outcome"] == "as before", "nothing new is not sent again", 90
        )
        assert len(agent.has(FlowTypes)) == 1
        world.ask("PUT", "/scheme", 504, json=QUICK)  # a new policy: at once, before anything is computed
        reported_again = agent.wait(FlowTypes, 2)[1]
        assert reported_again.version == world.get("/scheme")["version"] > reported.version
        assert reported_again.types == reported.types
        assert "sent again" in [one["outcome"] for one in world.get("/tpfs")["history"]]
        events = world.get("/events?since=0")["events"]
        assert [one["sent"] for one in events if one["kind"] == "types-learnt"][:2] == [True, False]
    with api_world(tmp_path) as world:
        assert _learnt(world)["records"] == 2000
        with running_channel(agent_config(socket, 1)) as agent:
            agent.wait(FlowTypes)


def test_a_scheme_that_does_not_predict_learns_nothing(tmp_path: Path) -> None:
    socket = f"unix:{tmp_path / 'agents.sock'}"
    records, _ = records_of(FOUR, 400, np.random.default_rng(0))
    with api_world(tmp_path, scheme="pias") as world, running_channel(agent_config(socket, 1)) as agent:
        eventually(lambda: len(world.get("/agents")["agents"]) == 1, "the agent is there")
        agent.channel.send(_said(records, destination=OVERLAY[0]))
        eventually(lambda: world.get("/tpfs")["records"] == 400, "records are taken")
        answer = world.get("/tpfs")
        assert (answer["learning"], answer["last_at"], answer["types"]) == (False, None, None)
        assert not agent.has(FlowTypes)


@pytest.fixture
def store(tmp_path: Path) -> FinishedFlowStore:
    return FinishedFlowStore(open_database(f"sqlite:///{tmp_path / 'capstan.db'}"), "this fabric")


def _stored(store: FinishedFlowStore, since: float = 0.0) -> tuple[Records, Names, Names]:
    hosts, known = Names(), Names(["something else"])
    window = RecordWindow(10**9, 1e18)
    for records in store.load(since, hosts, known):
        window.add(records, 0.0)
    return np.concatenate(window.chunks()), hosts, known


def test_the_store_gives_back_what_it_got(store: FinishedFlowStore) -> None:
    records, _ = records_of(FOUR, 50, np.random.default_rng(0))
    own = records[records["host"] == 3]
    store.add("h3", own, addresses())
    kept, hosts, known = _stored(store)
    assert hosts.texts == ["h3"]
    for name in ("bytes", "start", "end", "source_port", "destination_port", "protocol"):
        assert kept[name].tolist() == own[name].tolist()
    assert [known.texts[one] for one in kept["source"]] == [addresses()[one] for one in own["source"]]
    assert [known.texts[one] for one in kept["destination"]] == [
        addresses()[one] for one in own["destination"]
    ]


def test_the_store_is_bounded_in_age_and_number_and_fair(store: FinishedFlowStore) -> None:
    records, _ = records_of(FOUR, 100, np.random.default_rng(0))
    now = time.time()
    for batch in range(300):
        records["end"] = now + batch
        store.add("loud", records, addresses())
    records["end"] = now
    store.add("quiet", records, addresses())
    store.prune(now, 5000)
    assert store.count() == 5000
    kept, hosts, _ = _stored(store)
    assert np.count_nonzero(kept["host"] == hosts.number("quiet")) == 100
    assert kept["end"][kept["host"] == hosts.number("loud")].min() == now + 251
    store.prune(now + 290.5, 5000)
    assert store.count() == 900


def test_fabrics_that_share_a_database_have_records_of_their_own(tmp_path: Path) -> None:
    engine = open_database(f"sqlite:///{tmp_path / 'capstan.db'}")
    ours, theirs = FinishedFlowStore(engine, "ours"), FinishedFlowStore(engine, "theirs")
    records, _ = records_of(FOUR, 100, np.random.default_rng(0))
    records["end"] = now = time.time()
    for _ in range(3):
        theirs.add("h1", records, addresses())
    ours.add("h1", records[:40], addresses())
    assert (ours.count(), theirs.count()) == (40, 300)
    kept, _, _ = _stored(ours)
    assert len(kept) == 40
    ours.prune(now + 1, 0)
    assert (ours.count(), theirs.count()) == (0, 300)
    ours.add("h1", records, addresses())
    theirs.prune(now, 100)
    assert (ours.count(), theirs.count()) == (100, 100)
    theirs.forget()
    assert (ours.count(), theirs.count()) == (100, 0)
    theirs.prune(now + ABANDONED_S + 1, 1000)
    assert ours.count() == 0, "no client will ever ask for them"


@pytest.mark.slow
def test_a_run_that_begins_anew_learns_from_its_own_flows_and_so_does_a_restarted_controller(
    tmp_path: Path,
) -> None:
    rng = np.random.default_rng(0)
    before, _ = records_of(FOUR, 2000, rng)
    own, _ = records_of(FOUR[2:], 1000, rng, first_port=7000)
    socket = f"unix:{tmp_path / 'agents.sock'}"
    anew = QUICK | {"forget_flows": True}
    with (
        api_world(tmp_path) as world,
        running_channel(agent_config(socket, 1)) as agent,
        running_channel(agent_config(socket, 2)),
    ):
        eventually(lambda: len(world.get("/agents")["agents"]) == 2, "both agents are there")
        world.ask("PUT", "/scheme", 504, json=QUICK)
        _report(agent, before)
        _learnt(world)
        world.ask("PUT", "/scheme", 504, json=anew)
        eventually(lambda: world.get("/tpfs")["types"] is None, "what was learnt is forgotten")
        assert world.get("/tpfs")["records"] == 0
        assert len(agent.has(FlowTypes)) == 1, "the new policy's agents do not get old types"
        agent.channel.send(replace(_said(before[:500]), now_s=1000.0))  # they ended a quarter of an hour ago
        _report(agent, own, ended_s_ago=0.0)
        eventually(lambda: world.get("/tpfs")["records"] == 1000, "its own are taken, late ones are not")
        types = _learnt(world)["types"]
        assert isinstance(types, dict)
        assert types["flows"] == 1000
    with api_world(tmp_path) as world:
        assert _learnt(world)["records"] == 1000


@pytest.mark.slow
def test_neither_a_broken_store_nor_a_full_disk_ends_learning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = open_database(f"sqlite:///{tmp_path / 'capstan.db'}")
    with engine.begin() as connection:
        connection.execute(text("DROP TABLE finished_flows"))
    published: list[FlowTypes] = []
    noted: list[object] = []
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "no such directory"))
    learner = TypeLearner(published.append, noted.append, FinishedFlowStore(engine, "ours"))
    records, _ = records_of(FOUR, 2000, np.random.default_rng(0))
    owners = {address: f"h{number}" for number, address in enumerate(OVERLAY, 1)}
    for at in range(0, len(records), 500):
        learner.receive("h1", owners, _said(records[at : at + 500]))
    learner.set_scheme(with_overrides(load("tpfs"), {"priority.prediction.interval_s": 0.5}), 7)
    learner.start()
    try:
        eventually(lambda: len(noted) >= 3, "failures: of the store, and of more than one computation")
        assert all(isinstance(event, TypesFailed) for event in noted)
        assert "finished_flows" in str(noted[0])
        assert "no such directory" in str(noted[2])
        assert learner.state().last_outcome.startswith("failed: FileNotFoundError")
        monkeypatch.setattr(tempfile, "tempdir", None)
        eventually(lambda: published, "types", 90)
        eventually(lambda: any(isinstance(event, TypesLearnt) for event in noted), "word of them")
        assert (published[0].version, len(published[0].types)) == (7, 4)
    finally:
        learner.stop()


def test_messages_that_wait_have_a_size_whatever_is_in_them() -> None:
    """4096 of them waited, of up to 16 MB each."""
    learner = TypeLearner(lambda types: None, lambda event: None, None)
    empty = FinishedFlows(1.0, [], [], [], [], [], [], [], [])
    long = replace(empty, source=["a" * 1000] * 4000)
    taken = 0
    while learner.state().dropped_messages == 0:
        learner.receive("h1", {}, long)
        taken += 1
    assert 20 <= taken <= 34, "4 MB each, of 128 MiB"
    for _ in range(200_000):
        learner.receive("h1", {}, empty)
    assert learner.state().dropped_messages > 50_000


def test_a_turn_that_fails_ends_no_learning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its thread ended, and the controller looked as well as before."""
    failures = [ZeroDivisionError("of ours")] * 2
    take = StoredRecords.take

    def failing(records: StoredRecords, host: str, owners: Mapping[str, str], said: FinishedFlows) -> None:
        if failures:
            raise failures.pop()
        take(records, host, owners, said)

    monkeypatch.setattr(StoredRecords, "take", failing)
    learner = TypeLearner(lambda types: None, lambda event: None, None)
    learner.start()
    try:
        records, _ = records_of(FOUR, 200, np.random.default_rng(0))
        owners = {address: f"h{number}" for number, address in enumerate(OVERLAY, 1)}
        for _ in range(3):
            learner.receive("h1", owners, _said(records))
        eventually(lambda: learner.state().records == len(records), "the third message's records")
    finally:
        learner.stop()
    assert "ZeroDivisionError: of ours" in caplog.text


def test_taking_records_in_takes_a_quarter_of_the_time_at_most_and_ends_while_more_come(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """200 agents that sent what they could kept the thread at it, and mode switches waited for the interpreter."""
    learner = TypeLearner(lambda types: None, lambda event: None, None)
    empty = FinishedFlows(1.0, [], [], [], [], [], [], [], [])
    clock, rests, turn_over = [0.0], list[float](), threading.Event()
    taken, of_turns = [0], list[int]()

    def take(*_: object) -> None:
        clock[0] += 0.002
        taken[0] += 1
        if taken[0] < 5000:
            learner.receive("h1", {}, empty)  # another has come meanwhile

    def keep(*_: object, **__: object) -> None:
        of_turns.append(taken[0])
        turn_over.set()

    def sleep(seconds: float) -> None:
        rests.append(seconds)
        clock[0] += seconds

    monkeypatch.setattr(StoredRecords, "take", take)
    monkeypatch.setattr(StoredRecords, "keep", keep)
    monkeypatch.setattr(
        learner_module, "time", SimpleNamespace(monotonic=lambda: clock[0], sleep=sleep, time=time.time)
    )
    for _ in range(5):
        learner.receive("h1", {}, empty)
    learner.start()
    try:
        assert turn_over.wait(60)
    finally:
        learner.stop()
    assert of_turns[0] < 5000, "what is next is done while more come"
    assert rests[:5] == pytest.approx([0.006] * 5)


def test_a_restarted_controller_keeps_records_for_as_long_as_its_scheme_says(
    store: FinishedFlowStore,
) -> None:
    old, _ = records_of(FOUR, 50, np.random.default_rng(0))
    old["end"] = time.time() - 3 * 3600
    old["start"] = old["end"] - 1
    store.add("h1", old, addresses())
    learner = TypeLearner(lambda types: None, lambda event: None, store)
    learner.set_scheme(with_overrides(load("tpfs"), {"priority.prediction.most_age_s": 86400.0}), 1)
    owners = {address: f"h{number}" for number, address in enumerate(OVERLAY, 1)}
    learner.receive("h1", owners, _said(old[:20]))  # it is there before the first computation
    learner.start()
    try:
        eventually(lambda: learner.state().records == 70, "records of before, and the new ones")
    finally:
        learner.stop()
    assert store.count() == 70


def test_all_that_waits_when_it_ends_is_stored(
    store: FinishedFlowStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """512 messages were, and the others were lost."""
    monkeypatch.setattr(learner_module, "MOST_ENDING_S", 60.0)
    learner = TypeLearner(lambda types: None, lambda event: None, store)
    records, _ = records_of(FOUR, 50, np.random.default_rng(0))
    owners = {address: f"h{number}" for number, address in enumerate(OVERLAY, 1)}
    messages = 4 * learner_module._MOST_A_TURN
    for _ in range(messages):
        learner.receive("h1", owners, _said(records[:2]))
    learner.start()
    learner.stop()
    assert store.count() == 2 * messages


def test_a_window_that_forgets_keeps_its_bounds() -> None:
    records = StoredRecords(None)
    records.bound(Prediction(most_age_s=86400.0))
    own, _ = records_of(FOUR, 50, np.random.default_rng(0))
    own["end"] = now = time.time() - 3 * 3600
    records.window.add(own, time.time())
    records.forget(now - 1)
    assert len(records.window) == 50


@pytest.mark.parametrize("step_s", [86400.0, -86400.0], ids=["forward", "back"])
def test_a_clock_that_is_set_takes_no_record_away(monkeypatch: pytest.MonkeyPatch, step_s: float) -> None:
    """What is there would be too old at once, or what comes then of before all was forgotten."""
    records = StoredRecords(None)
    records.forget(time.time() - 60.0)
    some, _ = records_of(FOUR, 50, np.random.default_rng(0))
    owners = {address: f"h{number}" for number, address in enumerate(OVERLAY, 1)}
    records.take("h1", owners, _said(some))
    wall = time.time
    monkeypatch.setattr(time, "time", lambda: wall() + step_s)
    records.take("h1", owners, _said(some))
    assert len(records.window) == 100


@pytest.mark.slow
def test_types_that_hardly_moved_are_the_same() -> None:
    rng = np.random.default_rng(0)
    records, _ = records_of(FOUR, 8000, rng)
    one = flow_types(records, addresses(), (10_000, 100_000, 1_000_000), load=0.6)
    again = flow_types(records[::-1], addresses(), (10_000, 100_000, 1_000_000), load=0.6)
    other = flow_types(records, addresses(), (10_000, 100_000, 2_000_000), load=0.6)
    moved = records.copy()
    moved["destination_port"] += 1000
    elsewhere = flow_types(moved, addresses(), (10_000, 100_000, 1_000_000), load=0.6)
    assert not differ(one, again)
    assert differ(one, other)
    assert differ(one, elsewhere)
    assert differ(None, one)
    assert not differ(None, None)
