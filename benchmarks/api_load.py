"""Many clients of the API at once, each asking again once it is answered: by wrk where it is, else in Python."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from benchmarks.api_clients import SCRIPT
from benchmarks.figures import ToolError
from experiments.run.deployment import ROOT, Deployment

CLIENTS: Final = 50
PATIENCE_S: Final = 30.0


class LoadError(ToolError):
    """Requests failed; the text says how many."""


@dataclass
class Load:
    """What all clients together have measured. ``us``: answers by the microseconds that they took."""

    us: Counter[int] = field(default_factory=Counter)
    seconds: float = 0.0

    def __iadd__(self, other: Load) -> Load:
        self.us += other.us
        self.seconds += other.seconds
        return self

    @property
    def answers(self) -> int:
        return self.us.total()

    def percentile_ms(self, percent: float) -> float:
        """Return the least time within which so many answers came. Raises LoadError if there was none."""
        remaining = self.answers * percent / 100
        for us, count in sorted(self.us.items()):
            remaining -= count
            if remaining <= 0:
                return us / 1e3
        raise LoadError("no request was answered")


def program() -> str:
    """Return the program that asks."""
    return "wrk" if shutil.which("wrk") else "our clients in Python (apt-get install wrk for faster ones)"


@contextmanager
def load(lab: Deployment, seconds: float, apart: bool = False) -> Iterator[Load]:
    """Run so many seconds of it, beside what the block does; the result is whole after the block.

    apart: every request is unlike all others. Raises LoadError if a request failed.
    """
    place = urlsplit(lab.client.url)
    argv = _argv(str(place.hostname), str(place.port), seconds, apart)
    process = lab.lab.popen(None, argv, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    measured = Load()
    try:
        yield measured
        output, _ = process.communicate(timeout=seconds + PATIENCE_S)
    except BaseException:
        process.kill()
        raise
    if process.returncode:
        raise LoadError(f"`{' '.join(argv)}` ended with {process.returncode}: {output.strip()[-500:]}")
    measured += parse(json.loads(output.strip().splitlines()[-1]))


def parse(document: dict[str, Any]) -> Load:
    """Return what either program prints. Raises LoadError if a request failed."""
    if document["refused"] or document["broken"]:
        raise LoadError(
            f"of {document['requests']} requests {document['refused']} were answered by an error, "
            f"{document['broken']} connections or answers broke off"
        )
    counts: Counter[int] = Counter()
    for us, count in document["us"]:
        counts[us] += count
    return Load(counts, document["seconds"])


def _argv(address: str, port: str, seconds: float, apart: bool) -> Sequence[str]:
    how = ["apart"] if apart else []
    if shutil.which("wrk"):
        # A thread of wrk's serves thousands of requests a second; a second one would take a core from the lab.
        options = ["-t1", f"-c{CLIENTS}", f"-d{max(1, round(seconds))}s", "--timeout", "10s"]
        return ["wrk", *options, "-s", str(SCRIPT), f"http://{address}:{port}", "--", *how]
    return [sys.executable, "-m", "benchmarks.api_clients", address, port, str(CLIENTS), str(seconds), *how]
