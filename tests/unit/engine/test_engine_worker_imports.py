"""What a worker loads before its first run: a sweep waits for it."""

from __future__ import annotations

import subprocess
import sys

LOADS = """
import sys
import cli.commands.work, engine.worker, engine.worker_client, engine.simulated_runs
print(*sorted({"flask", "sqlalchemy", "alembic"} & set(sys.modules)))
"""


def test_a_worker_that_simulates_loads_neither_database_nor_server() -> None:
    """They are the controller's; a worker's start took half as long again with them."""
    done = subprocess.run([sys.executable, "-c", LOADS], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
