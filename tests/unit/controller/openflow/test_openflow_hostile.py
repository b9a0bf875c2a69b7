"""Peers that are no honest switches, against a running shell and control plane: they harm only themselves."""

from __future__ import annotations

import contextlib
import os
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from os_ken.ofproto import ofproto_v1_5 as ofp

from controller import control_plane
from controller.control_plane import ControlPlane
from controller.openflow import listener
from controller.openflow.allowed import AllowedSwitches, AllowedSwitchesError, read_allowed_switches
from controller.openflow.cookies import Rule
from controller.openflow.inventory import MOST_GENERATIONS
from controller.openflow.listener import PAUSE_S
from controller.openflow.packet_allowance import BURST, MOST_PPS
from controller.openflow.session import MOST_ERRORS
from controller.openflow.tables import Table
from controller.openflow.wanted import Difference, FlowRule, Match, Output
from controller.plane import isolated
from controller.plane.effects import Effects, PacketOut, SwitchTurnedAway
from controller.plane.snapshot import SwitchInfo
from controller.process.control_thread import check_control_threads, forget_deaths
from controller.rare_log import BURST as BURST_OF_LINES
from controller.shell.shell import OpenFlowShell
from controller.shell.shell_events import SwitchRefused
from controller.shell.update_results import MOST_EVENTS, MOST_LINES
from tests.unit.raw_switch import RawSwitch, raw_switch
from tests.unit.switch_messages import features, flow_description, hello, message, multipart, packet_in
from tests.waiting import eventually

GOOD, ROGUE = 0x11, 0x666
ROOT = Path(__file__).resolve().parents[4]


@dataclass
class Control:
    """A running shell over a real control plane."""

    plane: ControlPlane = field(default_factory=lambda: ControlPlane(b"0123456789abcdef"))
    events: list[object] = field(default_factory=list)
    allowed: AllowedSwitches | None = None

    def __post_init__(self) -> None:
        self.shell = OpenFlowShell(
            self.plane, "127.0.0.1", 0, on_event=self.events.append, allowed=self.allowed
        )
        self.shell.start()

    def switches(self) -> dict[int, SwitchInfo]:
        return {one.dpid: one for one in self.shell.call(self.plane.snapshot).switches}

    def connected(self) -> set[int]:
        return {dpid for dpid, one in self.switches().items() if one.connected}

    def counter(self, name: str) -> int:
        return self.shell.counters().get(name, 0)


@pytest.fixture
def control() -> Iterator[Control]:
    made = Control()
    yield made
    made.shell.stop()
    try:
        check_control_threads()
    finally:
        forget_deaths()


def test_a_second_datapath_id_is_refused_and_good_switches_stay(control: Control) -> None:
    with raw_switch(control.shell.port, GOOD), raw_switch(control.shell.port, ROGUE) as rogue:
        eventually(lambda: control.connected() == {GOOD, ROGUE}, "both switches")
        rogue.send(features(2, 0x667))
        rogue.closed.wait(60)
        eventually(lambda: control.connected() == {GOOD}, "the rogue's end")
        assert control.counter("refused-peers") == 1
    eventually(lambda: control.connected() == set(), "the end of both")
    assert set(control.switches()) == {GOOD, ROGUE}


@pytest.mark.parametrize("again", [features(2, ROGUE), hello(6)], ids=["features", "hello"])
def test_a_second_handshake_leaves_no_ghost(control: Control, again: bytes) -> None:
    with raw_switch(control.shell.port, ROGUE) as rogue:
        eventually(lambda: control.connected() == {ROGUE}, "the switch")
        rogue.send(again)
        rogue.closed.wait(60)
    eventually(lambda: control.connected() == set(), "nothing that counts as connected")


def test_replies_that_were_not_asked_for_are_counted_and_forgotten(control: Control) -> None:
    with raw_switch(control.shell.port, ROGUE) as rogue:
        eventually(lambda: control.connected() == {ROGUE}, "the switch")
        for xid in range(1000, 1100):
            rogue.send(multipart(ofp.OFPMP_PORT_DESC, xid, bytes(60_000), more=True))
        eventually(lambda: control.counter("unasked-replies") == 100, "the count")
        rogue.send(message(ofp.OFPT_ECHO_REQUEST, 7))
        eventually(lambda: ofp.OFPT_ECHO_REPLY in rogue.received, "an answer")
        assert control.connected() == {ROGUE}


