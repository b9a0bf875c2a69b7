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
CASES = {"datagrams": 300, "frames": 200, "http": 60, "openflow-shell": 200, "specs": 600}
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


def test_a_case_that_hangs_or_takes_all_memory_ends(tmp_path: Path) -> None:
    program = """
import sys
from pathlib import Path
from tests.fuzz import run, target
class Bad(target.Target):
    samples = (b"x",)
    def run(self, messages):
        HOW
run.CORPUS, run.CASE_S, run.make = Path(sys.argv.pop()), 0.2, lambda name: Bad()
sys.exit(run.main())
"""
    for how, words in (
        ("while True: pass", "has not ended after 0.2 s"),
        ("bytearray(4 << 30)", "MemoryError"),
    ):
        argv = [sys.executable, "-c", program.replace("HOW", how), "ovsdb", "--seed", "1", str(tmp_path)]
        done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert words in done.stderr
        assert f"it is kept in {tmp_path}" in done.stderr


def test_cases_follow_from_the_seed_and_are_bounded() -> None:
    samples = [b"one sample", b"another of them", b""]
    for seed in range(300):
        messages = case(random.Random(seed), samples)
        assert messages == case(random.Random(seed), samples)
        assert 1 <= len(messages) <= MOST_MESSAGES
        assert all(len(message) <= MOST_BYTES for message in messages)
