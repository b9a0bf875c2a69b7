"""The form in which every benchmark gives its figures."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from capstan_client.errors import CapstanError
from topologies.cores import own_cores


class ToolError(CapstanError, RuntimeError):
    """What a benchmark needs, a program or a machine with time for it, is not here or fails; the text says what."""


class BenchmarkError(ToolError):
    """What was to be measured did not happen; the text says what is missing."""


@dataclass(frozen=True, slots=True)
class Goal:
    """What a figure should reach on a machine with that many cores or more."""

    value: float
    cores: int = 1


Goals = float | Goal | tuple[Goal, ...] | None
"""A number: on every machine. Several: each for machines of its size. None: a figure for comparison only."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured figure, and what it should reach.

    bound: the true value may be better, and is not worse: such a figure can meet its goal, and not miss it.
    """

    value: float
    unit: str
    goal: Goals = None
    better: Literal["lower", "higher"] = "lower"
    bound: bool = False

    def goal_for(self, cores: float) -> Goal | None:
        """Return the goal for a machine with so many cores; where all are for larger ones, the smallest of those."""
        if self.goal is None:
            return None
        if not isinstance(self.goal, tuple):
            return self.goal if isinstance(self.goal, Goal) else Goal(self.goal)
        by_size = sorted(self.goal, key=lambda goal: goal.cores)
        return next((goal for goal in reversed(by_size) if goal.cores <= cores), by_size[0])

    def met(self, cores: float) -> bool | None:
        """Return whether the goal is reached on a machine with so many cores.

        None without a goal, on a machine that is smaller than it is stated for, and where a bound says nothing.
        """
        goal = self.goal_for(cores)
        if goal is None or goal.cores > cores:
            return None
        reached = self.value <= goal.value if self.better == "lower" else self.value >= goal.value
        return None if self.bound and not reached else reached

    def to_dict(self, cores: float) -> dict[str, Any]:
        """Return the figure as JSON has it, judged on a machine with so many cores."""
        goal = self.goal_for(cores)
        return {
            "value": self.value,
            "unit": self.unit,
            "goal": goal.value if goal is not None else None,
            "goal_cores": goal.cores if goal is not None else None,
            "better": self.better,
            "bound": self.bound,
            "met": self.met(cores),
        }


def verdict(figure: Mapping[str, Any]) -> str:
    """Return in a word whether a goal is reached; empty without one. figure: as `Figure.to_dict` gives it."""
    if figure["goal"] is None:
        return ""
    if figure["met"] is not None:
        return "yes" if figure["met"] else "NO"
    return "no verdict"


def verdict_notes(figures: Iterable[Mapping[str, Any]], cores: float) -> list[str]:
    """Return why some figures have no verdict, a line a reason. figures: as `Figure.to_dict` gives them."""
    open_ones = [figure for figure in figures if verdict(figure) == "no verdict"]
    larger = sorted({figure["goal_cores"] for figure in open_ones if figure["goal_cores"] > cores})
    notes = [f"no verdict on goals for {least} cores: this machine has {cores:g}" for least in larger]
    if any(figure["goal_cores"] <= cores for figure in open_ones):
        notes.append("no verdict where a value is `at most`: the true one may reach the goal")
    return notes


def goal_words(figure: Mapping[str, Any]) -> str:
    """Return `<= 5`, or `<= 5 on 4 cores`; empty without a goal. figure: as `Figure.to_dict` gives it."""
    if figure["goal"] is None:
        return ""
    sign = "<=" if figure["better"] == "lower" else ">="
    where = f" on {figure['goal_cores']} cores" if figure["goal_cores"] > 1 else ""
    return f"{sign} {figure['goal']:g}{where}"


def percentile(values: Sequence[float], percent: int) -> float:
    """Return a percentile of at least one value, interpolated."""
    if len(values) == 1:
        return values[0]
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1]


def document(figures: Mapping[str, Figure], notes: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the JSON document of one benchmark: figures by name, and the machine that they were measured on."""
    here = machine()
    return {
        "figures": {name: figure.to_dict(here["cores"]) for name, figure in figures.items()},
        "notes": list(notes),
        "machine": here,
    }


def machine() -> dict[str, Any]:
    """Return what a reader needs to judge a figure: processor, cores, memory, kernel, Python, Open vSwitch."""
    info = Path("/proc/cpuinfo").read_text()
    models = [line.split(":", 1)[1].strip() for line in info.splitlines() if line.startswith("model name")]
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "processor": models[0] if models else platform.machine(),
        "cores": own_cores().effective,
        "memory_gib": round(pages / 2**30, 1),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "load_average": os.getloadavg()[0],
    }
