"""TPFS on real switches: agents report flows that ended, the controller learns types, and queues carry what it
decided."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Iterator
from typing import Any, Final

import pytest

from experiments.run.deployment import Deployment
from experiments.spec.spec import SchemeChoice
from tests.lab.test_schemes_on_switches import RECEIVER, deployment, fabric, said, start
from tests.waiting import eventually

SHORT_PORT: Final = 7001
LONG_PORT: Final = 7002
MOVED_PORT: Final = 7003
THRESHOLDS: Final = [20_000, 40_000]
LONG_BYTES: Final = 60_000
SINK: Final = textwrap.dedent("""
    import selectors, socket, sys
    waiting = selectors.DefaultSelector()
    for port in map(int, sys.argv[1:]):
        listener = socket.create_server(("0.0.0.0", port), backlog=1000)
        waiting.register(listener, selectors.EVENT_READ, listener.accept)
    print("listening", flush=True)
    while True:
        for key, _ in waiting.select():
            if key.data is not None:
                waiting.register(key.data()[0], selectors.EVENT_READ, None)
            elif not key.fileobj.recv(65536):
                waiting.unregister(key.fileobj)
                key.fileobj.close()
""")
FLOWS: Final = textwrap.dedent("""
    import socket, sys
    target, port, count, size = sys.argv[1], *map(int, sys.argv[2:])
    for number in range(count):
        with socket.create_connection((target, port), timeout=60) as flow:
            flow.sendall(bytes(size + number % 100))
            flow.shutdown(socket.SHUT_WR)
            assert flow.recv(1) == b""
    print("done")
""")


@pytest.fixture(scope="module")
def lab() -> Iterator[Deployment]:
    with deployment(fabric(2, rate=50.0), "ecmp") as running:
        _learn_every(running, 0.5)
        said(start(running, "h2", SINK, SHORT_PORT, LONG_PORT, MOVED_PORT), "listening")
        yield running


def _learn_every(lab: Deployment, interval_s: float) -> None:
    overrides: dict[str, Any] = {
        "queues.number": 3,
        "priority.thresholds_bytes": THRESHOLDS,
        "priority.prediction.interval_s": interval_s,
    }
    lab.set_scheme(SchemeChoice("tpfs", "tpfs", overrides))


def _unknown(lab: Deployment) -> float:
    """Count the flows of h1 whose type its agent did not know."""
    (agent,) = [one for one in lab.client.agents() if one["host"] == "h1"]
    return float(agent["counters"].get("flows_of_unknown_type", 0))


def _learner(lab: Deployment) -> dict[str, Any]:
    return lab.client.flow_types()


def _sent_bytes(lab: Deployment) -> list[int]:
    """Return the bytes of each queue of the leaf's ports to spines (that to its host has no rate, and so no queues)."""
    asked = time.monotonic()
    eventually(
        lambda: all(
            one["counted_s_ago"] is not None and one["counted_s_ago"] < time.monotonic() - asked
            for one in lab.client.queues()["switches"]
        )
    )
    (leaf,) = [one for one in lab.client.queues()["switches"] if one["switch"] == "l1"]
    ports = [one["counters"] for one in leaf["ports"] if one["counters"]]
    assert len(ports) == 2
    return [sum(counters[queue]["sent_bytes"] for counters in ports) for queue in range(3)]


def _flows(lab: Deployment, port: int, count: int, size: int) -> list[int]:
    """Send *count* flows one after the other; bytes that went through each queue meanwhile."""
    before = _sent_bytes(lab)
    assert start(lab, "h1", FLOWS, RECEIVER, port, count, size).wait(60) == 0
    return [after - one for after, one in zip(_sent_bytes(lab), before, strict=True)]


def test_flows_sink_by_bytes_sent_until_their_type_is_known_and_then_begin_where_they_belong(
    lab: Deployment,
) -> None:
    first = _flows(lab, LONG_PORT, 60, LONG_BYTES)
    total = 60 * LONG_BYTES
    for carried in first:
        assert carried > 0.25 * total, f"a third of each flow in each queue: {first}"
    _flows(lab, SHORT_PORT, 120, 500)

    def learnt() -> bool:
        types = _learner(lab)["types"]
        return types is not None and types["features"] == ["destination_port"] and len(types["types"]) == 2

    eventually(learnt)
    types = {one["values"][0][0]: one for one in _learner(lab)["types"]["types"]}
    assert types[str(LONG_PORT)]["thresholds_bytes"] == [0, 0]
    assert types[str(SHORT_PORT)]["thresholds_bytes"] == THRESHOLDS
    assert _learner(lab)["refused"] == {}
    eventually(lambda: any(one["kind"] == "types-learnt" and one["sent"] for one in lab.client.events()[0]))
    later = _flows(lab, LONG_PORT, 30, LONG_BYTES)
    assert later[2] > 0.9 * 30 * LONG_BYTES, f"all of it in the last queue: {later}"
    assert later[0] < 0.2 * 30 * LONG_BYTES, f"control packets only in the first queue: {later}"
    short = _flows(lab, SHORT_PORT, 30, 500)
    assert short[1] + short[2] < 0.1 * short[0], f"short ones stay on top: {short}"


def test_an_application_that_changes_its_port_is_unknown_and_known_from_the_next_computation_on(
    lab: Deployment,
) -> None:
    began = time.time()
    _learn_every(lab, 600.0)  # once now, and not again in this test

    def computed() -> list[dict[str, Any]]:
        """Return the computations under the newest policy: those after the types were sent again under it."""
        history = [one for one in _learner(lab)["history"] if one["at"] > began]
        outcomes = [one["outcome"] for one in history]
        return history[outcomes.index("sent again") + 1 :] if "sent again" in outcomes else []

    eventually(lambda: bool(computed()))
    assert _learner(lab)["types_version"] == lab.client.scheme()["version"]
    records, unknown = _learner(lab)["records"], _unknown(lab)
    moved = _flows(lab, MOVED_PORT, 60, LONG_BYTES)
    for carried in moved:
        assert carried > 0.25 * 60 * LONG_BYTES, f"default thresholds, a third in each queue: {moved}"
    eventually(lambda: _unknown(lab) >= unknown + 60)
    eventually(lambda: _learner(lab)["records"] >= records + 60)
    began = time.time()
    _learn_every(lab, 0.5)
    eventually(lambda: bool(computed()))
    assert computed()[0]["outcome"] == "sent to agents"
    (longs,) = [one for one in _learner(lab)["types"]["types"] if one["thresholds_bytes"] == [0, 0]]
    assert sorted(longs["values"]) == [[str(LONG_PORT)], [str(MOVED_PORT)]]
    later = _flows(lab, MOVED_PORT, 30, LONG_BYTES)
    assert later[2] > 0.9 * 30 * LONG_BYTES, f"all of it in the last queue: {later}"


def test_records_are_of_flows_as_they_were(lab: Deployment) -> None:
    before = _learner(lab)["records"]
    _flows(lab, SHORT_PORT, 40, 700)
    eventually(lambda: _learner(lab)["records"] >= before + 40)
    assert _learner(lab)["dropped_messages"] == 0
