"""Lab 6: what is measured from a log is what was put into it; a student's own log takes the recorded one's place."""

from __future__ import annotations

import io
import runpy
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from classroom import killed_parts
from classroom.answer import AnswerError
from classroom.killed_parts import HINTS, PREDICTIONS, RECORDED, Outage, Row, measure, read_log
from classroom.labs import LABS
from tests.waiting import PATIENCE_S

PARTS = ("controller", "agent h1", "switch l2")
AFTER_S = 10.0
PINGS = 20
"""Answered in each phase; requests that are lost come before the third one."""


def log_of(lost: list[int], failed: list[int], silent: int) -> list[Row]:
    """Return a log with these losses after each kill; *silent*: polls of 0.1 s, after the controller's."""
    rows, number = [Row(0.0, "ping", "1")], 1
    for place, part in enumerate(PARTS):
        begin = AFTER_S * (place + 1)
        rows.append(Row(begin, "kill", part))
        for answered in range(PINGS):
            number += 1 + (lost[place] if answered == 2 else 0)
            rows.append(Row(begin + 0.05 * (answered + 1), "ping", str(number)))
        rows += [Row(begin + 0.2 * flow, "flow", str(int(flow >= failed[place]))) for flow in range(9)]
        away = silent if place == 0 else 0
        rows += [Row(begin + 0.1 * poll, "api", str(int(poll >= away))) for poll in range(40)]
    return rows


@pytest.mark.slow
@given(
    st.lists(st.integers(0, 30), min_size=3, max_size=3),
    st.lists(st.integers(0, 9), min_size=3, max_size=3),
    st.integers(0, 30),
    st.randoms(use_true_random=False),
)
def test_what_is_measured_is_what_was_lost(
    lost: list[int], failed: list[int], silent: int, rng: object
) -> None:
    rows = log_of(lost, failed, silent)
    rng.shuffle(rows)  # type: ignore[attr-defined]
    outages = measure(rows, RECORDED)
    assert list(outages) == ["controller", "agent", "switch"]
    for place, outage in enumerate(outages.values()):
        assert (outage.pings_lost, outage.flows_failed) == (lost[place], failed[place])
    assert outages["controller"].api_silent_s == pytest.approx(0.1 * silent)


def test_an_answer_that_is_late_after_it_is_back_is_not_the_silence() -> None:
    polls = [Row(12.5, "api", "0"), Row(13.2, "api", "1"), Row(19.8, "api", "0"), Row(20.1, "api", "1")]
    kills = [Row(12.0, "kill", "controller"), Row(30.0, "kill", "agent"), Row(40.0, "kill", "switch")]
    assert measure([*kills, *polls], RECORDED)["controller"].api_silent_s == pytest.approx(1.2)


def test_the_recorded_log_has_each_ping_once_and_lost_none_with_the_controller() -> None:
    rows = read_log(RECORDED)
    numbers = [int(row.value) for row in rows if row.what == "ping"]
    outages = measure(rows, RECORDED)
    missing = set(range(min(numbers), max(numbers) + 1)) - set(numbers)
    assert sum(outage.pings_lost for outage in outages.values()) == len(missing)
    assert outages["controller"] == Outage(0, 0, pytest.approx(1.22, abs=0.01))


def test_every_prediction_has_a_hint() -> None:
    assert {name for part in PREDICTIONS.values() for name in part} == HINTS.keys()


def write(rows: list[Row], log: Path) -> None:
    log.parent.mkdir(parents=True)
    log.write_text("at_s,what,value\n" + "".join(f"{row.at_s},{row.what},{row.value}\n" for row in rows))


def test_a_students_own_log_is_marked_by(tmp_path: Path) -> None:
    write(log_of([0, 7, 3], [0, 1, 1], 20), tmp_path / "results" / "lab6-1" / "log.csv")
    own = tmp_path / "lab6.yaml"
    own.write_text(LABS[6].solution.read_text().replace("log: recorded", "log: own"))
    found = [finding.right for finding in killed_parts.check(own, tmp_path / "results")]
    assert found == [True, True, True, False, False, False]
    text = own.read_text().replace("pings_lost: 8", "pings_lost: 7").replace("pings_lost: 4", "pings_lost: 3")
    own.write_text(text.replace("flows_failed: 2", "flows_failed: 1").replace("1.22", "2.1"))
    assert all(finding.right for finding in killed_parts.check(own, tmp_path / "results"))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("log: recorded", "log: own", "no log of yours"),
        ("log: recorded", "log: mine", "own or recorded is wanted"),
        ("  agent:\n    packets", "  agents:\n    packets", "predictions.agent is missing"),
        ("    api_silent_s: 1.22\n", "", "measurements.controller.api_silent_s is missing"),
        ("log: recorded", "log: [", "is not YAML"),
        (": yes\n", ": Yes\n", r"predictions\.\w+\.\w+ is 'Yes': yes or no is wanted"),
        (": no\n", ": false\n", r"is False: yes or no is wanted"),
    ],
)
def test_a_file_that_cannot_be_marked_says_where(tmp_path: Path, old: str, new: str, said: str) -> None:
    file = tmp_path / "lab6.yaml"
    text = LABS[6].solution.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))
    with pytest.raises(AnswerError, match=said):
        killed_parts.check(file, tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "at_s,what,value\n1,kill,controller\n",
        "a,b\n1,2\n",
        "at_s,what,value\n12,kill\n",
        "at_s,what,value\n1,ping,\n",
    ],
)
def test_a_log_without_the_kills_is_refused(tmp_path: Path, text: str) -> None:
    log = tmp_path / "log.csv"
    log.write_text(text)
    with pytest.raises(AnswerError, match="measure again"):
        measure(read_log(log), log)


def test_measure_passes_over_other_programs_whose_command_lines_are_no_text() -> None:
    process_of = runpy.run_path(str(LABS[6].directory / "measure.py"))["process_of"]
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)", b"\xff"]) as other:
        try:
            with pytest.raises(SystemExit, match="has no process"):
                process_of("no such program", Path("/run/capstan/none"))
        finally:
            other.kill()


def test_measure_asks_no_proxy_for_a_controller_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://192.0.2.1:3128")
    monkeypatch.delenv("no_proxy", raising=False)
    opener = runpy.run_path(str(LABS[6].directory / "measure.py"))["OPENER"]
    assert not any(isinstance(handler, urllib.request.ProxyHandler) for handler in opener.handlers)


def test_measure_waits_longer_for_what_it_needs_than_for_a_poll() -> None:
    """Its last request is for the restarts: without an answer a minute's measurement would be lost."""
    waits: list[float] = []

    class Opener:
        def open(self, url: str, timeout: float) -> io.BytesIO:
            waits.append(timeout)
            return io.BytesIO(b"{}")

    ask = runpy.run_path(str(LABS[6].directory / "measure.py"))["ask"]
    ask.__globals__["OPENER"] = Opener()
    ask("http://127.0.0.1:9", "/health")
    ask("http://127.0.0.1:9", "/events?limit=10000&topics=faults", within_s=30)
    assert waits == [0.5, 30]


def test_a_program_on_a_host_does_not_wait_until_measure_reads_what_it_prints() -> None:
    """A ping of 48 s prints more than a pipe holds: it stood still before its end, and the log showed a gap."""
    program = runpy.run_path(str(LABS[6].directory / "measure.py"))["Program"]
    ended = program([sys.executable, "-c", "print('x' * 200_000)"])
    assert ended.process.wait(timeout=PATIENCE_S) == 0
    assert ended.whole_output() == "x" * 200_000 + "\n"
