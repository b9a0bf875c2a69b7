"""The form in which every benchmark gives its figures."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal


class ToolError(RuntimeError):
    """What a benchmark needs, a program or a machine with time for it, is not here or fails; the text says what."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured figure. ``goal`` is what it should reach, None where it is shown for comparison only."""

    value: float
    unit: str
    goal: float | None = None
    better: Literal["lower", "higher"] = "lower"

    @property
    def met(self) -> bool | None:
        """Whether the goal is reached; None without a goal."""
        if self.goal is None:
            return None
        return self.value <= self.goal if self.better == "lower" else self.value >= self.goal

    def to_dict(self) -> dict[str, Any]:
        return {
            "value": self.value,
            "unit": self.unit,
            "goal": self.goal,
            "better": self.better,
            "met": self.met,
        }


def document(figures: Mapping[str, Figure], notes: tuple[str, ...] = ()) -> dict[str, Any]:
    """The JSON document of one benchmark: figures by name, and the machine that they were measured on."""
    return {
        "figures": {name: figure.to_dict() for name, figure in figures.items()},
        "notes": list(notes),
        "machine": machine(),
    }


def machine() -> dict[str, Any]:
    """What a reader needs to judge a figure: processor, cores, memory, kernel, Python, Open vSwitch."""
    info = Path("/proc/cpuinfo").read_text()
    models = [line.split(":", 1)[1].strip() for line in info.splitlines() if line.startswith("model name")]
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "processor": models[0] if models else platform.machine(),
        "cores": os.cpu_count(),
        "memory_gib": round(pages / 2**30, 1),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "load_average": os.getloadavg()[0],
    }
