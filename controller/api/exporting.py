"""Flow records as Parquet, and figures of experiments: made beside the controller's own threads, a piece at a time."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, Any, Final

from sqlalchemy import Float, Integer

from controller.api.problems import ProblemError
from controller.store.models import FlowRecord
from figures.draw import lines_of

ROOT: Final = Path(__file__).resolve().parents[2]
ROWS: Final = 5000
"""Rows of a group in a file."""
DRAW_S: Final = 60.0
"""Until it is drawn; its processor time has the same limit."""
MEMORY_MIB: Final = 2048
"""Of a process that draws, records or checks."""
WITHIN: Final = ("controller.process.limited", str(MEMORY_MIB), f"{DRAW_S:.0f}")
_ONE_THREAD: Final = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""Each thread of NumPy's would have its share of the memory, on machines with many cores all of it."""
_AT_A_LIMIT: Final = (-getattr(signal, "SIGXCPU", 24), -signal.SIGABRT)
"""How a process ends whose processor time is over; and Rust where there is no memory."""
NICE: Final = ("nice",) if shutil.which("nice") else ()
"""What begins a command that lets others go first; Windows has none."""
_DRAWING: Final = threading.Lock()
"""One figure at a time: each takes a processor for a second or so."""
MOST_WAITING: Final = 8
"""Figures and recordings that are made or wait, each in a thread of the API's: other answers need some, too."""
PLACES: Final = threading.BoundedSemaphore(MOST_WAITING)


class LimitError(ProblemError):
    """A process of ours needed more memory or processor time than it may have."""

    def __init__(self, product: str, made: str) -> None:
        super().__init__(
            503,
            f"{product} was not {made}: it needs more than {MEMORY_MIB} MiB of memory or {DRAW_S:g} s of processor "
            "time",
        )


def parquet_file(flows: Iterable[Mapping[str, Any]]) -> IO[bytes]:
    """Return a temporary file, at its beginning, that is gone when it is closed. ``paths``: JSON text, as in the CSV.

    Raises ProblemError (406) where pyarrow is not installed.
    """
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise ProblemError(
            406,
            "Parquet needs pyarrow, which is not installed: .venv/bin/pip install pyarrow; or ask for flows.csv",
        ) from None
    columns = FlowRecord.__table__.columns

    def kind(column: Any) -> Any:
        if isinstance(column.type, Integer):
            return pyarrow.int64()
        return pyarrow.float64() if isinstance(column.type, Float) else pyarrow.string()

    schema = pyarrow.schema(
        [pyarrow.field(column.name, kind(column), nullable=column.nullable) for column in columns]
    )
    file = tempfile.TemporaryFile()  # noqa: SIM115 the caller's
    rows = iter(flows)
    with pyarrow.parquet.ParquetWriter(file, schema, compression="zstd") as writer:
        while group := list(islice(rows, ROWS)):
            writer.write_table(pyarrow.Table.from_pylist(group, schema))
    file.seek(0)
    return file


def pieces(file: IO[bytes]) -> Iterator[bytes]:
    """Yield all of *file*, which is closed at the end."""
    with file:
        while piece := file.read(1 << 16):
            yield piece


def picture(name: str, kind: str, document: Mapping[str, Any], records: Iterable[Sequence[str]]) -> bytes:
    """Return a figure (`figures.draw`), drawn by another process; empty where there is not enough for it.

    Raises ProblemError (503): it could not be drawn, or not in time.
    """
    return drawn(name, ("figures.draw", name, kind), lines_of(document, records))


def drawn(name: str, module: Sequence[str], lines: Iterable[bytes]) -> bytes:
    """Return what a module of ours, with its arguments, prints when it is given *lines*: figure *name*.

    Raises ProblemError (503): it could not be drawn, or not in time.
    """
    return printed(f"figure {name!r}", "drawn", module, lines)


def printed(product: str, made: str, module: Sequence[str], lines: Iterable[bytes]) -> bytes:
    """Return what a module of ours prints when it is given *lines*: *product*, which is *made* in a process of its own.

    Raises ProblemError (503): it could not be made, or not within `DRAW_S`; or `MOST_WAITING` others wait. LimitError:
    it needs more memory or processor time than it may have.
    """
    if not PLACES.acquire(blocking=False):
        raise ProblemError(503, f"{product} was not {made}: {MOST_WAITING} others wait; ask again")
    try:
        return _printed(product, made, module, lines)
    finally:
        PLACES.release()


def _printed(product: str, made: str, module: Sequence[str], lines: Iterable[bytes]) -> bytes:
    with _DRAWING, tempfile.TemporaryFile() as given:
        given.writelines(
            lines
        )  # no pipe: a process that does not read would block this thread beyond the deadline
        given.seek(0)
        process = subprocess.Popen(
            [*NICE, sys.executable, "-m", *WITHIN, *module],
            cwd=ROOT,
            env=os.environ | _ONE_THREAD,
            stdin=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        try:
            output, errors = process.communicate(timeout=DRAW_S)
        except subprocess.TimeoutExpired:
            raise ProblemError(503, f"{product} was not {made} within {DRAW_S:g} s") from None
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
    if process.returncode:
        last = errors.decode(errors="replace").strip().splitlines()[-1:] or ["no reason was given"]
        if process.returncode in _AT_A_LIMIT or last[0].endswith("MemoryError"):
            raise LimitError(product, made)
        raise ProblemError(503, f"{product} could not be {made}: {last[0]}")
    return output