def test_at_the_limit_only_the_surplus_switch_is_closed(
    control: Control, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    monkeypatch.setattr(control_plane, "MOST_SWITCHES", 2)
    with raw_switch(control.shell.port, GOOD), raw_switch(control.shell.port, 0x12):
        eventually(lambda: control.connected() == {GOOD, 0x12}, "both switches")
        with raw_switch(control.shell.port, ROGUE) as surplus:
            surplus.closed.wait(60)
        assert control.connected() == {GOOD, 0x12}
        assert control.counter("turned-away") == 1
        assert "it is turned away: 2 switches are known already" in caplog.text


def test_a_switch_without_room_is_not_asked_for_what_it_has(
    control: Control, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(isolated, "MOST_ISOLATED", 1)
    with raw_switch(control.shell.port, GOOD):
        eventually(lambda: control.connected() == {GOOD}, "the switch")
        with raw_switch(control.shell.port, ROGUE) as surplus:
            surplus.closed.wait(60)
        assert ofp.OFPT_FEATURES_REQUEST in surplus.received
        assert ofp.OFPT_MULTIPART_REQUEST not in surplus.received
        assert control.counter("turned-away") == 1
        assert [event.dpid for event in control.events if isinstance(event, SwitchTurnedAway)] == [ROGUE]
        assert control.connected() == {GOOD}


ARP_FRAME = bytes.fromhex(
    "ffffffffffff 020000000001 0806 0001 0800 06 04 0001 020000000001 0a000101 000000000000 0a000102"
)


@pytest.mark.slow
def test_a_flood_of_arp_neither_grows_memory_nor_stops_lldp(control: Control) -> None:
    flood = packet_in(1, Rule.ARP, ARP_FRAME) * 2000
    with raw_switch(control.shell.port, GOOD) as good, raw_switch(control.shell.port, ROGUE) as rogue:
        eventually(lambda: control.connected() == {GOOD, ROGUE}, "both switches")
        eventually(
            lambda: good.received.count(ofp.OFPT_PACKET_OUT) >= 8, "the first LLDP frames of its ports"
        )
        before = good.received.count(ofp.OFPT_PACKET_OUT)
        over, began = threading.Event(), time.monotonic()

        def send() -> None:
            while not over.is_set():
                rogue.send(flood)

        sender = threading.Thread(target=send)
        sender.start()
        try:
            eventually(lambda: control.counter("read-pauses") > 3, "pauses in which it is not read")
            eventually(
                lambda: good.received.count(ofp.OFPT_PACKET_OUT) >= before + 4, "LLDP in the midst of it"
            )
        finally:
            over.set()
            sender.join()
        assert control.connected() >= {GOOD}
        assert control.counter("packet-ins") <= BURST + MOST_PPS * (time.monotonic() - began) + 16_384 / 60


def test_a_live_switch_is_not_displaced_by_another_with_its_id(control: Control) -> None:
    with raw_switch(control.shell.port, GOOD) as good:
        eventually(lambda: control.connected() == {GOOD}, "the switch")
        # of one bundle, which is opened and committed
        eventually(lambda: good.received.count(ofp.OFPT_BUNDLE_CONTROL) == 2, "its state")
        held = good.received.count(ofp.OFPT_BUNDLE_ADD_MESSAGE)
        assert held > 0
        with raw_switch(control.shell.port, GOOD) as thief:
            thief.closed.wait(60)
            assert ofp.OFPT_BUNDLE_ADD_MESSAGE not in thief.received
        assert control.connected() == {GOOD}
        assert not good.closed.is_set()
        assert held == good.received.count(ofp.OFPT_BUNDLE_ADD_MESSAGE), "its state stays as it is"
        [event] = [event for event in control.events if isinstance(event, SwitchTurnedAway)]
        assert "is connected already, from 127.0.0.1:" in event.reason
        assert control.counter("turned-away") == 1


def test_a_dead_connection_makes_room_for_the_same_switch_soon(control: Control) -> None:
    with raw_switch(control.shell.port, GOOD) as dead:
        eventually(lambda: control.connected() == {GOOD}, "the switch")
        dead.answers_echo = False
        with raw_switch(control.shell.port, GOOD) as again:
            dead.closed.wait(60)
            eventually(lambda: ofp.OFPT_BUNDLE_ADD_MESSAGE in again.received, "its state")
            assert control.connected() == {GOOD}
            assert not again.closed.is_set()
    eventually(lambda: control.connected() == set(), "the end of both")


def test_a_third_connection_of_one_switch_does_not_wait(control: Control) -> None:
    with raw_switch(control.shell.port, GOOD) as dead:
        eventually(lambda: control.connected() == {GOOD}, "the switch")
        dead.answers_echo = False
        with raw_switch(control.shell.port, GOOD) as again, raw_switch(control.shell.port, GOOD) as third:
            eventually(lambda: again.closed.is_set() or third.closed.is_set(), "one of them to be closed")
            eventually(dead.closed.is_set, "the dead one to be closed")
            assert again.closed.is_set() != third.closed.is_set()


def test_only_switches_of_the_list_may_connect(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    file = tmp_path / "switches"
    file.write_text(f"# ours\n{GOOD:016x}  # l1\n0x12\n")
    made = Control(allowed=read_allowed_switches(file))
    try:
        with raw_switch(made.shell.port, GOOD), raw_switch(made.shell.port, 0x13) as rogue:
            rogue.closed.wait(60)
            eventually(lambda: made.connected() == {GOOD}, "the switch of the list")
        assert set(made.switches()) == {GOOD}
        assert "datapath id 0000000000000013 is not in" in caplog.text
        assert "did you mean it by 000000000000001" in caplog.text
    finally:
        made.shell.stop()


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("l1\n", r"switches:1: 'l1' is not a datapath id; write up to 16 hex digits"),
        ("1\n\n00000000000000001\n", "switches:3: '00000000000000001' is no"),
        ("1\n# two\n0x01\n", "switches:3: 0x01 is in line 1 already"),
        ("1 l1\n2 l2 l3\n", "switches:2: 'l3' is too much; write a datapath id, and a certificate's name"),
        ("# none\n", "names no switch"),
    ],
)
def test_a_list_that_cannot_be_used_says_where_and_why(tmp_path: Path, text: str, error: str) -> None:
    file = tmp_path / "switches"
    file.write_text(text)
    with pytest.raises(AllowedSwitchesError, match=error):
        read_allowed_switches(file)


LIMITED = """
import logging, resource, sys
logging.basicConfig(level="ERROR", format="%(message)s")
from controller.control_plane import ControlPlane
from controller.shell.shell import OpenFlowShell

shell = OpenFlowShell(ControlPlane(b"0123456789abcdef"), "127.0.0.1", 0, on_event=lambda event: None)
shell.start()
print(shell.port, flush=True)
spare = open("/dev/null")
for line in sys.stdin:
    if line == "none left\\n":  # the next descriptor would be one too many
        resource.setrlimit(resource.RLIMIT_NOFILE, (spare.fileno() + 1, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    elif line == "enough\\n":
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    counters = shell.counters()
    print(counters.get("accept-pauses", 0), counters.get("connections", 0), flush=True)
shell.stop()
"""


@pytest.mark.slow
def test_without_descriptors_it_waits_and_goes_on_when_there_are_some() -> None:
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", LIMITED],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )

    def ask(what: str) -> tuple[int, int]:
        """Send *what*; return the pauses until now and the connections that were accepted."""
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(what + "\n")
        process.stdin.flush()
        pauses, accepted = process.stdout.readline().split()
        return int(pauses), int(accepted)

    try:
        assert process.stdout is not None
        number = int(process.stdout.readline())
        assert ask("none left") == (0, 0)
        began = time.monotonic()
        with raw_switch(number, GOOD):
            eventually(lambda: ask("how many?")[0] >= 3, "attempts to accept it")
            assert time.monotonic() - began >= 2 * PAUSE_S
            ask("enough")
            eventually(lambda: ask("how many?")[1] == 1, "the switch that waited")
        assert process.stdin is not None
        process.stdin.close()
        process.wait(60)
        assert process.stderr is not None
        lines = process.stderr.read().splitlines()
        assert lines[0] == "cannot accept a switch's connection: Too many open files"
        assert len(lines) == 1
    finally:
        process.kill()
        process.wait()


def test_connections_that_say_nothing_keep_no_switch_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "MOST_CONNECTIONS", 4)
    control = Control()
    with contextlib.ExitStack() as stack:
        stack.callback(control.shell.stop)
        silent = [stack.enter_context(raw_switch(control.shell.port, 1, silent=True)) for _ in range(9)]
        eventually(lambda: control.counter("refused-connections") == 5, "the oldest ones to be closed")
        for number in range(4):
            stack.enter_context(raw_switch(control.shell.port, 0x20 + number))
            eventually(lambda n=number: 0x20 + n in control.connected(), "a switch")
        assert all(one.closed.wait(60) for one in silent)
        surplus = stack.enter_context(raw_switch(control.shell.port, 0x30))
        surplus.closed.wait(60)
        assert control.connected() == {0x20, 0x21, 0x22, 0x23}


