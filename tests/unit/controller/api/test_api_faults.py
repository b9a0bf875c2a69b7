"""Faults by the API: for labs only, of what is there, and of ports that several hold down."""

from __future__ import annotations

import contextlib
import json
import struct
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from os_ken.ofproto import ofproto_v1_5 as ofp

from controller.agents.members_file import write_members
from controller.agents.membership import Member
from controller.fabric.graph import PortRef
from controller.openflow.posted_calls import PostedCalls
from controller.plane.faults import (
    Fault,
    FaultBegan,
    FaultConflictError,
    FaultEnded,
    FaultError,
    Faults,
    PortsLeftOut,
)
from controller.plane.naming import FabricNames
from controller.shell.shell import OpenFlowShell
from ovsdb.port_queues import PortLimit
from tests.unit.api_world import api_world
from tests.unit.controller.live.test_live_links import snapshot
from tests.unit.raw_switch import RawSwitch
from tests.unit.running_shell import held
from tests.waiting import eventually


class Ports:
    """Which ports are down or slow, as switches would have it; delays are what this kernel has not."""

    def __init__(self) -> None:
        self.down: set[PortRef] = set()
        self.slow: dict[PortRef, PortLimit] = {}
        self.agents = {"h1", "h2"}
        self.reported: list[FaultBegan | FaultEnded] = []
        self.away: set[int] = set()
        """Switches."""
        self.gone: set[PortRef] = set()

    def names(self) -> FabricNames:
        return FabricNames(snapshot())

    def set_limits(self, limits: Mapping[PortRef, PortLimit]) -> None:
        self.slow = dict(limits)

    def wait_ports(self, ports: Collection[PortRef], timeout_s: float) -> list[str]:
        assert timeout_s > 0
        return ["no netem"] if any(self.slow.get(port, PortLimit()).delay_us for port in ports) else []

    def crash_agent(self, host: str) -> None:
        self.agents.remove(host)

    def set_ports(self, ports: Iterable[PortRef], up: bool) -> PortsLeftOut:
        away = frozenset(port for port in ports if port.dpid in self.away)
        missing = (frozenset(ports) - away) & self.gone
        for port in set(ports) - away - missing:
            assert (port in self.down) == up, "set once each way"
            (self.down.discard if up else self.down.add)(port)
        return PortsLeftOut(away, missing)


@pytest.fixture
def ports() -> Ports:
    return Ports()


def made(tmp_path: Path, ports: Ports) -> Faults:
    return Faults(tmp_path / "faults.json", ports, ports.reported.append)


def test_a_link_goes_down_at_its_upper_end_and_comes_back(tmp_path: Path, ports: Ports) -> None:
    faults = made(tmp_path, ports)
    fault = faults.begin("link-down", "a9-l1")
    assert (fault.target, ports.down) == ("l1-a9", {PortRef(9, 1)})
    with pytest.raises(FaultConflictError, match="l1-a9 is down already"):
        faults.begin("link-down", "l1-a9")
    access = faults.begin("link-down", "h1-l1")
    assert ports.down == {PortRef(9, 1), PortRef(1, 7)}, "the switch's end of a host's link"
    assert faults.end(fault.id) == fault
    assert [one.id for one in faults.all()] == [access.id]
    assert [type(one) for one in ports.reported] == [FaultBegan, FaultBegan, FaultEnded]
    with pytest.raises(FaultError, match="no fault 1"):
        faults.end(fault.id)


def test_what_another_fault_holds_down_stays_down(tmp_path: Path, ports: Ports) -> None:
    faults = made(tmp_path, ports)
    link = faults.begin("link-down", "l1-a9")
    switch = faults.begin("switch-down", "a9")
    assert ports.down == {PortRef(9, 1), PortRef(9, 2), PortRef(9, 3)}
    faults.end(switch.id)
    assert ports.down == {PortRef(9, 1)}
    faults.begin("switch-down", "a9")
    faults.end(link.id)
    assert len(ports.down) == 3


