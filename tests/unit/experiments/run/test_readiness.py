"""What a deployment's controller still misses of its fabric, and how long it is waited for."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from capstan_client.controller import ControllerClient, Health
from experiments.run import readiness
from experiments.run.parts import DeploymentError, ProcessPart
from experiments.run.readiness import Readiness, missing
from topologies.fabric_spec import FabricSpec

FABRIC = FabricSpec.from_dict({"leaves": 2, "spines": 3, "hosts_per_leaf": 2})


def health(*, switches: int = 5, links: int = 6, hosts: int = 4, agents: int = 4, waits: str = "") -> Health:
    return Health(not waits, (waits,) if waits else (), "1", switches, links, hosts, agents)


class FakeController:
    """Answers with one health after the other, and with the last one from then on."""

    def __init__(self, answers: Iterable[Health], faults: Iterable[str] = ()) -> None:
        self.answers = list(answers)
        self._faults = [{"kind": kind} for kind in faults]

    def health(self) -> Health:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def faults(self) -> list[dict[str, str]]:
        return self._faults

    def agents(self) -> list[dict[str, Any]]:
        return [{"host": "h1", "connected": True}, {"host": "h2", "connected": False}]


def readiness_of(controller: FakeController, logs: Path | None = None) -> Readiness:
    parts = []
    for name in ("controller", "agent h1", "agent h2") if logs is not None else ():
        log = logs / name
        log.write_text(f"the log of {name}\n")
        parts.append(cast(ProcessPart, SimpleNamespace(name=name, log=log)))
    client = cast(ControllerClient, controller)
    return Readiness(FABRIC, parts, client=lambda: client, check=lambda: None)


def test_what_is_missing_is_counted_by_kind() -> None:
    assert missing(FABRIC, health()) == []
    assert missing(FABRIC, health(switches=4, links=5, hosts=0, agents=3, waits="its tables")) == [
        "4 of 5 switches",
        "5 of 6 links between switches",
        "3 of 4 agents",
        "0 of 4 hosts",
        "the controller waits for its tables",
    ]


def test_a_link_that_is_down_from_the_start_is_not_missing() -> None:
    fabric = FabricSpec.from_dict({"leaves": 2, "spines": 3, "hosts_per_leaf": 2, "down": ["l1-s1"]})
    assert missing(fabric, health(links=5)) == []
    assert missing(fabric, health(links=6)) == ["6 of 5 links between switches"]


def test_the_wait_ends_when_nothing_is_missing() -> None:
    controller = FakeController([health(hosts=1), health(hosts=3), health()])
    readiness_of(controller).wait()
    assert controller.answers == [health()]


def test_the_error_names_what_is_missing_with_the_logs_of_those_that_may_say_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readiness, "READY_S", 0.0)
    with pytest.raises(DeploymentError, match="3 of 4 agents") as error:
        readiness_of(FakeController([health(agents=3)]), tmp_path).wait()
    logged = [
        name for name in ("controller", "agent h1", "agent h2") if f"the log of {name}" in str(error.value)
    ]
    assert logged == ["controller", "agent h2"]


@pytest.mark.parametrize(("switches", "hinted"), [(0, True), (1, False)])
def test_a_firewall_is_named_where_no_switch_has_reached_the_controller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, switches: int, hinted: bool
) -> None:
    monkeypatch.setattr(readiness, "READY_S", 0.0)
    with pytest.raises(DeploymentError, match=f"{switches} of 5 switches") as error:
        readiness_of(FakeController([health(switches=switches)]), tmp_path).wait()
    assert ("does a firewall" in str(error.value)) == hinted


@pytest.mark.parametrize(("faults", "held"), [((), False), (("slow-link",), False), (("link-down",), True)])
def test_what_a_fault_holds_down_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, faults: tuple[str, ...], held: bool
) -> None:
    monkeypatch.setattr(readiness, "FOUND_AGAIN_S", 0.0)
    deployed = readiness_of(FakeController([health(links=5)], faults))
    assert deployed.held_down() == held
    if held:
        assert deployed.check_health() == health(links=5)
    else:
        with pytest.raises(DeploymentError, match="5 of 6 links between switches"):
            deployed.check_health()
