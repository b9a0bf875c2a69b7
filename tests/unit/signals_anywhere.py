"""Programs that get a signal at each of their instructions in turn."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
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
while interrupted_at(number):
    number += 1
print(number)
"""


def interrupted_anywhere(program: str, limit_s: float) -> int:
    """Return at how many instructions a signal came.

    program: defines ``interrupted_at``, which returns whether ``signal_at`` did what it was asked for. Raises
    TimeoutExpired where one of its calls took for ever.
    """
    argv = [sys.executable, "-c", BEGINNING + program + ENDING]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=limit_s, check=False)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)
