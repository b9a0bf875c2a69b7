"""One seed, one run: a fabric comes up, things go wrong, some stay wrong for a while, all is mended and checked."""

from __future__ import annotations

import functools
import random
import shutil
import tempfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from controller.openflow.refusals import HEAL_EVERY_S
from controller.plane.takeover import TAKEOVER_LIMIT_S
from controller.schemes import loader
from controller.schemes.scheme import Scheme
from tests.unit.fabric_shapes import Shape, fat_tree, leaf_spine
from tests.world.faults import CONNECTIONS, FIRST_PORT, Faults
from tests.world.world import World

SCHEMES: Final = (
    *("caps", "ecmp", "rps", "drb", "reps", "freeway", "htpc", "presto", "letflow", "plb", "tr"),
    *("caps-reps", "corrective", "rps-inorder", "repflow", "repsyn", "htpc-overdue"),
    *("capton", "capton", "capton-caps", "capton-caps", "hyline", "tpfs", "caps-tpfs"),
)
QUIET_S: Final = 20.0
"""After the last fault: what stays broken then is known to be so. More than any silence that ends a connection."""
CONVERGED_S: Final = 2 * HEAL_EVERY_S + 15.0
"""After all is mended. A switch may refuse three updates, and begins anew at most every HEAL_EVERY_S."""
LOOK_S: Final = 0.5
SETTLED_S: Final = 3.0
PACKETS: Final = 3
SEGMENTS: Final = 16
"""More than leave without a grant."""
STREAMS_S: Final = 1.2
"""The longest of the streams that began before."""


class SeedError(AssertionError):
    """A seed has found something; the text says what happened until then."""


@dataclass(frozen=True, slots=True)
class Done:
    """What a run was: seconds of its own time until it had converged, and inner packets that its hosts sent.

    ``digest``: of all that was drawn; the same again for the same seed, or something came in another order.
    """

    converged_s: float
    packets: int
    digest: int


@functools.cache
def schemes() -> tuple[Scheme, ...]:
    return tuple(loader.load(name) for name in SCHEMES)


def run_seed(seed: int) -> Done:
    """Run. Raises SeedError."""
    memory = Path("/dev/shm")
    directory = Path(tempfile.mkdtemp(prefix="capstan-world-", dir=memory if memory.is_dir() else None))
    rng = random.Random(seed)
    shape = _shape(rng)
    world = World(shape, rng.choice(schemes()), directory, rng)
    faults = Faults(world, schemes(), directory, rng)
    try:
        return _run(world, faults, rng)
    except Exception as error:
        log = "\n".join(faults.log)
        raise SeedError(
            f"seed {seed}, {len(shape.leaves)} leaves of {len(shape.ports)} switches, at {world.clock.now:.4f} s: "
            f"{type(error).__name__}: {error}\n{log}"
        ) from error
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _shape(rng: random.Random) -> Shape:
    if rng.random() < 0.02:
        shape = fat_tree(4, 1)
    else:
        shape = leaf_spine(rng.randint(2, 3), rng.randint(1, 3), rng.choice((1, 1, 2)))
    for leaf in shape.leaves:
        shape.ports[leaf] += 1  # for a host that moves
    return shape


def _run(world: World, faults: Faults, rng: random.Random) -> Done:
    world.start_controller()
    for name in world.hosts:
        world.clock.after(rng.random(), functools.partial(_start, world, name))
    world.run(rng.choice((0.1, 1.5, 3.0)))
    _trouble(world, faults, rng)
    if rng.random() < 0.5:
        # What is broken for good stays so: paths that are known to be dead carry nothing.
        _end_what_passes(world)
        _wait_for_processor(world)
        _wait_for_backlogs(world)
        world.run(QUIET_S)
        _wait_for_beginnings(world)
        world.watch.check_ways()
        _trouble(world, faults, rng)
    faults.mend_all()
    began = world.clock.now
    while what := world.watch.unlike():
        if world.clock.now - began > CONVERGED_S:
            raise AssertionError(f"not converged after {CONVERGED_S:g} s: {what}")
        world.run(LOOK_S)
    world.watch.settled()
    converged = world.clock.now - began
    _check_whole(world, faults)
    return Done(converged, len(world.sent), zlib.crc32(repr((world.clock.now, rng.getstate())).encode()))


