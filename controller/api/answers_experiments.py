"""What the API answers about experiments that are kept: runs, records, figures, comparisons."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, TypedDict

from controller.api.describing import With
from controller.schemes.scheme import Mode
from controller.store.models import Experiment, FlowRecord, Run

State = Literal["queued", "running", "cancelling", "finished", "failed", "cancelled", "interrupted"]
Kind = Literal["experiment", "sweep", "point", "recorded"]


class WindowView(TypedDict):
    """The window of each scheme's first run that is recorded; ``from_ms``: null: from the first short flow on."""

    from_ms: float | None
    for_ms: float


class RecordingView(TypedDict):
    """What was recorded of a run on switches, in ms of the run; ``cut``: it ends where the recording was full."""

    from_ms: float
    for_ms: float
    hops: int
    cut: bool


_OF_JOB: Final[dict[str, Any]] = {
    "state": State,
    "kind": Kind,
    "title": str,
    "parent": int | None,
    "point": int | None,
    "at": list[Any] | None,
    "words": str,
    "points": int,
    "started_at": float | None,
    "attempt": int,
    "record": Annotated[dict[str, Any], WindowView] | None,
}
ExperimentObject = Annotated[dict[str, Any], With(Experiment, _OF_JOB)]
_OF_RUN: Final[dict[str, Any]] = {"recording": RecordingView | None}
RunObject = Annotated[dict[str, Any], With(Run, _OF_RUN)]
FlowObject = Annotated[dict[str, Any], FlowRecord]
AddedRun = Annotated[dict[str, Any], With(Run, {**_OF_RUN, "mode_events": int})]


class ChildView(TypedDict):
    """A point of a sweep. ``cpu_limited``: null while it has no results."""

    id: int
    point: int
    at: list[Any]
    words: str
    state: State
    error: str
    cpu_limited: bool | None


ExperimentWithRuns = Annotated[
    dict[str, Any],
    With(
        Experiment,
        {
            **_OF_JOB,
            "runs": list[RunObject],
            "children": list[ChildView],
            "progress": dict[str, Any] | None,
        },
    ),
]


class ExperimentsView(TypedDict):
    """Newest first; ``next``: go on with ``before=next``, null at the end."""

    experiments: list[ExperimentObject]
    next: int | None


class ListedExperiment(TypedDict):
    """What a list shows of an experiment, as in the whole of it."""

    id: int
    name: str
    state: State
    kind: Kind
    points: int
    simulated: bool
    created_at: float
    started_at: float | None
    finished_at: float | None


class ListedExperimentsView(TypedDict):
    """Newest first; ``next``: go on with ``before=next``, null at the end."""

    experiments: list[ListedExperiment]
    next: int | None


class ResultsView(TypedDict):
    experiment: ExperimentObject
    runs: list[RunObject]
    summary: dict[str, Any] | None


class FlowsView(TypedDict):
    """Oldest first; ``next``: go on with ``after=next``, null at the end."""

    flows: list[FlowObject]
    next: int | None


class KeptMode(TypedDict):
    """A mode change during a run; ``at_s``: from the run's start."""

    run: int
    at_s: float
    leaf: str
    mode: Mode
    cause: str


class KeptModes(TypedDict):
    modes: list[Annotated[dict[str, Any], KeptMode]]


class FigureView(TypedDict):
    """A figure: ``NAME.FORMAT`` beside the list of them."""

    name: str
    caption: str
    formats: list[Literal["svg", "png"]]


class FiguresView(TypedDict):
    figures: list[FigureView]


class ExperimentHead(TypedDict):
    id: int
    name: str
    state: State
    created_at: float


class EstimateView(TypedDict):
    """``low`` and ``high``: its interval, null where it has none; ``n``: flows that it is of."""

    mean: float
    low: float | None
    high: float | None
    n: int | None


class ComparedMeasure(TypedDict):
    """``name``: as in summaries; ``title``: for people, without the unit; ``ratio``: b / a, null where a is 0."""

    name: str
    title: str
    unit: str
    better: Literal["less", "more"]
    a: EstimateView
    b: EstimateView
    ratio: float | None


class ComparedScheme(TypedDict):
    """``cpu_limited``, ``disturbed``: of a and of b."""

    label: str
    cpu_limited: list[bool]
    disturbed: list[bool]
    measures: list[ComparedMeasure]


class ComparisonView(TypedDict):
    """``experiments``: a and b; ``schemes``: those that both have, with what both have measured."""

    experiments: list[ExperimentHead]
    schemes: list[ComparedScheme]
