"""Second connections of switches that are connected, several at once: each is judged alone."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Iterator

import pytest
from os_ken.ofproto import ofproto_v1_5 as ofp

from controller.control_plane import ControlPlane
from controller.openflow import newcomers
from controller.openflow.reading import HEADER
from controller.plane import isolated
from controller.plane.effects import SwitchTurnedAway
from controller.process.control_thread import check_control_threads, forget_deaths
from controller.shell import shell as shell_module
from controller.shell.shell import OpenFlowShell
from tests.unit.raw_switch import RawSwitch, raw_switch
from tests.unit.running_shell import held, running_shell
from tests.unit.switch_messages import message
from tests.waiting import eventually

FIRST, SECOND = 0x11, 0x12


@pytest.fixture
def plane() -> ControlPlane:
    return ControlPlane(b"0123456789abcdef")


@pytest.fixture
def shell(plane: ControlPlane) -> Iterator[OpenFlowShell]:
    with running_shell(plane) as made:
        yield made
    try:
        check_control_threads()
    finally:
        forget_deaths()


class Hesitating(RawSwitch):
    """It answers echo requests when a test has it do so."""

    def __init__(self, controller_port: int, dpid: int, ports: int) -> None:
        self.unanswered: list[bytes] = []
        super().__init__(controller_port, dpid, ports=ports)

    def answer(self) -> None:
        for request in self.unanswered:
            _, _, _, xid = HEADER.unpack_from(request)
            self.send(message(ofp.OFPT_ECHO_REPLY, xid, request[HEADER.size :]))

    def _answer(self, kind: int, xid: int, one: bytes) -> bytes:
        if kind == ofp.OFPT_ECHO_REQUEST:
            self.unanswered.append(one)
            return b""
        return super()._answer(kind, xid, one)


def test_an_error_about_a_second_connection_ends_no_thread(plane: ControlPlane) -> None:
    def fail(event: object) -> None:
        if isinstance(event, SwitchTurnedAway):
            raise ValueError("of ours")

    shell = OpenFlowShell(plane, "127.0.0.1", 0, on_event=fail)
    shell.start()
    try:
        with raw_switch(shell.port, FIRST):
            eventually(lambda: shell.call(plane.snapshot).switches, "the switch")
            with raw_switch(shell.port, FIRST) as again:
                eventually(again.closed.is_set, "its refusal")
            eventually(lambda: shell.counters().get("faults") == 1, "the error")
            assert shell.call(plane.snapshot).switches
    finally:
        shell.stop()
        forget_deaths()


def test_a_switch_that_is_let_in_may_end_another_whose_second_connection_is_refused(
    plane: ControlPlane, shell: OpenFlowShell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(isolated, "GRACE_S", 0.0)
    monkeypatch.setattr(isolated, "MOST_ISOLATED_PORTS", 8)
    monkeypatch.setattr(newcomers, "PROBE_S", 3600.0)
    monkeypatch.setattr(shell_module, "READ_FOR_S", 3600.0)  # all that is ready is read at one look

    def connected() -> set[int]:
        return {switch.dpid for switch in shell.call(plane.snapshot).switches if switch.connected}

    with contextlib.ExitStack() as stack:
        first, second = (Hesitating(shell.port, dpid, ports) for dpid, ports in ((FIRST, 4), (SECOND, 2)))
        stack.callback(first.close)
        stack.callback(second.close)
        eventually(lambda: connected() == {FIRST, SECOND}, "both switches")
        first_again = stack.enter_context(raw_switch(shell.port, FIRST, ports=4))
        eventually(lambda: first.unanswered, "the probe of the first")
        second_again = stack.enter_context(raw_switch(shell.port, SECOND, ports=6))
        eventually(lambda: second.unanswered, "the probe of the second")
        with held(shell):
            first.answer()
            second.close()
        eventually(lambda: ofp.OFPT_BUNDLE_CONTROL in second_again.received, "its state")
        eventually(first_again.closed.is_set, "the refusal, for the first answered")
        eventually(first.closed.is_set, "the first's end, which made room for six ports")
        assert connected() == {SECOND}
        assert "faults" not in shell.counters()


class Withholding(RawSwitch):
    """It keeps the last part of its inventory."""

    def __init__(self, controller_port: int, dpid: int) -> None:
        self.withheld = b""
        super().__init__(controller_port, dpid)

    def _answer(self, kind: int, xid: int, one: bytes) -> bytes:
        answer = super()._answer(kind, xid, one)
        if kind == ofp.OFPT_MULTIPART_REQUEST and one[8:10] == struct.pack("!H", ofp.OFPMP_METER_STATS):
            self.withheld = answer
            return b""
        return answer


def test_a_third_connection_does_not_take_the_place_that_a_second_one_waits_for(
    plane: ControlPlane, shell: OpenFlowShell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(newcomers, "PROBE_S", 3600.0)
    monkeypatch.setattr(shell_module, "READ_FOR_S", 3600.0)
    with contextlib.closing(Hesitating(shell.port, FIRST, 2)) as dead:
        eventually(lambda: shell.call(plane.snapshot).switches, "the switch")
        with raw_switch(shell.port, FIRST) as again:
            eventually(lambda: dead.unanswered, "its probe")
            third = Withholding(shell.port, FIRST)
            with contextlib.closing(third):
                eventually(lambda: third.withheld, "the third's inventory but for its last part")
                with held(shell):
                    dead.close()
                    third.send(third.withheld)
                eventually(third.closed.is_set, "the third's refusal")
                eventually(lambda: ofp.OFPT_BUNDLE_CONTROL in again.received, "the second's state")
                assert not again.closed.is_set()


class JumpingShell(OpenFlowShell):
    """A shell whose clock a test sets forward: for so long, it thinks, it has not run."""

    ahead_s = 0.0

    @staticmethod
    def now() -> float:
        return OpenFlowShell.now() + JumpingShell.ahead_s


def test_time_in_which_nothing_was_read_is_no_silence_of_the_older_connection(
    plane: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(newcomers, "PROBE_S", 3600.0)
    monkeypatch.setattr(JumpingShell, "ahead_s", 0.0)
    with (
        running_shell(plane, JumpingShell) as shell,
        contextlib.closing(Hesitating(shell.port, FIRST, 2)) as first,
    ):
        eventually(lambda: shell.call(plane.snapshot).switches, "the switch")
        with raw_switch(shell.port, FIRST) as again:
            eventually(lambda: first.unanswered, "its probe")
            with held(shell):
                first.answer()
                monkeypatch.setattr(JumpingShell, "ahead_s", 3601.0)
            eventually(again.closed.is_set, "the second's refusal")
            assert not first.closed.is_set()
            [switch] = shell.call(plane.snapshot).switches
            assert switch.connected
