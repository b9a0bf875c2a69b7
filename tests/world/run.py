"""``python -m tests.world.run``: seeds one after the other, in several processes; what they find is printed."""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import signal
import sys
import time
from typing import Final

from tests.world.seeds import SeedError, run_seed

CHUNK: Final = 10
"""Seeds that a process takes at once."""
ALLOCATIONS: Final = 100_000
"""Before Python looks for garbage: a seed makes little of it, and looking often takes a tenth of the time."""


def found(seed: int) -> str:
    """Return what a seed found ("": nothing)."""
    try:
        run_seed(seed)
    except SeedError as error:
        return str(error)
    return ""


def _begin() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's Ctrl-C is for the process that counts
    gc.freeze()
    gc.set_threshold(ALLOCATIONS)


def main() -> int:
    """Run and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.world.run")
    parser.add_argument("--first", type=int, required=True)
    parser.add_argument("--seeds", type=int, required=True)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--most", type=int, default=10, help="stop after so many that find something")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin none after so many")
    options = parser.parse_args()
    began, bad, done, interrupted = time.monotonic(), 0, 0, False
    until = began + options.seconds
    seeds = range(options.first, options.first + options.seeds)
    with multiprocessing.Pool(options.processes, _begin) as pool:
        try:
            for what in pool.imap_unordered(found, seeds, CHUNK):
                done += 1
                if what:
                    bad += 1
                    print(what, flush=True)
                if bad >= options.most or time.monotonic() > until:
                    break
        except KeyboardInterrupt:
            interrupted = True
    took = time.monotonic() - began
    print(f"{done} of seeds {seeds.start} to {seeds.stop - 1} run in {took:.0f} s, {bad} found something")
    return 1 if bad else 130 if interrupted else 0


if __name__ == "__main__":
    sys.exit(main())
