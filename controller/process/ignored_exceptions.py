"""Exceptions that a signal's handler raises where Python ignores them: in `__del__`, or in a weak reference's callback.

Python prints "Exception ignored in" and goes on: the signal would be lost.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

E = TypeVar("E", bound=BaseException)


@contextmanager
def on_ignored(kind: type[E], again: Callable[[E], None]) -> Iterator[None]:
    """Call *again*, within the block, with each exception of *kind* that Python ignores, in place of printing it.

    *again* runs where the exception was ignored, so what it raises is ignored, too: another thread sends the signal.
    """
    before = sys.unraisablehook

    def hook(ignored: UnraisableHookArgs) -> None:
        if isinstance(ignored.exc_value, kind):
            again(ignored.exc_value)
        else:
            before(ignored)

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = before
