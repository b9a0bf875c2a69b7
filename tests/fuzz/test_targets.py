"""A few seconds of each fuzzer, and that a fuzzer fails where the product does what it must not.

``./capstan test --fuzz MINUTES`` goes on for longer.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz import run
from tests.fuzz.mutation import MOST_BYTES, MOST_MESSAGES, case

ROOT = Path(__file__).resolve().parents[2]
CASES = {"datagrams": 300, "frames": 200, "http": 60, "openflow-shell": 200, "specs": 600, "submissions": 150}
"""Of the others: 1500."""


def fuzz(target: str, *options: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "tests.fuzz.run", target, *options]
    return subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("target", sorted(run.TARGETS))
def test_nothing_is_found(target: str) -> None:
    """By a seed that is drawn and printed; in CI by one that stays. CAPSTAN_FUZZ_S: seconds, in place of cases."""
    seed = 1 if "CAPSTAN_CI_RUN" in os.environ else random.SystemRandom().randrange(1 << 32)
    seconds = os.environ.get("CAPSTAN_FUZZ_S")
    length = ("--cases", str(CASES.get(target, 1500))) if seconds is None else ("--seconds", seconds)
    done = fuzz(target, "--seed", str(seed), *length)
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "nothing found" in done.stdout


def test_a_case_that_fails_is_kept_and_run_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "CORPUS", tmp_path)
    messages = [b"", b"\x00\xff", b"text"]
    run.keep("ovsdb", messages)
    run.keep("ovsdb", messages)
    assert list(run.kept("ovsdb")) == [messages]


BAD_TARGET = """
import sys, time
from pathlib import Path
from tests.fuzz import run, target
class Bad(target.Target):
    samples = (b"x",)
    def run(self, messages):
        HOW
run.CORPUS, run.CASE_CPU_S, run.CASE_WALL_S = Path(sys.argv.pop()), 0.2, WALL_LIMIT
run.make = lambda name: Bad()
sys.exit(run.main())
"""


def fuzz_one_that(how: str, corpus: Path, wall_s: float = 600.0) -> subprocess.CompletedProcess[str]:
    program = BAD_TARGET.replace("HOW", how).replace("WALL_LIMIT", f"{wall_s}")
    argv = [sys.executable, "-c", program, "ovsdb", "--seed", "1", "--cases", "1", str(corpus)]
    return subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("how", "wall_s", "words"),
    [
        ("while True: pass", 600.0, "has taken 0.2 s of processor time"),
        ("time.sleep(600)", 0.3, "has not ended after 0.3 s"),
        ("bytearray(4 << 30)", 600.0, "MemoryError"),
    ],
)
def test_a_case_that_hangs_or_takes_all_memory_ends(
    how: str, wall_s: float, words: str, tmp_path: Path
) -> None:
    done = fuzz_one_that(how, tmp_path, wall_s)
    assert done.returncode == 1
    assert words in done.stderr
    assert f"it is kept in {tmp_path}" in done.stderr


def test_a_case_that_gets_no_processor_does_not_hang(tmp_path: Path) -> None:
    """As on a machine that is stopped, or busy: a case of milliseconds took more than 20 s."""
    done = fuzz_one_that("time.sleep(0.6)", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "1 cases by seed 1, nothing found" in done.stdout


def test_cases_follow_from_the_seed_and_are_bounded() -> None:
    samples = [b"one sample", b"another of them", b""]
    for seed in range(300):
        messages = case(random.Random(seed), samples)
        assert messages == case(random.Random(seed), samples)
        assert 1 <= len(messages) <= MOST_MESSAGES
        assert all(len(message) <= MOST_BYTES for message in messages)
