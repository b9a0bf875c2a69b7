"""Programs that get a signal at each of their instructions in turn."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOOK_EVERY_S = 1.0
LOOKS = 2
"""After so many more at the same instruction it is taken to be there for ever."""
BEGINNING = """
import signal, sys, threading

def signal_at(number, work):
    '''Do work, with a signal at its instruction of that number; return whether it has so many.'''
    seen = 0
    def trace(frame, event, argument):
        nonlocal seen
        frame.f_trace_opcodes = True
        if event == "opcode":
            seen += 1
            if seen == number:
                signal.raise_signal(signal.SIGTERM)
        return trace
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(None)
    return seen >= number
"""
ENDING = """
number = 1
print(number, flush=True)
while interrupted_at(number):
    number += 1
    print(number, flush=True)
"""


def interrupted_anywhere(program: str, limit_s: float) -> int:
    """Return at how many instructions a signal came.

    program: defines ``interrupted_at``, which returns whether ``signal_at`` did what it was asked for. Raises
    TimeoutExpired where one of its calls took for ever.
    """
    done = subprocess.run(
        _argv(program), cwd=ROOT, capture_output=True, text=True, timeout=limit_s, check=False
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout.split()[-1])


def waits_for_ever_at(program: str) -> int:
    """Return the instruction at which a signal makes one of its calls take for ever. Raise AssertionError: at none.

    program: as above. One that is only slow gets further, or has ended, when it is looked at again.
    """
    with (
        tempfile.NamedTemporaryFile() as numbers,
        subprocess.Popen(_argv(program), cwd=ROOT, stdout=numbers) as process,
    ):
        try:
            last, looks = "", 0
            while looks < LOOKS:
                time.sleep(LOOK_EVERY_S)
                assert process.poll() is None, f"it has ended, after instruction {last}"
                *_, now = ["", *Path(numbers.name).read_text().split()]
                looks = looks + 1 if now and now == last else 0
                last = now
            return int(last)
        finally:
            process.kill()


def _argv(program: str) -> list[str]:
    return [sys.executable, "-c", BEGINNING + program + ENDING]
