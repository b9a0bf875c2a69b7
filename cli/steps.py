"""Commands that are run one after the other or beside each other, each named before what it prints."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from cli.console import progress


@dataclass(frozen=True, slots=True)
class Step:
    """A command, and the words that name it."""

    name: tuple[str, ...]
    command: tuple[str, ...]


def check(step: Step, directory: Path) -> None:
    """Run *step*; end the program with its exit code if it fails."""
    _say(step)
    code = subprocess.run(step.command, cwd=directory, check=False).returncode
    if code != 0:
        sys.exit(code)


@contextmanager
def beside(steps: Sequence[Step], directory: Path) -> Iterator[None]:
    """Run *steps* beside the block, print their output after it; end the program with the code of one that fails.

    Where the block ends the program, they and what they have started end, too.
    """
    with ExitStack() as stack:
        begun = [(step, *stack.enter_context(_running(step, directory))) for step in steps]
        yield
        for step, process, output in begun:
            _say(step)
            code = process.wait()
            output.seek(0)
            sys.stdout.buffer.write(output.read())
            sys.stdout.flush()
            if code != 0:
                sys.exit(code)


@contextmanager
def _running(step: Step, directory: Path) -> Iterator[tuple[subprocess.Popen[bytes], IO[bytes]]]:
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            step.command,
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            yield process, output
        finally:
            with suppress(ProcessLookupError):  # nothing of it is left
                os.killpg(process.pid, signal.SIGTERM)
            process.wait()


def _say(step: Step) -> None:
    progress.print(f"$ {' '.join(step.name)}", markup=False)
