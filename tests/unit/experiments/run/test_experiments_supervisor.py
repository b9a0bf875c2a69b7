"""The supervisor with real processes: what is killed comes back, what is down on purpose stays down."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from experiments.run import supervision
from experiments.run import supervisor as module
from experiments.run.parts import PartError, ProcessPart
from experiments.run.supervision import Restart
from experiments.run.supervisor import Supervisor
from tests.waiting import eventually

LASTS = "print('begins', flush=True); import signal; signal.pause()"


def on_this_machine(host: str | None, argv: Any, **options: Any) -> subprocess.Popen[Any]:
    assert host is None
    return subprocess.Popen(argv, **options)


class Held(ProcessPart):
    """A part that a fault may keep down."""

    down = False
    was_down = False

    def held(self) -> bool:
        return self.down

    def was_held(self) -> bool:
        return self.was_down


class Read(ProcessPart):
    """A part that counts how often its supervisor looks at its process."""

    reads = 0

    @property
    def process(self) -> subprocess.Popen[Any] | None:
        self.reads += threading.current_thread().name == "capstan-supervisor"
        return super().process


def part(directory: Path, name: str, program: str = LASTS) -> Held:
    made = Held(
        name,
        on_this_machine,
        None,
        argv=[sys.executable, "-c", program],
        log=directory / f"{name}.log",
        directory=directory,
    )
    made.launch()
    return made


@contextmanager
def supervised(*parts: ProcessPart) -> Iterator[tuple[Supervisor, list[Restart]]]:
    restarts: list[Restart] = []
    supervisor = Supervisor(parts, restarts.append)
    supervisor.start()
    try:
        yield supervisor, restarts
    finally:
        supervisor.stop()
        for one in parts:
            one.end()


def pid(one: ProcessPart) -> int:
    assert one.newest is not None
    return one.newest.pid


def kill(one: ProcessPart) -> int:
    """Kill a part; return the pid that it had."""
    number = pid(one)
    os.kill(number, signal.SIGKILL)
    return number


def test_a_killed_part_is_started_again_and_the_others_stay(tmp_path: Path) -> None:
    first, second = part(tmp_path, "first"), part(tmp_path, "second")
    with supervised(first, second) as (supervisor, restarts):
        eventually(lambda: supervisor.complete)
        other = pid(second)
        for count in (1, 2):
            old = kill(first)
            eventually(lambda old=old: pid(first) != old and supervisor.complete)
            eventually(lambda count=count: len(restarts) == count)
        assert pid(second) == other
        assert [(one.part, one.how) for one in restarts] == [("first", "signal 9")] * 2
        assert all(one.after_s >= 0 for one in restarts)
        assert supervisor.deaths == 2
        assert supervisor.failure is None


@pytest.fixture
def restarts_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the first restart wait 10 ms: how long each waits is tested in test_experiments_supervision.py."""
    monkeypatch.setattr(supervision, "FIRST_WAIT_S", 0.01)


@pytest.mark.usefixtures("restarts_at_once")
def test_a_part_that_ends_again_and_again_ends_the_lab_with_its_log(tmp_path: Path) -> None:
    with supervised(part(tmp_path, "bad", "import sys; sys.exit('no such thing')")) as (supervisor, restarts):
        eventually(lambda: supervisor.failure)
        assert supervisor.failure is not None
        assert "bad ended 5 times within" in supervisor.failure
        assert "the last time: exit code 1" in supervisor.failure
        assert "no such thing" in supervisor.failure
        assert len(restarts) == 4
        assert not supervisor.complete


@pytest.mark.usefixtures("restarts_at_once")
def test_a_part_that_cannot_be_started_is_given_up(tmp_path: Path) -> None:
    one = part(tmp_path, "gone")
    with supervised(one) as (supervisor, restarts):
        eventually(lambda: supervisor.complete)

        def fail() -> None:
            raise PartError("there is no room")

        one.start = fail  # type: ignore[method-assign]
        kill(one)
        eventually(lambda: supervisor.failure)
        assert supervisor.failure is not None
        assert "it could not be started: there is no room" in supervisor.failure
        assert restarts == []


