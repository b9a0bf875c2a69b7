"""How a session shares the processors with others.

With the kernel's autogroup (sched(7)) sessions share evenly, whatever they run: a nice value, or the idle policy,
counts only among the processes of one.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Final

LAST: Final = 19
"""The nice value that takes the least."""


def stand_back(leader: int, nice: int) -> None:
    """Give the session that *leader* leads a nice value among sessions; nothing changes where the kernel has none."""
    with suppress(OSError):
        Path(f"/proc/{leader}/autogroup").write_text(str(nice), encoding="ascii")
