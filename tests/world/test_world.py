"""Seeds of the whole system: some hundred drawn ones, those that found something once, and that defects are found.

``./capstan test --world SEEDS`` runs more, ``python -m tests.world.run --first SEED --seeds 1`` one again.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from controller.control_plane import ControlPlane
from controller.fabric.hosts import Hosts
from controller.fabric.paths import Routing
from controller.openflow.refusals import Refusals
from controller.schemes.current import SchemeFile
from tests.world.seeds import SeedError, run_seed

ROOT = Path(__file__).resolve().parents[2]
SEEDS = 500
MOST_SEEDS = 150
"""Within which a defect is found."""
PARTS = 10
"""Tests that the seeds are shared by, so that several processes take them."""


@pytest.mark.parametrize("part", range(PARTS))
def test_drawn_seeds_find_nothing(part: int) -> None:
    """From a first seed that is drawn and printed; in CI from one that stays. CAPSTAN_WORLD_SEEDS: how many."""
    first = 0 if "CAPSTAN_CI_RUN" in os.environ else random.SystemRandom().randrange(1 << 40)
    each = -(-int(os.environ.get("CAPSTAN_WORLD_SEEDS", SEEDS)) // PARTS)  # no fewer than were asked for
    print(f"seeds {first + part * each} to {first + (part + 1) * each - 1}")
    for seed in range(first + part * each, first + (part + 1) * each):
        run_seed(seed)


@pytest.mark.parametrize(
    "seed",
    [141, 213, 912, 2000014, 2010064, 2002981],
    ids=[
        "a-leaf-whose-last-host-has-moved-sends-packets-back",
        "and-after-a-fault-that-stays",
        "a-controller-without-a-processor-takes-a-switch-over-afterwards",
        "a-leaf-whose-last-host-has-moved-knows-not-all-links-after-a-restart",
        "and-once-more-behind-flapping-cables",
        "a-switch-that-was-slow-works-off-what-it-was-sent",
    ],
)
def test_seeds_that_found_something_find_it_no_more(seed: int) -> None:
    run_seed(seed)


@dataclass(frozen=True)
class Defect:
    """A defect to plant. ``seed``: of those from 0 on the first that finds it, as worlds are now; it is tried first."""

    seed: int
    plant: Callable[[pytest.MonkeyPatch], None]


DEFECTS = {
    # what seeds have found in the product, as it was
    "a switch that refuses an update twice in 30 s stays unlike what is wanted": Defect(
        81, lambda patch: patch.setattr(Refusals, "due", lambda self, now: [])
    ),
    "after a restart agents learn no paths of hosts that switches held": Defect(
        0, lambda patch: _without_held_events(patch)
    ),
    "what no path passes sends back what comes to it": Defect(
        65, lambda patch: patch.setattr(Routing, "passed", lambda self: frozenset(self.next_hops))
    ),
    # what it never had
    "ports that go dark are not noticed": Defect(
        9,
        lambda patch: patch.setattr(
            ControlPlane, "port_changed", lambda self, dpid, port, now: self.tick(now)
        ),
    ),
    "a scheme is in force before it is kept": Defect(
        4, lambda patch: patch.setattr(SchemeFile, "write", lambda self, one: None)
    ),
}


def _without_held_events(patch: pytest.MonkeyPatch) -> None:
    held = Hosts.held

    def silent(self: Hosts, *arguments: Any) -> list[Any]:
        held(self, *arguments)
        return []

    patch.setattr(Hosts, "held", silent)


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_defect_is_found(defect: str, monkeypatch: pytest.MonkeyPatch) -> None:
    DEFECTS[defect].plant(monkeypatch)
    for seed in (DEFECTS[defect].seed, *range(MOST_SEEDS)):
        try:
            run_seed(seed)
        except SeedError as error:
            print(str(error).splitlines()[0])
            return
    pytest.fail(f"{MOST_SEEDS} seeds have not found it")


def test_a_seed_is_a_run() -> None:
    """Whatever order Python gives to sets of text."""
    program = "from tests.world.seeds import run_seed\nprint([run_seed(seed) for seed in (1, 2, 3)])"
    said = set()
    for number in ("1", "2"):
        argv = [sys.executable, "-c", program]
        done = subprocess.run(
            argv,
            cwd=ROOT,
            env=os.environ | {"PYTHONHASHSEED": number},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        said.add(done.stdout)
    assert len(said) == 1, said
