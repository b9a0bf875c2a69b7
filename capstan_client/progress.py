"""Where an experiment at a controller is."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True, slots=True)
class Progress:
    """Where an experiment is. Flows are those of the runs that are on; left_s: None when it is over."""

    state: str
    stage: str
    runs_done: int
    runs: int
    points_done: int
    points: int
    flows_finished: int
    flows_failed: int
    flows: int
    elapsed_s: float
    left_s: float | None
    queue_position: int | None

    @classmethod
    def of(cls, view: dict[str, Any]) -> Progress:
        """Return the progress that the API answered."""
        return cls(**{field.name: view[field.name] for field in fields(cls)})
