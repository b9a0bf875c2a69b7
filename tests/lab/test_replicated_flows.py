"""RepFlow and RepSYN over real switches: two paths, one flow, and no connection that stays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from experiments.results.outcome import FlowOutcome, join
from experiments.run.deployment import Deployment
from experiments.run.drain import wait_until_empty
from experiments.run.traffic import Traffic
from experiments.spec.check import find_spec, load
from experiments.spec.spec import SchemeChoice, Spec
from tests.waiting import eventually
from workloads.flow_header import SINK_PORT


def spec() -> Spec:
    path = find_spec("small")
    loaded = load(path.read_text(), str(path), ["ecmp", "rps", "caps"])
    return replace(loaded, schemes=(SchemeChoice("repflow", "repflow"), SchemeChoice("repsyn", "repsyn")))


@pytest.fixture(scope="module")
def deployment() -> Iterator[Deployment]:
    with Deployment(spec()) as up:
        yield up


def connections(deployment: Deployment) -> list[str]:
    """Return the connections with the sinks, on all hosts, that are neither over nor in TIME_WAIT."""
    found = []
    for host in deployment.lab.hosts:
        lines = deployment.lab.net[host].cmd(
            f"ss -Htan state all '( sport = :{SINK_PORT} or dport = :{SINK_PORT} )'"
        )
        found += [
            f"{host}: {line}" for line in lines.splitlines() if line.split()[0] not in ("LISTEN", "TIME-WAIT")
        ]
    return found


def run(deployment: Deployment, scheme: str, logs: Path) -> tuple[FlowOutcome, ...]:
    """Return all flows of one run under *scheme*; no connection is left before it is over."""
    used = deployment.spec
    chosen = next(choice for choice in used.schemes if choice.name == scheme)
    replication = deployment.set_scheme(chosen)["scheme"]["replication"]
    plan = replace(used.plan(0), flows=used.plan(0).sized)
    with Traffic(deployment.lab.popen, used.endpoints(), logs) as traffic:
        traffic.configure(used.transport)
        traffic.prepare(plan, replication)
        wait_until_empty(lambda: deployment.client.report_flows(forget=True), used.packet_time_s)
        traffic.run(240, lambda finished, failed: None, deployment.check)
        eventually(lambda: not connections(deployment), lambda: f"no connections: {connections(deployment)}")
        sent, received = traffic.stop_flows()
    assert all(flow.other_port is not None for flow in sent)
    entries = deployment.client.report_flows(forget=True)
    return join(plan, sent, received, [entry for host in entries.values() for entry in host])


def test_repflow_sends_twice_on_paths_of_their_own_and_leaves_no_connection(
    deployment: Deployment, tmp_path: Path
) -> None:
    flows = run(deployment, "repflow", tmp_path)
    assert len(flows) == 20
    ports = {flow.id: flow.source_port for flow in deployment.spec.plan(0).flows}
    for flow in flows:
        assert flow.state == "finished", flow
        assert len(flow.paths) == 1, "each copy keeps to its path"
        assert flow.copy_packets > 0, "the other copy connected, too"
    # A busy machine may start a copy so late that the first one has ended.
    assert sum(flow.copy_packets > 2 for flow in flows) > len(flows) / 2, "the other copies sent data, too"
    assert 0 < sum(flow.source_port != ports[flow.id] for flow in flows) < len(flows), (
        "either copy may be first"
    )


def test_repsyn_sends_once_by_the_first_connection_and_leaves_no_other(
    deployment: Deployment, tmp_path: Path
) -> None:
    flows = run(deployment, "repsyn", tmp_path)
    assert len(flows) == 20
    for flow in flows:
        assert flow.state == "finished", flow
        assert len(flow.paths) == 1
        assert 1 <= flow.copy_packets <= 6, "a SYN, and what closes the connection"
        assert flow.packets >= (flow.size_bytes or 0) / 1500
