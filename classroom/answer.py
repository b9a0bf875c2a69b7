"""What a check finds, and a student's Python file as the check sees it."""

from __future__ import annotations

import importlib.util
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from capstan_client.errors import CapstanError


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a lab asks for. text: what was found, and if it is not right, what is missing."""

    right: bool
    text: str


class AnswerError(CapstanError, ValueError):
    """A file that cannot be used at all; the text says where and what to do."""


class Answer:
    """The names that a student's file defines."""

    def __init__(self, file: Path) -> None:
        """Run *file*. Raises AnswerError."""
        if not file.is_file():
            raise AnswerError(
                f"{file}: there is no such file: copy start.py of this lab, and give the copy's name"
            )
        self._file = file
        spec = importlib.util.spec_from_file_location("capstan_answer", file)
        if spec is None or spec.loader is None:
            raise AnswerError(f"{file}: its name must end in .py")
        self._module = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(self._module)
        except (Exception, SystemExit) as error:
            raise AnswerError(self._said(error)) from error

    def value(self, name: str) -> Any:
        """Return a value of the file. Raise AnswerError if the file has no such name."""
        try:
            return getattr(self._module, name)
        except AttributeError:
            raise AnswerError(f"{self._file}: defines no {name}: it is in start.py") from None

    def function(self, name: str) -> Callable[..., Any]:
        """Return a function that ends, where it fails, with an AnswerError that names the line."""
        return self.guarded(self.value(name))

    def guarded(self, wanted: Callable[..., Any]) -> Callable[..., Any]:
        """Return *wanted*, of this file, likewise; what it failed with is the AnswerError's cause."""

        def call(*arguments: Any) -> Any:
            try:
                return wanted(*arguments)
            except (Exception, SystemExit) as error:
                raise AnswerError(self._said(error)) from error

        return call

    def _said(self, error: BaseException) -> str:
        if isinstance(error, SyntaxError):
            return f"{self._file}, line {error.lineno}: {error.msg}"
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if frame.filename == str(self._file)]
        where = f", line {lines[-1]}" if lines else ""
        return f"{self._file}{where}: {type(error).__name__}: {error}"
