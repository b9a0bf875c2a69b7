"""Parts of a lab killed at random while TCP transfers go on: no reset, equal bytes, all parts there again.

`./capstan test --chaos` kills more of them, and holds the times until they are back against their bounds.
"""

from __future__ import annotations

import os
import random
import secrets
import time
from typing import Final

from experiments.run.supervision import MOST_DEATHS
from tests.lab.chaos import BOUNDS_S, Chaos, Draw, Killed, Target, late, report
from tests.lab.test_schemes_on_switches import deployment, fabric

FEW: Final = 6
KILLS = "CAPSTAN_CHAOS_KILLS"
SEED = "CAPSTAN_CHAOS_SEED"


def test_parts_are_drawn_by_the_seed_and_never_too_often() -> None:
    targets = [Target(kind, name) for kind in BOUNDS_S for name in ("a", "b")]
    draws = [Draw(targets, random.Random(5)) for _ in range(2)]
    drawn = [[draw.next(2.0 * number) for number in range(100)] for draw in draws]
    assert drawn[0] == drawn[1]
    assert {one.kind for one in drawn[0][: len(BOUNDS_S)]} == set(BOUNDS_S)
    for first in range(70):
        within = drawn[0][first : first + 30]
        assert all(within.count(target) < MOST_DEATHS for target in targets), "in a minute"


def test_parts_killed_at_random() -> None:
    asked = os.environ.get(KILLS)
    seed = int(os.environ.get(SEED) or secrets.randbits(32))
    count = int(asked or FEW)
    print(f"chaos: {count} kills, seed {seed}", flush=True)
    kills: list[Killed] = []
    with deployment(fabric(3, hosts=2, rate=50.0), "rps") as lab:
        chaos = Chaos(lab, random.Random(seed))
        chaos.start_transfers()
        for number in range(1, count + 1):
            killed = chaos.kill_next()
            kills.append(killed)
            target = f"{killed.target.kind} {killed.target.name}".strip()
            print(
                f"{number:3}: {target:<17} back after {killed.back_s:5.2f} s, whole after {killed.whole_s:5.2f} s",
                flush=True,
            )
        began = time.monotonic()
        total = chaos.end_transfers()
        print(f"{total / 1e6:.1f} MB over, equal at both ends; ended after {time.monotonic() - began:.1f} s")
        lab.check_health()
    print(report(kills))
    if asked is not None:
        assert not late(kills), f"later than they may be: {late(kills)}"