def test_a_flow_description_that_cannot_be_harms_only_its_own_connection(control: Control) -> None:
    deliver = FlowRule(Table.DELIVER, 1, Match(), (Output(4),), cookie=Rule.DELIVER)
    flow = bytearray(flow_description(deliver, 5))  # its action's length: 0
    struct.pack_into("!H", flow, len(flow) - 16 + 2, 0)
    with (
        raw_switch(control.shell.port, GOOD),
        raw_switch(control.shell.port, ROGUE, flows=bytes(flow)) as rogue,
    ):
        rogue.closed.wait(60)
        eventually(lambda: control.connected() == {GOOD}, "the good switch")
        assert control.counter("refused-peers") == 1
        assert set(control.switches()) == {GOOD}


@pytest.mark.parametrize(("generations", "stays"), [(MOST_GENERATIONS, True), (MOST_GENERATIONS + 1, False)])
def test_entries_of_more_generations_than_any_switch_has_are_refused(
    control: Control, generations: int, stays: bool
) -> None:
    entry = FlowRule(Table.DELIVER, 1, Match())
    flows = b"".join(flow_description(entry, generation) for generation in range(1, generations + 1))
    with raw_switch(control.shell.port, GOOD), raw_switch(control.shell.port, ROGUE, flows=flows) as rogue:
        if stays:
            eventually(lambda: ofp.OFPT_BUNDLE_ADD_MESSAGE in rogue.received, "its state")
        else:
            rogue.closed.wait(60)
            eventually(lambda: control.counter("refused-peers") == 1, "its refusal")
        eventually(lambda: control.connected() == ({GOOD, ROGUE} if stays else {GOOD}), "who stays")
        assert control.counter("faults") == 0


