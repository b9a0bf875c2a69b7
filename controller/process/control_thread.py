"""Threads that the controller cannot do without: when one dies of an error, the process has to end, and to say why.

A thread that dies silently leaves a process that looks alive and does nothing. The first death is kept here: the
fabric's state is refused from then on (so health fails), and `controller.app.serve` ends with its text.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from capstan_client.errors import CapstanError
from controller.process.time_slices import ask_for_precedence, ask_for_short_slices

LOG: Final = logging.getLogger("capstan")


class ControlThreadDiedError(CapstanError, RuntimeError):
    """A thread that the controller needs has died; the text says which one, and of what."""


@dataclass(slots=True)
class _Watch:
    """The first death in this process, and who wants to know of it."""

    death: ControlThreadDiedError | None = None
    notify: Callable[[], object] | None = None


_LOCK: Final = threading.Lock()
_WATCH: Final = _Watch()


class ControlThread(threading.Thread):
    """A daemon thread that does *work*; an error that *work* lets out is a death (`first_death`).

    urgent: once it wakes it is to have a processor before others that compute, as far as the kernel lets it ask so.
    """

    def __init__(self, work: Callable[[], object], name: str, urgent: bool = False) -> None:
        super().__init__(name=name, daemon=True)
        self._work = work
        self._urgent = urgent

    def run(self) -> None:
        """Do the work; called by `start`."""
        try:
            if self._urgent:
                ask_for_precedence()
                ask_for_short_slices()
            self._work()
        except BaseException as error:
            LOG.critical("the thread %r died", self.name, exc_info=True)
            _note(
                ControlThreadDiedError(
                    f"the thread {self.name!r} died of {error!r}; the log has its traceback. "
                    "Switches and agents go on with what they have: start the controller again"
                )
            )


def first_death() -> ControlThreadDiedError | None:
    """Return why the first control thread died, or None while all of them live."""
    return _WATCH.death


def check_control_threads() -> None:
    """Raise ControlThreadDiedError if a control thread has died."""
    if _WATCH.death is not None:
        raise _WATCH.death


def on_first_death(notify: Callable[[], object] | None) -> None:
    """Have *notify* called at the first death, in the thread that dies (at once if it was before); None: no more."""
    with _LOCK:
        _WATCH.notify = notify
        died = _WATCH.death is not None
    if died and notify is not None:
        notify()


def forget_deaths() -> None:
    """Count as if no control thread had died; for tests that let one die on purpose."""
    with _LOCK:
        _WATCH.death = None


def _note(death: ControlThreadDiedError) -> None:
    with _LOCK:
        if _WATCH.death is not None:
            return
        _WATCH.death, notify = death, _WATCH.notify
    if notify is not None:
        notify()
