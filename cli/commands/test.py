"""``capstan test``."""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path
from typing import Final

import click

from cli.privileges import need_lab
from cli.steps import Step, beside, check
from plain.finite_range import FiniteRange
from topologies.cores import own_cores

_ROOT = Path(__file__).resolve().parents[2]
_CARGO: Final = (
    *("cargo", "test", "--quiet", "--workspace", "--locked"),
    *("--manifest-path", "native/Cargo.toml", "--target-dir", ".setup/native/target"),
)
SMALL_LAB: Final = "tests/lab/test_cli_run.py::test_json_on_standard_output_is_one_document_and_nothing_else"
"""A whole experiment of a few flows: every part of the lab, the controller and the agents take part."""
_KILLS: Final = 50
_CHAOS_START_S: Final = 300
_MOST_S_A_KILL: Final = 60
"""Only what hangs takes so long."""
_FUZZ_START_S: Final = 300
_LONGEST_FIRST: Final = ("--dist=loadfile", "--no-loadscope-reorder")
"""A file at a time, in the order of `tests/longest_first.py`."""
_PYTEST: Final = [sys.executable, "-m", "pytest"]
_IMPORTS: Final = Path(sys.executable).with_name("lint-imports")
_MYPY: Final = ("mypy",)
_WITHOUT_LAB: Final = ("tests/unit", "tests/fuzz")
_COMPUTING: Final = ("tests/world", "tests/unit/simulation", "tests/unit/controller/api/test_api_contract.py")
_COMPUTING_S: Final = 1800
"""How long one of these may take that gets only what labs leave of the processors."""
_TESTS_A_CORE: Final = 1.5
"""Tests wait for servers, for time-outs, for a lab's clocks. With two a core those of labs waited for each other."""
_WORKERS: Final = f"--numprocesses={own_cores().workers(_TESTS_A_CORE)}"
_SPREAD: Final = (_WORKERS, "--dist=worksteal")
"""Tests without a lab share nothing; those of a file with labs share its lab."""
_NOT_SLOW: Final = ("-m", "not slow")
_MOST_SEED: Final = 1 << 40


@click.command(
    "test",
    context_settings={"ignore_unknown_options": True},
    epilog="Examples:  ./capstan test    ./capstan test --quick    ./capstan test tests/unit -k scheme    "
    "./capstan test --chaos --seed 7    ./capstan test --fuzz 10    ./capstan test --world 10000",
)
@click.option(
    "--quick", is_flag=True, help="Style, types, unit tests that are not slow, and one small lab: minutes."
)
@click.option(
    "--chaos", is_flag=True, help="Kill parts of a lab at random instead, and say how soon each is back."
)
@click.option(
    "--seed",
    type=click.IntRange(0),
    help="Of --chaos: which parts, in which order; of --world: the first (default: drawn, and printed).",
)
@click.option(
    "--kills", type=click.IntRange(1), help=f"Of --chaos: how many parts, one by one (default: {_KILLS})."
)
@click.option(
    "--fuzz",
    metavar="MINUTES",
    type=FiniteRange(0, min_open=True),
    help="Fuzz the parsers of remote input instead, each for MINUTES.",
)
@click.option(
    "--world",
    metavar="SEEDS",
    type=click.IntRange(1),
    help="Run that many seeds of the whole system in simulated time instead, and print those that find a defect.",
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def test_command(
    *,
    quick: bool,
    chaos: bool,
    seed: int | None,
    kills: int | None,
    fuzz: float | None,
    world: int | None,
    arguments: tuple[str, ...],
) -> None:
    """Check style, types and imports, then run the tests: all of them, or what pytest's ARGUMENTS select."""
    _keep_bytecode()
    if not chaos and (kills is not None or (seed is not None and world is None)):
        raise click.UsageError("--kills goes with --chaos, --seed with --chaos or --world")
    own = [
        name
        for name, given in (("--chaos", chaos), ("--fuzz", fuzz is not None), ("--world", world is not None))
        if given
    ]
    if len(own) > 1:
        raise click.UsageError(f"{' and '.join(own)} are runs of their own: choose one")
    if world is not None and arguments:
        raise click.UsageError(f"--world runs seeds, and no tests: leave {' '.join(arguments)!r} out")
    if quick and (own or arguments):
        others = own or list(arguments)
        raise click.UsageError(f"--quick runs a choice of its own: leave {' '.join(others)!r} or --quick out")
    if chaos:
        kills = kills or _KILLS
        need_lab("test --chaos")
        os.environ["CAPSTAN_CHAOS_KILLS"] = str(kills)
        if seed is not None:
            os.environ["CAPSTAN_CHAOS_SEED"] = str(seed)
        test = "tests/lab/test_chaos.py::test_parts_killed_at_random"
        arguments = (test, "--capture=no", f"--timeout={_CHAOS_START_S + kills * _MOST_S_A_KILL}", *arguments)
    elif world is not None:
        first = random.SystemRandom().randrange(_MOST_SEED) if seed is None else seed
        command = [sys.executable, "-m", "tests.world.run", "--first", str(first), "--seeds", str(world)]
        os.chdir(_ROOT)
        os.execv(sys.executable, [*command, "--processes", str(own_cores().workers())])
    elif fuzz is not None:
        os.environ["CAPSTAN_FUZZ_S"] = str(fuzz * 60)
        arguments = ("tests/fuzz", "--capture=no", f"--timeout={fuzz * 60 + _FUZZ_START_S:.0f}", *arguments)
    elif not arguments:
        need_lab("test")
        for step in (["check", "."], ["format", "--check", "."]):
            check(Step(("ruff", *step), (sys.executable, "-m", "ruff", *step)), _ROOT)
        check(Step((_IMPORTS.name,), (str(_IMPORTS),)), _ROOT)
        if quick:
            _run_few()
        else:
            _run_all()
        return
    os.chdir(_ROOT)
    os.execv(sys.executable, [*_PYTEST, *arguments])


def _run_few() -> None:
    """Run the unit tests that are not slow, beside them the check of types, and one small lab."""
    with beside([Step(_MYPY, (sys.executable, "-m", *_MYPY))], _ROOT):
        check(_tests("tests/unit", *_SPREAD, *_NOT_SLOW), _ROOT)
    check(_tests(SMALL_LAB), _ROOT)


def _run_all() -> None:
    """Run unit tests, then those with labs; what only computes goes beside both.

    Tests of labs leave a fifth of the processors idle, while they wait for clocks.
    """
    with beside([Step(_CARGO, _CARGO, only_idle=True)], _ROOT):
        check(_tests(*_WITHOUT_LAB, *(f"--ignore={path}" for path in _COMPUTING), *_SPREAD), _ROOT)
        computing = _tests(*_COMPUTING, *_SPREAD, f"--timeout={_COMPUTING_S}", only_idle=True)
        with beside([Step(_MYPY, (sys.executable, "-m", *_MYPY), only_idle=True), computing], _ROOT):
            ignored = (f"--ignore={path}" for path in (*_WITHOUT_LAB, *_COMPUTING))
            check(_tests("tests", *ignored, _WORKERS, *_LONGEST_FIRST), _ROOT)


def _tests(*arguments: str, only_idle: bool = False) -> Step:
    """Return a run of tests, named by their paths."""
    paths = [argument for argument in arguments if argument.startswith("tests")]
    return Step(("pytest", *paths), (*_PYTEST, *arguments), only_idle=only_idle)


def _keep_bytecode() -> None:
    """Have what tests start compiled once, also where the environment says that Python is to keep no bytecode.

    Else each of some thousand controllers, agents and commands would compile all of them anew.
    """
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