def test_faults_outlive_the_controller(tmp_path: Path, ports: Ports) -> None:
    fault = made(tmp_path, ports).begin("switch-down", "l1")
    again = made(tmp_path, ports)
    assert again.all() == [fault]
    assert again.held_down(1) == [PortRef(1, 1), PortRef(1, 2), PortRef(1, 7)]
    assert again.held_down(9) == []
    assert again.begin("link-down", "l2-a9").id == fault.id + 1
    again.end(fault.id)
    assert ports.down == {PortRef(9, 3)}


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [
                *(("link-down", link) for link in ("l1-a9", "l2-a9", "h1-l1")),
                *(("switch-down", switch) for switch in ("a9", "l1")),
                *(("end", number) for number in "0111"),
                *((what, dpid) for what in ("away", "back") for dpid in "19"),
                ("restart", ""),
            ]
        ),
        max_size=30,
    )
)
def test_ports_are_down_just_while_faults_hold_them_wherever_switches_are(
    tmp_path_factory: pytest.TempPathFactory, happens: list[tuple[str, str]]
) -> None:
    ports, directory = Ports(), tmp_path_factory.mktemp("faults")
    faults = made(directory, ports)

    def back(dpid: int) -> None:
        """Set ports as `RunningController` does where a switch has come back."""
        ports.away.discard(dpid)
        for some, up in ((faults.held_down(dpid), False), (faults.let_go(dpid), True)):
            ports.set_ports([port for port in some if (port in ports.down) == up], up)

    for what, target in happens:
        if what == "link-down" or what == "switch-down":
            with contextlib.suppress(FaultConflictError):
                faults.begin(what, target)  # type: ignore[arg-type]
        elif what == "end" and faults.all():
            faults.end(faults.all()[int(target) % len(faults.all())].id)
        elif what == "away":
            ports.away.add(int(target))
        elif what == "back":
            back(int(target))
        elif what == "restart":
            faults = made(directory, ports)
        held = {port for fault in faults.all() for port in fault.ports}
        here = {port for port in held | ports.down if port.dpid not in ports.away}
        assert ports.down & here == held & here
    for dpid in tuple(ports.away):
        back(dpid)
    assert ports.down == {port for fault in faults.all() for port in fault.ports}


def test_a_fault_that_cannot_be_kept_is_not_made_and_none_is_ended(tmp_path: Path, ports: Ports) -> None:
    faults = made(tmp_path, ports)
    link = faults.begin("link-down", "l1-a9")
    down, full = set(ports.down), tmp_path / "faults.new"
    full.symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left on device"):
        faults.begin("switch-down", "l1")
    with pytest.raises(OSError, match="No space left on device"):
        faults.end(link.id)
    assert (faults.all(), ports.down) == ([link], down)
    full.unlink()
    with pytest.raises(FaultConflictError):
        faults.begin("slow-link", "l1-a9", None, 5.0)
    assert made(tmp_path, ports).all() == [link], "what could not be made is not kept"
    faults.end(link.id)
    assert made(tmp_path, ports).all() == []


def test_a_slow_link_is_slow_at_both_ends_and_only_then(tmp_path: Path, ports: Ports) -> None:
    faults = made(tmp_path, ports)
    slow = faults.begin("slow-link", "a9-l1", 0.5)
    assert ports.slow == {PortRef(1, 1): PortLimit(500_000), PortRef(9, 1): PortLimit(500_000)}
    with pytest.raises(FaultConflictError, match="l1-a9 is slow already: end that fault first"):
        faults.begin("slow-link", "l1-a9", 2.0)
    access = faults.begin("slow-link", "h1-l1", 3.0)
    assert ports.slow[PortRef(1, 7)] == PortLimit(3_000_000)
    assert ports.down == set()
    assert made(tmp_path, ports).limits() == ports.slow, "as a controller that starts again knows it"
    faults.end(slow.id)
    assert set(ports.slow) == {PortRef(1, 7)}
    faults.end(access.id)
    assert ports.slow == {}


def test_what_cannot_be_made_slow_stays_as_it_was(tmp_path: Path, ports: Ports) -> None:
    faults = made(tmp_path, ports)
    first = faults.begin("slow-link", "h1-l1", 3.0)
    before = dict(ports.slow)
    with pytest.raises(FaultConflictError, match="l1-a9 cannot be made slower: no netem"):
        faults.begin("slow-link", "l1-a9", None, 5.0)
    assert ports.slow == before
    assert faults.all() == [first]
    assert len(ports.reported) == 1


def test_an_agent_stays_down_until_its_fault_ends(tmp_path: Path, ports: Ports) -> None:
    faults = made(tmp_path, ports)
    fault = faults.begin("agent-down", "h1")
    assert ports.agents == {"h2"}
    assert (faults.holds_agent("h1"), faults.holds_agent("h2")) == (True, False)
    with pytest.raises(FaultConflictError, match="h1 is down already"):
        faults.begin("agent-down", "h1")
    with pytest.raises(FaultError, match="no agent 'h9' that is connected"):
        faults.begin("agent-down", "h9")
    assert made(tmp_path, ports).holds_agent("h1")
    faults.end(fault.id)
    assert not faults.holds_agent("h1")


