"""What a check or a submission takes, and how it is said what is wrong with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal

from msgspec import Meta

from capstan_client.errors import CapstanError
from controller.api.bodies import MOST_RUN_MS
from controller.api.describing import Published
from experiments.results.packet_trace import WINDOW_MS
from experiments.spec.schema import schema

MOST_WINDOW_MS: Final = 600_000


@dataclass(frozen=True, slots=True)
class RecordBody:
    """Which window of a run is recorded packet by packet. from_ms: null: from the first short flow on."""

    from_ms: Annotated[float, Meta(ge=0, le=MOST_RUN_MS)] | None = None
    for_ms: Annotated[float, Meta(ge=1, le=MOST_WINDOW_MS)] = WINDOW_MS


@dataclass(frozen=True, slots=True)
class CheckBody:
    """What is checked: one of spec (as plain data), text (YAML) and preset (a name); and what differs from it.

    kind: run in a lab (`experiment`), or packet by packet (`simulation`). sweep: instead of the spec's: a list of axes
    as in a spec, or `{"dotted.field": [values]}`. schemes: names instead of the spec's. set: values of dotted fields.
    record: in a lab: record a window of each scheme's first run packet by packet; null: none.
    """

    spec: dict[str, Any] | None = None
    text: str | None = None
    preset: str | None = None
    kind: Literal["experiment", "simulation"] = "experiment"
    name: str | None = None
    seed: int | None = None
    repeats: int | None = None
    schemes: list[str] | None = None
    sweep: Any = None
    set: dict[str, Any] = field(default_factory=dict)
    record: RecordBody | None = None


@dataclass(frozen=True, slots=True)
class SubmissionBody(CheckBody):
    """What is submitted, as for a check; its spec has to fit the published schema."""

    spec: Annotated[dict[str, Any], Published("Spec", schema)] | None = None


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """A problem with one field: field as in ``text`` or ``spec.workload.flows.count``; line 0: not of a text."""

    field: str
    message: str
    line: int = 0
    column: int = 0


class SubmissionError(CapstanError, ValueError):
    """Everything that is wrong with a request."""

    def __init__(self, problems: list[FieldProblem]) -> None:
        super().__init__(f"{problems[0].field}: {problems[0].message}")
        self.problems = problems