def test_what_is_ended_on_purpose_stays_down_until_it_is_launched(tmp_path: Path) -> None:
    one, watched = part(tmp_path, "one"), part(tmp_path, "watched")
    with supervised(one, watched) as (supervisor, restarts):
        one.end()
        supervisor.look_again()
        ended = pid(one)
        kill(watched)
        eventually(lambda: len(restarts) == 1)
        assert pid(one) == ended, "the supervisor has been at work since, and left it alone"
        assert supervisor.complete
        one.launch()
        supervisor.look_again()
        launched = kill(one)
        eventually(lambda: pid(one) != launched, "it is watched again")
        eventually(lambda: [restart.part for restart in restarts] == ["watched", "one"])


def test_a_part_that_is_ended_on_purpose_while_it_is_started_again_stays_down(tmp_path: Path) -> None:
    one = part(tmp_path, "one")
    real = one.start

    def ended_just_before() -> None:
        one.end()
        real()

    with supervised(one) as (supervisor, restarts):
        eventually(lambda: supervisor.complete)
        one.start = ended_just_before  # type: ignore[method-assign]
        old = kill(one)
        eventually(lambda: supervisor.deaths == 1 and supervisor.complete)
        assert not one.wanted
        assert pid(one) == old
        assert restarts == []


def test_a_fault_on_purpose_is_not_undone_nor_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "HELD_EVERY_S", 0.01)
    one = part(tmp_path, "one")
    complete: list[bool] = []
    real = one.held
    with supervised(one) as (supervisor, restarts):

        def held() -> bool:
            complete.append(supervisor.complete)
            return real()

        one.held = held  # type: ignore[method-assign]
        eventually(lambda: supervisor.complete)
        one.down = True
        old = kill(one)
        eventually(lambda: len(complete) > 5)
        assert pid(one) == old
        assert supervisor.complete, "nothing is missing that is not meant to be"
        assert not complete[0], "it is not known yet to be meant"
        assert all(complete[1:]), "nor while it is asked whether it still is"
        one.down = False
        eventually(lambda: pid(one) != old and supervisor.complete)
        assert restarts == []
        assert supervisor.deaths == 0


def test_a_fault_that_is_over_before_it_is_asked_about_is_not_counted(tmp_path: Path) -> None:
    one = part(tmp_path, "one")
    with supervised(one) as (supervisor, restarts):
        eventually(lambda: supervisor.complete)
        one.was_down = True
        old = kill(one)
        eventually(lambda: pid(one) != old and supervisor.complete)
        assert (supervisor.deaths, restarts) == (0, [])


def test_a_supervisor_that_fails_ends_the_lab(tmp_path: Path) -> None:
    def refuse(restart: Restart) -> None:
        raise ValueError("no room on the console")

    one = part(tmp_path, "one")
    supervisor = Supervisor([one], refuse)
    supervisor.start()
    try:
        eventually(lambda: supervisor.complete)
        kill(one)
        eventually(lambda: supervisor.failure)
        assert "no room on the console" in str(supervisor.failure)
    finally:
        supervisor.stop()
        one.end()


def test_nothing_is_started_once_it_has_stopped(tmp_path: Path) -> None:
    one = part(tmp_path, "one")
    with supervised(one) as (supervisor, _):
        eventually(lambda: supervisor.complete)
        supervisor.stop()
        old = kill(one)
        assert one.newest is not None
        one.newest.wait()
        supervisor.look_again()
        assert pid(one) == old


def test_it_waits_without_using_the_processor(tmp_path: Path) -> None:
    """Deaths wake it, not a clock."""
    one = Read(
        "one",
        on_this_machine,
        None,
        argv=[sys.executable, "-c", LASTS],
        log=tmp_path / "one.log",
        directory=tmp_path,
    )
    one.launch()
    with supervised(one) as (supervisor, restarts):
        eventually(lambda: supervisor.complete)
        one.reads = 0
        kill(one)
        eventually(lambda: restarts)
        assert 0 < one.reads < 10