def test_a_host_whose_agent_is_down_has_its_name_after_a_restart(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    member = Member("h1", "10.0.1.1", "00:00:00:00:01:01", ("10.128.1.1",), 7, "0.2.0")
    write_members(tmp_path / "members.json", [member])
    keep(tmp_path, Fault(1, "agent-down", "h1", 0.0))
    with api_world(tmp_path) as world:
        (host,) = eventually(lambda: world.get("/fabric")["hosts"], "the host")
        assert host["name"] == "h1"
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == []


def keep(directory: Path, *faults: Fault) -> None:
    """Write the file of a controller that had these faults."""
    document = {"faults": [asdict(fault) for fault in faults], "to_raise": []}
    (directory / "faults.json").write_text(json.dumps(document))


class Raised(RawSwitch):
    """It keeps which ports it was asked to take down and up."""

    def __init__(self, controller_port: int) -> None:
        self.taken_down: list[int] = []
        self.raised: list[int] = []
        super().__init__(controller_port, 1)

    def _answer(self, kind: int, xid: int, one: bytes) -> bytes:
        if kind == ofp.OFPT_PORT_MOD:
            number, config, mask = struct.unpack("!8xI4x6x2xII", one[:32])
            assert mask == ofp.OFPPC_PORT_DOWN
            (self.taken_down if config else self.raised).append(number)
        return super()._answer(kind, xid, one)


@pytest.mark.parametrize("restarts", [False, True])
def test_a_switch_that_was_away_when_its_fault_ended_gets_its_ports_back(
    tmp_path: Path, restarts: bool
) -> None:
    fault = Fault(1, "switch-down", "l1", 0.0, (PortRef(1, 1), PortRef(1, 2)))
    keep(tmp_path, fault)
    with contextlib.ExitStack() as stack:
        world = stack.enter_context(api_world(tmp_path))
        world.ask("DELETE", "/faults/1")
        if restarts:
            stack.pop_all().close()
            world = stack.enter_context(api_world(tmp_path))
        with contextlib.closing(Raised(world.running.shell.port)) as switch:
            eventually(lambda: switch.raised == [1, 2], "both ports")
        with contextlib.closing(Raised(world.running.shell.port)) as switch:
            eventually(lambda: ofp.OFPT_BUNDLE_ADD_MESSAGE in switch.received, "its state")
            assert switch.raised == []


def test_a_port_that_is_gone_leaves_the_others_to_their_fault(tmp_path: Path) -> None:
    """Of three ports that were down, the switch has come back without the first."""
    fault = Fault(1, "switch-down", "l1", 0.0, (PortRef(1, 9), PortRef(1, 1), PortRef(1, 2)))
    keep(tmp_path, fault)
    with api_world(tmp_path) as world:
        world.ask("DELETE", "/faults/1")
        with contextlib.closing(Raised(world.running.shell.port)) as switch:
            eventually(lambda: switch.raised == [1, 2], "the ports that are there")
            left_out = world.running.set_ports((PortRef(1, 9), PortRef(1, 2), PortRef(2, 1)), True)
            assert left_out == PortsLeftOut(frozenset({PortRef(2, 1)}), frozenset({PortRef(1, 9)}))
            eventually(lambda: switch.raised == [1, 2, 2], "the port after it")
            assert switch.taken_down == []
            assert "faults" not in world.running.shell.counters()


def test_ports_that_were_not_taken_down_in_time_stay_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fault is dropped then: there is none to end."""
    call = PostedCalls.call

    def briefly(posted: PostedCalls, work: Callable[[], Any], timeout_s: float, **how: bool) -> Any:
        return call(posted, work, 0.1, **how)

    with api_world(tmp_path) as world, contextlib.closing(Raised(world.running.shell.port)) as switch:
        shell = world.running.shell
        assert isinstance(shell, OpenFlowShell)
        eventually(lambda: ofp.OFPT_BUNDLE_ADD_MESSAGE in switch.received, "its state")
        with monkeypatch.context() as patched, held(shell):
            patched.setattr(PostedCalls, "call", briefly)
            with pytest.raises(TimeoutError):
                world.running.set_ports((PortRef(1, 1),), False)
        world.running.set_ports((PortRef(1, 2),), False)
        eventually(lambda: switch.taken_down, "the other port")
        assert switch.taken_down == [2]


def test_a_fault_ends_where_a_port_of_it_is_gone(tmp_path: Path) -> None:
    """The bridge was made anew with fewer ports."""
    keep(tmp_path, Fault(1, "switch-down", "l1", 0.0, (PortRef(1, 9), PortRef(1, 1), PortRef(1, 2))))
    with api_world(tmp_path) as world, contextlib.closing(Raised(world.running.shell.port)) as switch:
        eventually(lambda: switch.taken_down == [1, 2], "the ports that are there")
        assert world.ask("DELETE", "/faults/1") == {"ended": 1}
        eventually(lambda: sorted(switch.raised) == [1, 2], "both ports")
        assert world.get("/faults")["faults"] == []
    assert json.loads((tmp_path / "faults.json").read_text()) == {"faults": [], "to_raise": []}


def test_a_link_whose_port_is_gone_cannot_be_taken_down_and_a_switch_can(
    tmp_path: Path, ports: Ports
) -> None:
    faults = made(tmp_path, ports)
    ports.gone = {PortRef(9, 1)}
    with pytest.raises(FaultConflictError, match="l1-a9 cannot be taken down: its ports are gone"):
        faults.begin("link-down", "l1-a9")
    assert made(tmp_path, ports).all() == []
    switch = faults.begin("switch-down", "a9")
    assert ports.down == {PortRef(9, 2), PortRef(9, 3)}
    faults.end(switch.id)
    assert ports.down == set()


@pytest.mark.parametrize(
    "text",
    ["", "[]x", "[]", '{"faults": [{"id": 1}]}', '{"faults": [{"id": 1, "ports": 5}]}', '{"faults": []}'],
)
def test_a_file_that_cannot_be_read_is_no_reason_not_to_start(
    tmp_path: Path, ports: Ports, text: str
) -> None:
    (tmp_path / "faults.json").write_text(text)
    assert made(tmp_path, ports).all() == []


def test_by_the_api(tmp_path: Path) -> None:
    with api_world(tmp_path) as world:
        assert world.get("/faults") == {"faults": [], "possible": True}
        said = world.ask("POST", "/faults", 404, json={"kind": "link-down", "target": "l1-s1"})
        assert (said["detail"], said["field"]) == ("there is no link 'l1-s1'; there are none", "body.target")
        world.ask("POST", "/faults", 404, json={"kind": "switch-down", "target": "s1"})
        for body in (
            {"kind": "fire", "target": "l1"},
            {"kind": "link-down"},
            {"kind": "link-down", "target": 3},
            {"kind": "link-down", "target": "l1-s1", "rate_mbps": 1.0},
            {"kind": "agent-down", "target": "h1", "delay_ms": 1.0},
            {"kind": "slow-link", "target": "l1-s1"},
            {"kind": "slow-link", "target": "l1-s1", "delay_ms": 0},
            {"kind": "slow-link", "target": "l1-s1", "rate_mbps": 0},
            {"kind": "slow-link", "target": "l1-s1", "rate_mbps": "fast"},
        ):
            world.ask("POST", "/faults", 422, json=body)
        world.ask("POST", "/faults", 404, json={"kind": "slow-link", "target": "l1-s1", "rate_mbps": 1.5})
        world.ask("POST", "/faults", 404, json={"kind": "agent-down", "target": "h1"})
        world.ask("DELETE", "/faults/7", 404)


def test_outside_labs_there_are_none(tmp_path: Path) -> None:
    with api_world(tmp_path, lab=False) as world:
        assert world.get("/faults")["possible"] is False
        said = world.ask("POST", "/faults", 403, json={"kind": "link-down", "target": "l1-s1"})
        assert "in labs only" in said["detail"]
        world.ask("DELETE", "/faults/1", 403)


def test_restarts_of_parts_become_events(tmp_path: Path) -> None:
    said = {"part": "agent h3", "how": "signal 9", "after_s": 0.41}
    with api_world(tmp_path) as world:
        assert world.ask("POST", "/lab/restarts", 201, json=said) == said
        (event,) = [one for one in world.get("/events")["events"] if one["kind"] == "part-restarted"]
        assert said.items() <= event.items()
        world.ask("POST", "/lab/restarts", 422, json=said | {"after_s": -1})
    with api_world(tmp_path / "other", lab=False) as world:
        assert "in labs only" in world.ask("POST", "/lab/restarts", 403, json=said)["detail"]
