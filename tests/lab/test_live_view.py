"""What those who watch a real fabric see: loads of links, flows and their paths, and faults that they make."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any, TypeVar

import pytest

from capstan_client.http import Connection
from experiments.run.deployment import Deployment
from tests.lab.test_schemes_on_switches import PORT, RECEIVER, deployment, fabric, programs, start
from tests.waiting import PATIENCE_S, eventually

SPINES = 4
RATE, ACCESS = 10.0, 50.0
T = TypeVar("T")


@pytest.fixture(scope="module")
def lab() -> Iterator[Deployment]:
    shape = fabric(SPINES, rate=RATE) | {"access": {"rate_mbps": ACCESS}}
    with deployment(shape, "rps") as made:
        yield made


def ask(lab: Deployment, method: str, path: str, json: dict[str, Any] | None = None) -> Any:
    with closing(Connection(lab.client.url, None, PATIENCE_S)) as connection:
        return connection.json(method, path, body=json)


@contextmanager
def stream(lab: Deployment, topics: str) -> Iterator[Iterator[tuple[str, dict[str, Any]]]]:
    """Yield an iterator of (topic, data) of each event."""
    with (
        closing(Connection(lab.client.url, None, PATIENCE_S)) as connection,
        closing(connection.events(topics)) as events,
    ):
        yield ((event["topic"], event) for event in events)


def paths(lab: Deployment) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = ask(lab, "GET", "/fabric/paths?from=h1&to=h2")["paths"]
    return found


def over(flow: dict[str, Any], total: int) -> bool:
    """Return whether reports of a flow ended once it had sent so much; before, a busy machine may be silent."""
    return flow["state"] == "ended" and flow["bytes"] >= total


def test_links_and_flows_are_seen_while_they_carry(lab: Deployment) -> None:
    """A paced transfer of 4 Mbit/s, sprayed over four links of 10 Mbit/s."""
    total, rate = 2_000_000, 500_000
    receiver = start(lab, "h2", programs.RECEIVE, PORT)
    assert receiver.stdout is not None
    assert "listening" in receiver.stdout.readline()
    with stream(lab, "links,flows") as events:
        assert next(events)[0] == "hello"
        sender = start(lab, "h1", programs.SEND, RECEIVER, PORT, total, rate)
        best: dict[str, float] = {}
        flow: dict[str, Any] = {}
        for topic, data in events:
            if topic == "links":
                loads = {link["name"]: link for link in data["links"]}
                assert {name for name in loads if name.startswith("l1-")} == {f"l1-s{i}" for i in range(1, 5)}
                up = [loads[f"l1-s{i}"] for i in range(1, 5)]
                assert {link["rate_kbps"] for link in up} == {RATE * 1000}
                assert loads["h1-l1"]["rate_kbps"] == ACCESS * 1000
                if all(link["ab"] for link in up) and loads["h1-l1"]["ab"]:
                    there = sum(link["ab"]["bits_per_s"] for link in up)
                    if there > best.get("there", 0.0):
                        back = sum(link["ba"]["bits_per_s"] for link in up)
                        best = {"there": there, "back": back, "host": loads["h1-l1"]["ab"]["bits_per_s"]}
            elif topic == "flows":
                for one in data["flows"]:
                    if one["destination_port"] == PORT:
                        flow = one
                if flow and over(flow, total):
                    break
    assert sender.wait(60) == 0
    assert best["there"] > 1e5, "it was seen"
    assert best["back"] < best["there"] / 2, "and in its direction"
    assert best["host"] > 0
    assert (flow["source"], flow["destination"], flow["protocol"]) == ("h1", "h2", "tcp")
    assert flow["bytes"] >= total
    stamps = {
        switch["stamp"] for switch in ask(lab, "GET", "/fabric")["switches"] if switch["role"] == "spine"
    }
    assert {int(stamp) for stamp in flow["paths"]} == stamps == {path["stamp"] for path in paths(lab)}
    detail = ask(lab, "GET", f"/flows/{flow['id']}")
    assert sum(step["bytes"] for step in detail["timeline"]) == detail["flow"]["bytes"] == flow["bytes"]
    for stamp, count in flow["paths"].items():
        assert sum(step["paths"].get(stamp, 0) for step in detail["timeline"]) == count
    listed = ask(lab, "GET", "/flows?state=ended&host=h2&class=long")["flows"]
    assert flow["id"] in [one["id"] for one in listed]


def test_queues_that_fill_are_seen_by_link_and_in_the_flows_history(lab: Deployment) -> None:
    """Faster than a slowed access link of the receiver: what waits does so at its leaf's port, and nowhere else.

    The flow lasts until such a sample lies within its life: a busy machine may take few.
    """
    fault = ask(lab, "POST", "/faults", json={"kind": "slow-link", "target": "h2-l2", "rate_mbps": 2.0})
    receiver = start(lab, "h2", programs.RECEIVE, PORT + 2)
    assert receiver.stdout is not None
    assert "listening" in receiver.stdout.readline()
    with stream(lab, "links,flows") as events:
        sender = start(lab, "h1", programs.SEND, RECEIVER, PORT + 2, 0, 100_000_000)
        assert sender.stdin is not None
        assert sender.stdout is not None
        filled_at, total, flow = None, None, {}
        for topic, data in events:
            if topic == "links":
                loads = {link["name"]: link["ba"] for link in data["links"] if link["ba"]}
                if "h2-l2" in loads and loads["h2-l2"]["queued_packets"] is not None:
                    (queue,) = loads["h2-l2"]["queues"]
                    assert queue["waiting_packets"] == loads["h2-l2"]["queued_packets"]
                    if filled_at is None and queue["waiting_packets"] > 20:
                        filled_at = data["at"]
            elif topic == "flows":
                flow = next((one for one in data["flows"] if one["destination_port"] == PORT + 2), flow)
            if filled_at is not None and flow and flow["last_at"] > filled_at and not sender.stdin.closed:
                print("enough", file=sender.stdin)
                sender.stdin.close()
            if total is None and sender.poll() is not None:
                assert sender.returncode == 0
                total = int(sender.stdout.read().split()[-1])
            if total is not None and over(flow, total):
                break
    ask(lab, "DELETE", f"/faults/{fault['id']}")
    detail = ask(lab, "GET", f"/flows/{flow['id']}")
    assert {(one["link"], one["direction"]) for one in detail["queues"]} == {("h2-l2", "ba")}
    # the stream leaves out samples for which its reader is too slow, the history those after the flow's last report
    assert max(one["queued_packets"] for one in detail["queues"]) > 20
    assert detail["faults"] == []


def test_metrics_have_what_switches_have_counted(lab: Deployment) -> None:
    """Bytes of a link by the API against those that the kernel has counted at the same port."""
    ask(lab, "GET", "/links")
    text = lab.client.metrics()
    values = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert values["capstan_switches"] == str(2 + SPINES)
    assert values['capstan_scheme{scheme="rps"}'] == "1"
    by_kernel, _ = lab.lab.port_counters("l1-s1")
    reported = int(values['capstan_link_bytes_total{link="l1-s1",direction="ab"}'])
    assert 0.9 * by_kernel.sent_bytes < reported <= by_kernel.sent_bytes


def test_links_and_switches_go_down_and_come_back_without_a_byte_lost(lab: Deployment) -> None:
    receiver = start(lab, "h2", programs.RECEIVE, PORT + 1)
    assert receiver.stdout is not None
    assert "listening" in receiver.stdout.readline()
    sender = start(lab, "h1", programs.SEND, RECEIVER, PORT + 1, 1_500_000, 300_000)
    with stream(lab, "fabric,faults") as events:
        next(events)
        fault = ask(lab, "POST", "/faults", json={"kind": "link-down", "target": "s1-l1"})
        assert fault["target"] == "l1-s1"
        wanted = {("faults", "fault-began", "l1-s1"), ("fabric", "link-down", "l1-s1")}
        while wanted:  # something else may happen meanwhile
            topic, reported = next(events)
            wanted.discard(
                (topic, reported["kind"], reported.get("link") or reported.get("fault", {}).get("target"))
            )
    eventually(lambda: len(paths(lab)) == SPINES - 1)
    spine = ask(lab, "POST", "/faults", json={"kind": "switch-down", "target": "s2"})
    eventually(lambda: len(paths(lab)) == SPINES - 2)

    def down() -> set[str]:
        return {link["name"] for link in ask(lab, "GET", "/fabric")["links"] if not link["up"]}

    eventually(lambda: down() == {"l1-s1", "l1-s2", "l2-s2"})
    assert [one["kind"] for one in ask(lab, "GET", "/faults")["faults"]] == ["link-down", "switch-down"]
    for one in (fault, spine):
        ask(lab, "DELETE", f"/faults/{one['id']}")
    eventually(lambda: len(paths(lab)) == SPINES)
    assert sender.wait(60) == 0
    assert receiver.wait(60) == 0
    eventually(lambda: lab.client.health().ready)
