"""A launcher may have as many files open as its lab needs, where the machine lets it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
LIMITED = """
import resource, sys
from topologies.open_files import allow_open_files
soft, hard, wanted = map(int, sys.argv[1:])
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
allow_open_files(wanted)
print(*resource.getrlimit(resource.RLIMIT_NOFILE))
"""


@pytest.mark.parametrize(
    ("soft", "hard", "wanted", "then"),
    [(64, 500, 200, 200), (64, 100, 200, 100), (300, 500, 200, 300), (64, 64, 200, 64)],
)
def test_the_limit_is_raised_as_far_as_may_be_and_never_lowered(
    soft: int, hard: int, wanted: int, then: int
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, *map(str, (soft, hard, wanted))],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [str(then), str(hard)]