def _start(world: World, name: str) -> None:
    if world.hosts[name].core is None:
        world.start_agent(name)


def _trouble(world: World, faults: Faults, rng: random.Random) -> None:
    """Cause some faults, close to each other or not."""
    pace = rng.choice((0.002, 0.1, 0.6))
    for _ in range(rng.randint(1, 10)):
        faults.next()
        world.run(pace * rng.expovariate(1.0))


def _end_what_passes(world: World) -> None:
    """Leave broken what the controller can know of: the controller and its connections come back."""
    if world.controller is None:
        world.start_controller()
    for dpid, daemon in world.daemons.items():
        daemon.habits.slow_s, daemon.habits.early = 0.0, False
        daemon.habits.refuses = daemon.habits.breaks = 0
        if not daemon.reachable:
            world.reach_switch(dpid, True)
    for name, host in world.hosts.items():
        if not host.reachable:
            world.reach_agent(name, True)


def _wait_for_processor(world: World) -> None:
    """Wait until the controller gets the processor: only then it notices what happened, and takes switches over."""
    if world.controller is not None:
        world.run(max(0.0, world.controller.stalled_until - world.clock.now))


def _wait_for_backlogs(world: World) -> None:
    """Wait until slow switches have taken what they were sent before: their links are discovered behind that."""
    began = world.clock.now
    while any(daemon.alive and daemon.busy for daemon in world.daemons.values()):
        assert world.clock.now < began + CONVERGED_S, "a switch works off what it was sent without end"
        world.run(LOOK_S)


def _wait_for_beginnings(world: World) -> None:
    """Wait until each switch that has refused something begins anew: before, it holds what it likes."""
    began = world.clock.now
    while world.controller is not None and world.controller.owes_a_beginning():
        assert world.clock.now < began + HEAL_EVERY_S + SETTLED_S, "a switch has not begun anew"
        world.run(LOOK_S)
    if world.clock.now > began:
        world.run(TAKEOVER_LIMIT_S + SETTLED_S)


def _check_whole(world: World, faults: Faults) -> None:
    """Check that everything goes through, once, and that nothing changes any more."""
    watch, controller = world.watch, world.controller
    assert controller is not None
    watch.check_ways()
    world.run(STREAMS_S)
    seen = len(controller.events)
    first = len(world.sent)
    watch.quiet = True
    for source, target in watch.pairs:
        faults.stream(source, target, FIRST_PORT + 7, PACKETS, 0.003, 700)
    large = SEGMENTS if controller.admission.rule is not None else 0
    standing = len(controller.admission.standing())
    for source, target in watch.pairs if large else ():
        faults.connection(source, target, CONNECTIONS + 100, large, 0.003)
    world.run(SETTLED_S)
    watch.quiet = False
    assert len(controller.admission.standing()) <= standing, controller.admission.standing()
    for number in range(first, len(world.sent)):
        sent = world.sent[number]
        came_out = sent.came_out[world.hosts[sent.target].session_number]
        assert came_out == 1, f"packet {number} to {sent.target} came out {came_out} times in {SETTLED_S:g} s"
    assert len(world.sent) - first == (PACKETS + large) * len(watch.pairs)
    restless = [event for event in controller.events[seen:] if type(event).__name__ in RESTLESS]
    assert not restless, f"with nothing wrong: {restless[:3]}"
    assert not (what := watch.unlike()), what


RESTLESS: Final = frozenset(
    ("LinkDown", "LinkUp", "SwitchUp", "SwitchDown", "StateSent", "HostSeen", "HostConflict")
)
"""Kinds of events that a fabric at rest has none of."""
