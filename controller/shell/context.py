"""What the parts of the shell's thread act on together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from controller.openflow.switchboard import Switchboard
from controller.shell.confirmations import Confirmations
from controller.shell.shell_events import ShellEvent


@dataclass(frozen=True, slots=True)
class ShellContext:
    """confirmations: trace what switches confirm of mode changes. counters: of what happens, by name.
    on_event: gets every event. now: seconds, monotonic.
    """

    board: Switchboard
    confirmations: Confirmations
    counters: Counter[str]
    on_event: Callable[[ShellEvent], None]
    now: Callable[[], float]
