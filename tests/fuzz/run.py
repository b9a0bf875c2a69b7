"""``python -m tests.fuzz.run TARGET``: cases by a seed, each with a limit of time, all with a limit of memory.

What fails is kept in ``tests/fuzz/corpus/TARGET/``, a message a line in hex, and is run first from then on.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import itertools
import random
import resource
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn

from tests.fuzz.mutation import case
from tests.fuzz.target import Target

TARGETS: Final = {
    "openflow-session": "openflow:SwitchSession",
    "openflow-shell": "openflow:RunningController",
    "agents-channel": "channel:AgentsChannel",
    "ovsdb": "ovsdb:Ovsdb",
    "specs": "specs:Specs",
    "submissions": "specs:Submissions",
    "bodies": "bodies:Bodies",
    "http": "http:Http",
    "frames": "frames:Frames",
    "datagrams": "datagrams:Datagrams",
}
"""Module in tests/fuzz/targets and class, by name."""
CORPUS: Final = Path(__file__).with_name("corpus")
CASE_CPU_S: Final = 20.0
"""Of processor time, all threads together. A case takes milliseconds: what takes so long, hangs."""
CASE_WALL_S: Final = 600.0
"""A case that computes nothing may wait for a processor, on a machine that is busy or stopped, or for ever."""
MEMORY_BYTES: Final = 2 << 30
"""Of the whole process, most of it libraries'."""


class CaseTimeoutError(BaseException):
    """No product code may catch it."""


def _end_case(number: int, frame: FrameType | None) -> NoReturn:
    if number == signal.SIGPROF:
        raise CaseTimeoutError(f"a case has taken {CASE_CPU_S:g} s of processor time")
    raise CaseTimeoutError(f"a case has not ended after {CASE_WALL_S:g} s")


def _limit_case(cpu_s: float, wall_s: float) -> None:
    """Have `_end_case` called after so long from now on; 0: never."""
    signal.setitimer(signal.ITIMER_PROF, cpu_s)
    signal.setitimer(signal.ITIMER_REAL, wall_s)


def make(name: str) -> Target:
    """Return a target, ready to run; only what it needs is imported."""
    module, _, kind = TARGETS[name].partition(":")
    made: Target = getattr(importlib.import_module(f"tests.fuzz.targets.{module}"), kind)()
    return made


def kept(target: str) -> Iterator[list[bytes]]:
    """Yield the cases that failed once, each as its messages."""
    for path in sorted((CORPUS / target).glob("*.txt")):
        yield [bytes.fromhex(line) for line in path.read_text().splitlines()]


def keep(target: str, messages: Sequence[bytes]) -> Path:
    """Keep a case, and return its file."""
    text = "".join(f"{data.hex()}\n" for data in messages)
    path = CORPUS / target / f"{hashlib.sha256(text.encode()).hexdigest()[:12]}.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def main() -> int:
    """Run and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.run")
    parser.add_argument("target", choices=sorted(TARGETS))
    parser.add_argument("--cases", type=int, help="how many (default: until --seconds are over)")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--seed", type=int, required=True)
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    for number in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(number, _end_case)
    target, rng = make(options.target), random.Random(options.seed)
    drawn = (case(rng, target.samples) for _ in itertools.count())
    until, done = time.monotonic() + options.seconds, 0
    for messages in itertools.chain(kept(options.target), itertools.islice(drawn, options.cases)):
        _limit_case(CASE_CPU_S, CASE_WALL_S)
        try:
            target.run(messages)
        except BaseException:
            _limit_case(0, 0)
            path = keep(options.target, messages)
            print(
                f"{options.target}: case {done} of seed {options.seed} fails; it is kept in {path}",
                file=sys.stderr,
            )
            raise
        _limit_case(0, 0)
        done += 1
        if options.cases is None and time.monotonic() > until:
            break
    target.close()
    print(f"{options.target}: {done} cases by seed {options.seed}, nothing found")
    return 0


if __name__ == "__main__":
    sys.exit(main())
