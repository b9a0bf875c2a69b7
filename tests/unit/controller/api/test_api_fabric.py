"""The API's routes about the fabric: health, agents, scheme, events; over a real controller without switches."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from controller.schemes import loader
from protocol.control import Challenge
from protocol.policy import Policy
from tests.unit.agents_channel import RawAgent, hello
from tests.unit.api_world import World, api_world, obedient_agent
from tests.waiting import eventually


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with api_world(tmp_path) as made:
        yield made


def test_health_says_what_is_waited_for(world: World) -> None:
    first = world.get("/health")
    assert (first["ready"], first["reasons"]) == (False, ["no switch is connected"])
    assert first["scheme"] == "ecmp"
    assert (first["switches"], first["links"], first["hosts"], first["agents"]) == (0, 0, 0, 0)
    assert 0 <= first["uptime_s"] < 60
    deaf = RawAgent.joined(world.directory / "agents.sock", 3)
    eventually(lambda: world.get("/health")["agents"] == 1, "the agent counted")
    reasons = world.get("/health")["reasons"]
    assert "agents without the current policy: h3" in reasons
    assert "not seen at any port yet: h3" in reasons
    assert not world.get("/health")["ready"]
    deaf.close()


def test_agents_are_shown_with_what_they_confirmed(world: World) -> None:
    assert world.get("/agents") == {"agents": []}
    with obedient_agent(world, 1), obedient_agent(world, 2, refuses="no such code"):
        one, two = world.get("/agents")["agents"]
        assert (one["host"], one["policy_version"], one["policy_error"]) == ("h1", 1, "")
        assert (two["host"], two["policy_version"], two["policy_error"]) == ("h2", -1, "no such code")
        assert one["overlay"] == ["10.128.1.1"]
    eventually(lambda: not any(agent["connected"] for agent in world.get("/agents")["agents"]), "both away")
    assert len(world.get("/agents")["agents"]) == 2


def test_a_hosts_place_is_unknown_until_it_sends(world: World) -> None:
    with obedient_agent(world, 1):
        eventually(lambda: world.get("/fabric")["hosts"], "the host")
        (host,) = world.get("/fabric")["hosts"]
    assert host == {
        "name": "h1", "underlay_ip": "10.0.1.1", "mac": "00:00:00:00:01:01", "agent": True, "place": None,
        "link": None, "overlay": ["10.128.1.1"],
    }  # fmt: skip


def test_schemes_are_those_of_the_files(world: World) -> None:
    listed = world.get("/schemes")["schemes"]
    assert [scheme["name"] for scheme in listed] == loader.scheme_names()
    for scheme in listed:
        assert world.get(f"/schemes/{scheme['name']}") == scheme
        assert loader.scheme_from_dict(scheme) == loader.load(scheme["name"])
    for name in ("capz", "capz.yaml"):
        said = world.get(f"/schemes/{name}", 404)
        assert said["detail"] == "scheme 'capz' is not known; did you mean 'caps'?"


def test_a_scheme_is_had_as_it_is_written(world: World, tmp_path: Path) -> None:
    answer = world.client.get("/api/v1/schemes/caps.yaml")
    assert answer.mimetype == "text/plain"
    assert "# " in answer.text
    own = tmp_path / "caps.yaml"
    own.write_text(answer.text)
    assert loader.load(own) == loader.load("caps")


def test_setting_a_scheme_reaches_the_agents_and_is_remembered(world: World) -> None:
    with obedient_agent(world, 1), obedient_agent(world, 2):
        body = {
            "scheme": "caps",
            "overrides": {"long.release.packet_times": 32.5, "short.coding?.max_k": 16},
            "packet_time_us": 8000,
        }
        answer = world.ask("PUT", "/scheme", json=body)
        assert answer.pop("applied_ms") > 0
        assert answer == world.get("/scheme")
        assert answer["base"] == "caps"
        assert answer["version"] == 2
        assert answer["scheme"]["short"]["coding"]["max_k"] == 16
        policy = Policy.from_dict(answer["policy"])
        assert policy.packet_time_s == pytest.approx(0.008)
        assert policy.long.release is not None
        assert policy.long.release.timeout_s == pytest.approx(32.5 * 0.008)
        assert [agent["policy_version"] for agent in world.get("/agents")["agents"]] == [2, 2]
        # packet time and agents stay; overrides do not
        again = world.ask("PUT", "/scheme", json={"scheme": "rps"})
        assert (again["packet_time_us"], again["overrides"]) == (8000, {})
        own = world.ask("PUT", "/scheme", json={"scheme": {**answer["scheme"], "name": "mine"}})
        assert (own["scheme"]["name"], own["base"]) == ("mine", "mine")


def test_a_scheme_that_cannot_be_kept_is_not_set(tmp_path: Path) -> None:
    with api_world(tmp_path) as world, obedient_agent(world):
        before, version = world.get("/scheme"), world.running.current.version
        full = tmp_path / "scheme.new"
        full.symlink_to("/dev/full")
        refused = world.ask("PUT", "/scheme", 503, json={"scheme": "caps"})
        assert "No space left on device" in refused["detail"]
        assert world.get("/scheme") == before
        assert world.running.current.version == version
        assert not (tmp_path / "scheme.json").exists()
        full.unlink()
        assert world.ask("PUT", "/scheme", json={"scheme": "caps"})["version"] == version + 1


@pytest.mark.parametrize("name", ["dctcp", "pfabric"])
def test_a_scheme_for_simulations_alone_is_not_set(world: World, name: str) -> None:
    before = world.get("/scheme")
    refused = world.ask("PUT", "/scheme", 422, json={"scheme": name})
    assert f"scheme {name}: " in refused["detail"]
    assert "use ./capstan simulate" in refused["detail"]
    assert world.get("/scheme") == before
    assert name in [scheme["name"] for scheme in world.get("/schemes")["schemes"]]


def test_a_restarted_controller_goes_on_with_the_scheme(tmp_path: Path) -> None:
    with api_world(tmp_path) as world:
        before = world.ask("PUT", "/scheme", json={"scheme": "caps", "overrides": {"short.coding": None}})
    with api_world(tmp_path, scheme="rps") as world:
        after = world.get("/scheme")
    assert after["scheme"] == before["scheme"]
    assert after["overrides"] == before["overrides"]
    assert after["version"] > before["version"], "agents must take it for new"
    with api_world(tmp_path, scheme="rps") as world:
        assert world.get("/scheme")["version"] > after["version"], "so must they after each start"


@pytest.mark.parametrize(
    "damage",
    ["", "[]", "{}", '{"scheme": {}}', "null", "[" * 100_000],
)
def test_a_damaged_memory_of_the_scheme_does_not_keep_the_controller_from_starting(
    tmp_path: Path, damage: str
) -> None:
    (tmp_path / "scheme.json").write_text(damage)
    with api_world(tmp_path, scheme="rps") as world:
        assert world.get("/scheme")["scheme"]["name"] == "rps"


BAD_SCHEMES: list[tuple[dict[str, Any], str, str]] = [
    ({"scheme": "capz"}, "body.scheme", "scheme 'capz' is not known; did you mean 'caps'?"),
    ({"scheme": "../caps"}, "body.scheme", "is not known"),
    ({"scheme": "/etc/passwd.yaml"}, "body.scheme", "is not known"),
    ({"scheme": 5}, "body.scheme", "expected a name or an object"),
    ({"scheme": None}, "body.scheme", "expected a name or an object"),
    ({"scheme": {"name": "x"}}, "scheme", "field 'title' is missing"),
    ({"schema": "caps"}, "body", "did you mean 'scheme'?"),
    ({}, "body", "field 'scheme' is missing"),
    ({"scheme": "caps", "overrides": {"shortt": {}}}, "overrides", "did you mean 'short'?"),
    ({"scheme": "caps", "overrides": {"short.coding.max_k": 0}}, "overrides.short.coding.max_k", "1..128"),
    # what the compiled code has no numbers for
    (
        {"scheme": "caps", "overrides": {"mode.quiet_intervals": 5_000_000_000}},
        "overrides.mode.quiet_intervals",
        "must be 1..1024",
    ),
    (
        {"scheme": "capton", "overrides": {"admission.least_share": 1e-7}},
        "overrides.admission.least_share",
        "must be 1e-06 to 1",
    ),
    ({"scheme": "caps", "overrides": []}, "body.overrides", "expected an object"),
    ({"scheme": "caps", "packet_time_us": 0}, "body.packet_time_us", "above 0"),
    ({"scheme": "caps", "packet_time_us": -1}, "body.packet_time_us", "above 0"),
    ({"scheme": "caps", "packet_time_us": "4000"}, "body.packet_time_us", "expected float"),
    ({"scheme": "caps", "packet_time_us": 1e308}, "body.packet_time_us", "is not within"),
    ({"scheme": "caps", "timeout_s": "soon"}, "body.timeout_s", "expected float"),
    ({"scheme": "caps", "timeout_s": 0}, "body.timeout_s", "must be 0.1..60 s, not 0"),
    ({"scheme": "caps", "timeout_s": 61}, "body.timeout_s", "must be 0.1..60 s, not 61"),
    # fine in packet times, not in seconds: agents would refuse it
    ({"scheme": "caps", "packet_time_us": 9e8}, "body.scheme", "must be above 0 s and at most"),
]


@pytest.mark.parametrize(("body", "field", "words"), BAD_SCHEMES, ids=[str(case[0]) for case in BAD_SCHEMES])
def test_a_scheme_that_cannot_be_is_refused_by_field_and_changes_nothing(
    world: World, body: dict[str, Any], field: str, words: str
) -> None:
    before = world.get("/scheme")
    said = world.ask("PUT", "/scheme", 422, json=body)
    assert words in said["detail"]
    assert said["field"] == field
    assert world.get("/scheme") == before
    assert not (world.directory / "scheme.json").exists(), "nor does a restart bring it back"


@pytest.mark.slow
def test_who_does_not_confirm_is_named_and_the_scheme_stays(world: World) -> None:
    with obedient_agent(world, 1), obedient_agent(world, 2, refuses="policy.short: no"):
        deaf = RawAgent.joined(world.directory / "agents.sock", 3)
        said = world.ask("PUT", "/scheme", 504, json={"scheme": "caps", "timeout_s": 2.0})
        assert said["unconfirmed"] == [
            {"who": "agent h2", "why": "policy.short: no"},
            {"who": "agent h3", "why": "has not confirmed policy 2"},
        ]
        assert "within 2 s" in said["detail"]
        assert world.get("/scheme")["scheme"]["name"] == "caps"
        deaf.close()


@pytest.mark.slow
def test_flows_are_reported_by_host_and_silent_ones_named(world: World) -> None:
    assert world.ask("POST", "/flows/report", json={}) == {"hosts": {}, "missing": []}
    with obedient_agent(world, 1):
        deaf = RawAgent.joined(world.directory / "agents.sock", 3)
        got = world.ask("POST", "/flows/report", json={"forget": True, "timeout_s": 2.0})
        assert got["missing"] == ["h3"]
        assert [flow["paths"] for flow in got["hosts"]["h1"]] == [{"3": 3}]
        deaf.close()


def test_agents_are_not_waited_for_longer_than_can_be_asked(world: World) -> None:
    for timeout_s in (0.05, 3600):
        said = world.ask("POST", "/flows/report", 422, json={"timeout_s": timeout_s})
        assert said["field"] == "body.timeout_s"


def test_impairments_are_for_labs_and_for_agents_that_are_there(world: World, tmp_path: Path) -> None:
    with obedient_agent(world, 1):
        wanted = {"loss": 0.02, "reorder": 0.3, "reorder_delay_s": 0.01}
        set_to = world.ask("PUT", "/agents/h1/impairment", json=wanted)
        assert set_to == {**wanted, "duplicate": 0, "corrupt": 0}
        said = world.ask("PUT", "/agents/h11/impairment", 404, json={})
        assert said["detail"] == "there is no agent 'h11'; did you mean 'h1'?"
        for body, field in (
            ({"loss": 1.1}, "body.loss"),
            ({"corrupt": -0.1}, "body.corrupt"),
            ({"reorder_delay_s": 11}, "body.reorder_delay_s"),
            ({"los": 0.1}, "body"),
        ):
            assert world.ask("PUT", "/agents/h1/impairment", 422, json=body)["field"] == field
    eventually(lambda: not world.get("/agents")["agents"][0]["connected"], "h1 away")
    assert "no channel" in world.ask("PUT", "/agents/h1/impairment", 503, json={})["detail"]


def test_impairments_are_refused_outside_labs(tmp_path: Path) -> None:
    with api_world(tmp_path, lab=False) as world:
        assert "in labs only" in world.ask("PUT", "/agents/h1/impairment", 403, json={})["detail"]


def test_events_say_in_order_what_happened_with_a_cursor(world: World) -> None:
    start = world.get("/events")["cursor"]
    before = time.time()
    with obedient_agent(world, 1):
        world.ask("PUT", "/scheme", json={"scheme": "rps"})
    events = eventually(lambda: _of(world, start, {"agent-event", "scheme-changed"}), "both events")
    assert [event["cursor"] for event in events] == sorted(event["cursor"] for event in events)
    assert all(before - 1 < event["at"] < time.time() + 1 for event in events)
    assert {"host": "h1", "joined": True}.items() <= events[0].items()
    page = world.get(f"/events?since={start}&limit=1")
    assert len(page["events"]) == 1
    assert page["cursor"] == start + 1
    assert world.get(f"/events?since={world.get('/events')['cursor']}")["events"] == []


def test_events_of_a_topic_are_chosen_before_the_limit(world: World) -> None:
    start = world.get("/events")["cursor"]
    for scheme in ("rps", "caps"):
        with obedient_agent(world, 1):
            world.ask("PUT", "/scheme", json={"scheme": scheme})
    first = world.get(f"/events?since={start}&topics=scheme&limit=1")
    second = world.get(f"/events?since={first['cursor']}&topics=scheme&limit=1")
    assert [event["scheme"] for event in (*first["events"], *second["events"])] == ["rps", "caps"]
    assert world.get(f"/events?since={start}&topics=links")["events"] == []
    assert {event["kind"] for event in world.get(f"/events?since={start}&topics=agents")["events"]} == {
        "agent-event"
    }


def _of(world: World, since: int, kinds: set[str]) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = world.get(f"/events?since={since}")["events"]
    return events if kinds <= {event["kind"] for event in events} else []


def test_modes_without_a_cursor_say_only_where_to_begin(world: World) -> None:
    assert world.get("/modes")["events"] == []
    assert world.get("/modes?since=0")["leaves"] == []


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/events?since=-1", "query.since"),
        ("/events?since=1e3", "query.since"),
        ("/events?limit=0", "query.limit"),
        ("/events?limit=10001", "query.limit"),
        ("/events?since=99999999999999999999", "query.since"),
        ("/events?since=" + "9" * 5000, "query.since"),
        ("/modes?since=x", "query.since"),
        ("/experiments?limit=501", "query.limit"),
    ],
)
def test_query_parameters_out_of_range_are_named(world: World, path: str, field: str) -> None:
    assert world.get(path, 422)["field"] == field


def test_what_is_refused_is_in_metrics(world: World, tmp_path: Path) -> None:
    thief = RawAgent.unix(tmp_path / "agents.sock")
    thief.send(hello(1, thief.next(Challenge).nonce, token="a guess"))
    thief.all()
    text = world.get("/metrics")
    assert 'capstan_agents_total{what="wrong-proofs"} 1\n' in text
    assert 'capstan_openflow_total{what="refused-hosts"} 0\n' in text
    assert "# TYPE capstan_http_refused_total counter\n" in text