def test_an_update_that_cannot_be_sent_ends_only_its_own_connection(
    control: Control, caplog: pytest.LogCaptureFixture
) -> None:
    unsayable = Difference(add_flows=(FlowRule(Table.DELIVER, 1, Match(), (Output(1 << 40),)),))
    sayable = Difference(add_flows=(FlowRule(Table.DELIVER, 1, Match(), (Output(1),)),))
    with raw_switch(control.shell.port, GOOD) as good, raw_switch(control.shell.port, ROGUE) as rogue:
        eventually(lambda: control.connected() == {GOOD, ROGUE}, "both switches")
        control.shell.wait_applied(60)
        before = good.received.count(ofp.OFPT_BUNDLE_ADD_MESSAGE)
        seen = SwitchTurnedAway(0.0, 1, "an event of the same effects")
        effects = Effects(
            updates={ROGUE: unsayable, GOOD: sayable},
            packet_outs=(PacketOut(GOOD, 1, b"last"),),
            events=(seen,),
        )
        control.shell.post(lambda: effects)
        rogue.closed.wait(60)
        eventually(lambda: good.received.count(ofp.OFPT_BUNDLE_ADD_MESSAGE) > before, "the other's update")
        eventually(lambda: seen in control.events, "the event")
        eventually(lambda: control.connected() == {GOOD}, "the good switch")
    assert "an update of switch 0x666 cannot be sent" in caplog.text


class Refusing(RawSwitch):
    """It refuses every part of every bundle."""

    def _answer(self, kind: int, xid: int, one: bytes) -> bytes:
        if kind == ofp.OFPT_BUNDLE_ADD_MESSAGE:
            return message(ofp.OFPT_ERROR, xid, struct.pack("!HH", ofp.OFPET_BAD_MATCH, 0) + one[:64])
        return super()._answer(kind, xid, one)


def test_a_switch_that_refuses_all_does_not_fill_the_log(
    control: Control, caplog: pytest.LogCaptureFixture
) -> None:
    rogue = Refusing(control.shell.port, ROGUE)
    with contextlib.closing(rogue):
        rogue.closed.wait(60)
        eventually(lambda: control.connected() == set(), "its end")
    refused = control.counter("refused")
    assert refused == min(MOST_ERRORS, rogue.received.count(ofp.OFPT_BUNDLE_ADD_MESSAGE)) > 2 * MOST_LINES
    lines = [record.message for record in caplog.records if "refused" in record.message]
    assert len(lines) == MOST_LINES + 1
    assert lines[-1] == f"switch {ROGUE:#x} refused {refused - MOST_LINES} more parts of this update at least"


def test_errors_that_a_switch_invents_fill_neither_the_log_nor_the_events(
    control: Control, caplog: pytest.LogCaptureFixture
) -> None:
    invented = message(ofp.OFPT_ERROR, 0, struct.pack("!HH", ofp.OFPET_BAD_MATCH, 0))
    count = MOST_EVENTS + 300
    with raw_switch(control.shell.port, ROGUE) as rogue:
        eventually(lambda: control.connected() == {ROGUE}, "the switch")
        control.shell.wait_applied(60)
        began = time.monotonic()
        rogue.send(invented * count)
        eventually(lambda: control.counter("refused") == count, "all of them")
        took = time.monotonic() - began
    assert len([event for event in control.events if isinstance(event, SwitchRefused)]) <= MOST_EVENTS + took
    assert len([record for record in caplog.records if "refused" in record.message]) <= BURST_OF_LINES + took
