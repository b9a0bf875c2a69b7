"""Commands that are run one after the other or beside each other, each named before what it prints."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import IO, Final

from cli.console import progress
from cli.sharing import LAST, stand_back

_SHELL_SIGNAL: Final = 128
_ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True, slots=True)
class Step:
    """A command, the words that name it, and whether it takes only what other processes leave of the processors."""

    name: tuple[str, ...]
    command: tuple[str, ...]
    only_idle: bool = False


def check(step: Step, directory: Path) -> None:
    """Run *step*; end the program with its exit code if it fails.

    A signal that ends programs interrupts the step, which then ends in its own time: labs are taken down.
    """
    _say(step)
    with _interrupting() as begun:
        # In a process group of its own, or a terminal's interrupt would reach it besides the one that we send.
        process = subprocess.Popen(step.command, cwd=directory, stdin=subprocess.DEVNULL, process_group=0)
        begun(process)
        code = process.wait()
    if code != 0:
        sys.exit(code if code > 0 else _SHELL_SIGNAL - code)


@contextmanager
def _interrupting() -> Iterator[Callable[[subprocess.Popen[bytes]], None]]:
    """Have the first signal that would end the program interrupt a process instead, and further ones do nothing.

    Yields what is called with that process as soon as it is there: a signal may come while it is made.
    """
    interrupted = sent = False
    process: subprocess.Popen[bytes] | None = None

    def send() -> None:
        nonlocal sent
        if interrupted and process is not None and not sent:
            sent = True
            process.send_signal(signal.SIGINT)

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal interrupted
        if not interrupted:
            interrupted = True
            send()

    def begun(made: subprocess.Popen[bytes]) -> None:
        nonlocal process
        process = made
        send()

    # nohup has a signal ignored
    heeded = [number for number in _ENDING if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, interrupt) for number in heeded}
    try:
        yield begun
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if interrupted and process is not None and process.returncode == 0:  # it had done all, or took no notice
        sys.exit(_SHELL_SIGNAL + signal.SIGINT)


@contextmanager
def beside(steps: Sequence[Step], directory: Path) -> Iterator[None]:
    """Run *steps* beside the block, print their output after it; end the program with the code of one that fails.

    Where the block ends the program, they and what they have started end, too; the output of those that had ended is
    printed.
    """
    with ExitStack() as stack:
        begun = [(step, *stack.enter_context(_running(step, directory))) for step in steps]
        try:
            yield
        except SystemExit:
            for step, process, output in begun:
                if process.poll() is not None:
                    _report(step, output)
            raise
        for step, process, output in begun:
            code = process.wait()
            _report(step, output)
            if code != 0:
                sys.exit(code)


def _report(step: Step, output: IO[bytes]) -> None:
    _say(step)
    output.seek(0)
    sys.stdout.buffer.write(output.read())
    sys.stdout.flush()


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
            if step.only_idle:
                with suppress(ProcessLookupError):  # it has ended
                    os.sched_setscheduler(process.pid, os.SCHED_IDLE, os.sched_param(0))
                stand_back(process.pid, LAST)
            yield process, output
        finally:
            with suppress(ProcessLookupError):  # nothing of it is left
                os.killpg(process.pid, signal.SIGTERM)
            process.wait()


def _say(step: Step) -> None:
    progress.print(f"$ {' '.join(step.name)}", markup=False)
