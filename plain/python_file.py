"""A Python file of a student or operator: loaded, and where in it an error was raised."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Final

FAILURES: Final = (Exception, SystemExit)
"""What its code may end with: sys.exit() in it is not the end of ours."""


def load(file: Path, name: str) -> ModuleType | None:
    """Return *file* as a module *name* that has run; None: its name does not end in .py. Raises what its code does."""
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        return None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = (
        module  # where dataclasses look for what annotations name, which are texts in many files
    )
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module


def failure_text(file: Path, error: BaseException) -> str:
    """Return where an error was raised, and what it says: `my.py, line 7: NameError: ...`."""
    if isinstance(error, SyntaxError):
        return f"{file}, line {error.lineno}: {error.msg}"
    frames = traceback.extract_tb(error.__traceback__)
    # Absolute, as the import system has it, also of a file that was given relative to the working directory.
    place = str(file.absolute())
    lines = [frame.lineno for frame in frames if frame.filename == place]
    where = f", line {lines[-1]}" if lines else ""
    return f"{file}{where}: {type(error).__name__}: {error}"
