"""How many files a lab's launcher may have open: namespaces, shells and programs are descriptors of it."""

from __future__ import annotations

import resource
from typing import Final

MOST_OPEN_FILES: Final = 16_384
"""A fat tree of k = 8 takes some 1300, and many systems let a program have 1024 unless it asks for more."""


def allow_open_files(number: int = MOST_OPEN_FILES) -> None:
    """Raise this process's own limit to so many, or to the most that it may ask for; it is never lowered.

    What it starts from now on has the same limit.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = number if hard == resource.RLIM_INFINITY else min(number, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
