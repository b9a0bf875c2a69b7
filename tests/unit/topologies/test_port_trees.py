"""Ports whose `tc` fails: the problem stays until it succeeds, and then all of the tree is there."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ovsdb.port_queues import ONE_QUEUE, PortLimit
from topologies.links import Link
from topologies.namespaces import CommandError
from topologies.port_trees import PortTrees

SHAPE = Link(rate_mbps=10, buffer_packets=100)
EIGHT = replace(ONE_QUEUE, number=8)
TC = """#!/bin/sh
cat >> "$TC_LOG"
if [ -e "$TC_FAILS" ]; then echo "Error: cannot find the classifier. -:1" >&2; exit 1; fi
"""


def at_once(_node: str, work: Callable[[], Any]) -> Future[Any]:
    future: Future[Any] = Future()
    try:
        future.set_result(work())
    except CommandError as error:
        future.set_exception(error)
    return future


class Ports:
    """A link between two switches, whose `tc` is a program that notes its lines and fails while a file is there."""

    def __init__(
        self,
        directory: Path,
        monkeypatch: pytest.MonkeyPatch,
        *shapes: Link,
        netem: bool = False,
    ) -> None:
        program = directory / "tc"
        program.write_text(TC, encoding="utf-8")
        program.chmod(0o755)
        self._log, self._fails = directory / "log", directory / "fails"
        monkeypatch.setenv("PATH", f"{directory}:/usr/bin:/bin")
        monkeypatch.setenv("TC_LOG", str(self._log))
        monkeypatch.setenv("TC_FAILS", str(self._fails))
        links = []
        for number, shape in enumerate(shapes or (SHAPE,), 1):
            nodes = ("l1", f"s{number}")
            ends = [
                SimpleNamespace(name=f"{node}-eth{number}", node=SimpleNamespace(name=node)) for node in nodes
            ]
            links.append(SimpleNamespace(name=f"l1-s{number}", shape=shape, intf1=ends[0], intf2=ends[1]))
        self.trees = PortTrees(links, netem=netem, inside=at_once)  # type: ignore[arg-type]

    def fail(self, fails: bool) -> None:
        if fails:
            self._fails.touch()
        else:
            self._fails.unlink()

    def written(self) -> list[str]:
        """Return the lines since the last call."""
        lines = self._log.read_text(encoding="utf-8").splitlines() if self._log.exists() else []
        self._log.unlink(missing_ok=True)
        return lines


@pytest.fixture
def ports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ports:
    return Ports(tmp_path, monkeypatch)


def test_queues_that_could_not_be_written_stay_a_problem_until_they_are(ports: Ports) -> None:
    wanted = {"l1-eth1": EIGHT}
    ports.fail(True)
    first = ports.trees.set_queues(wanted)["l1-eth1"]
    assert "cannot find the classifier" in first.problem
    ports.written()
    second = ports.trees.set_queues(wanted)["l1-eth1"]
    assert second.problem  # the wish is as before, and still not done
    assert ports.written()
    ports.fail(False)
    assert ports.trees.set_queues(wanted)["l1-eth1"].problem == ""
    lines = ports.written()
    assert lines[1] == "qdisc del dev l1-eth1 root"  # whatever was left of the first attempt
    assert sum("class add" in line and "parent 1:fffe" in line for line in lines) == 8
    assert ports.trees.set_queues(wanted)["l1-eth1"].problem == ""
    assert not ports.written()


def test_a_link_that_could_not_be_reshaped_is_written_anew(ports: Ports) -> None:
    ports.fail(True)
    with pytest.raises(CommandError, match="cannot find the classifier"):
        ports.trees.reshape("l1-s1", replace(SHAPE, rate_mbps=5))
    ports.fail(False)
    ports.written()
    ports.trees.reshape("l1-s1", SHAPE)
    lines = ports.written()
    assert [line for line in lines if line.endswith("root")] == [
        f"qdisc del dev {end} root" for end in ("l1-eth1", "s1-eth1")
    ]
    ports.trees.reshape("l1-s1", SHAPE)
    assert not ports.written()


def test_a_delay_that_a_link_cannot_have_is_the_problem_of_its_ports_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kernels delay by netem, which counts packets: a link whose buffer is in bytes has no delay in a lab."""
    in_bytes = Link(rate_mbps=10, buffer_bytes=150_000)
    ports = Ports(tmp_path, monkeypatch, in_bytes, SHAPE, netem=True)
    slower = replace(ONE_QUEUE, limit=PortLimit(delay_us=1000))
    applied = ports.trees.set_queues({"l1-eth1": slower, "l1-eth2": slower})
    assert "buffer_bytes beside delay_ms" in applied["l1-eth1"].problem
    assert applied["l1-eth2"].problem == ""
    assert {port.limit for port in applied.values()} == {slower.limit}, "the problem is of what was asked for"
    lines = ports.written()
    assert lines
    assert all("dev l1-eth2 " in line for line in lines)
    assert ports.trees.set_queues({"l1-eth1": ONE_QUEUE})["l1-eth1"].problem == ""
    assert not ports.written(), "it has what it had all along"


def test_a_port_has_its_own_queues_and_limit(ports: Ports) -> None:
    asked = replace(EIGHT, buffer_packets=20, limit=PortLimit(rate_bps=5_000_000))
    ports.trees.set_queues({"l1-eth1": asked})
    assert ports.trees.port("l1-eth1") == (replace(SHAPE, rate_mbps=5.0, buffer_packets=20), 8)
    assert ports.trees.port("s1-eth1") == (SHAPE, 1)
