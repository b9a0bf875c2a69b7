"""``capstan test``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import click

from cli.console import progress
from cli.privileges import need_lab
from topologies.cores import own_cores

_ROOT = Path(__file__).resolve().parents[2]
_CARGO: Final = [
    *("cargo", "test", "--quiet", "--workspace", "--locked"),
    *("--manifest-path", "native/Cargo.toml", "--target-dir", ".setup/native/target"),
]
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
_WITHOUT_LAB: Final = ["tests/unit", "tests/fuzz"]


@click.command(
    "test",
    context_settings={"ignore_unknown_options": True},
    epilog="Examples:  ./capstan test    ./capstan test --quick    ./capstan test tests/unit -k scheme    "
    "./capstan test --chaos --seed 7    ./capstan test --fuzz 10",
)
@click.option("--quick", is_flag=True, help="Style, types, unit tests and one small lab: minutes.")
@click.option(
    "--chaos", is_flag=True, help="Kill parts of a lab at random instead, and say how soon each is back."
)
@click.option(
    "--seed",
    type=click.IntRange(0),
    help="Of --chaos: which parts, in which order (default: drawn, and printed).",
)
@click.option(
    "--kills", type=click.IntRange(1), help=f"Of --chaos: how many parts, one by one (default: {_KILLS})."
)
@click.option(
    "--fuzz",
    metavar="MINUTES",
    type=click.FloatRange(0, min_open=True),
    help="Feed what parses remote input with wrong messages instead, each parser for MINUTES.",
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def test_command(
    quick: bool,
    chaos: bool,
    seed: int | None,
    kills: int | None,
    fuzz: float | None,
    arguments: tuple[str, ...],
) -> None:
    """Check style, types and imports, then run the tests: all of them, or what pytest's ARGUMENTS select."""
    _keep_bytecode()
    workers = f"--numprocesses={own_cores().workers()}"
    if not chaos and (seed is not None or kills is not None):
        raise click.UsageError("--seed and --kills go with --chaos")
    if fuzz is not None and chaos:
        raise click.UsageError("--fuzz and --chaos are runs of their own: leave one out")
    if quick and (chaos or fuzz is not None or arguments):
        others = ["--chaos"] if chaos else ["--fuzz"] if fuzz is not None else list(arguments)
        raise click.UsageError(f"--quick runs a choice of its own: leave {' '.join(others)!r} or --quick out")
    if chaos:
        kills = kills or _KILLS
        need_lab("test --chaos")
        os.environ["CAPSTAN_CHAOS_KILLS"] = str(kills)
        if seed is not None:
            os.environ["CAPSTAN_CHAOS_SEED"] = str(seed)
        test = "tests/lab/test_chaos.py::test_parts_killed_at_random"
        arguments = (test, "--capture=no", f"--timeout={_CHAOS_START_S + kills * _MOST_S_A_KILL}", *arguments)
    elif fuzz is not None:
        os.environ["CAPSTAN_FUZZ_S"] = str(fuzz * 60)
        arguments = ("tests/fuzz", "--capture=no", f"--timeout={fuzz * 60 + _FUZZ_START_S:.0f}", *arguments)
    elif not arguments:
        need_lab("test")
        for step in (["ruff", "check", "."], ["ruff", "format", "--check", "."], ["mypy"]):
            _check(step, [sys.executable, "-m", *step])
        _check([_IMPORTS.name], [str(_IMPORTS)])
        if not quick:
            _check(_CARGO, _CARGO)
        # Those without a lab share nothing; those of a file with labs share its lab.
        _check(["pytest", *_WITHOUT_LAB], [*_PYTEST, *_WITHOUT_LAB, workers, "--dist=worksteal"])
    if quick:
        arguments = (SMALL_LAB,)
    elif not arguments:
        ignored = [f"--ignore={path}" for path in _WITHOUT_LAB]
        arguments = ("tests", *ignored, workers, *_LONGEST_FIRST)
    os.chdir(_ROOT)
    os.execv(sys.executable, [*_PYTEST, *arguments])


def _keep_bytecode() -> None:
    """Have what tests start compiled once, also where the environment says that Python is to keep no bytecode.

    Else each of some thousand controllers, agents and commands would compile all of them anew.
    """
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def _check(name: list[str], command: list[str]) -> None:
    """Run *command*; end the program with its exit code if it fails."""
    progress.print(f"$ {' '.join(name)}", markup=False)
    code = subprocess.run(command, cwd=_ROOT, check=False).returncode
    if code != 0:
        sys.exit(code)
