"""What a check finds, and a student's Python file as the check sees it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from capstan_client.errors import CapstanError
from plain.python_file import FAILURES, failure_text, load


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one check of an answer. text: what was found and, if it is not right, what is missing."""

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
        try:
            module = load(file, "capstan_answer")
        except FAILURES as error:
            raise AnswerError(failure_text(file, error)) from error
        if module is None:
            raise AnswerError(f"{file}: its name must end in .py")
        self._module = module

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
            except FAILURES as error:
                raise AnswerError(failure_text(self._file, error)) from error

        return call
