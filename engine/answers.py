"""What the engine's routes answer."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypedDict

from controller.api.answers import FabricView
from controller.api.answers_experiments import WindowView
from controller.api.answers_live import LinksView


class WrongView(TypedDict):
    """A problem with one field of a submission; line and column from 1, null where it was no text."""

    field: str
    message: str
    line: int | None
    column: int | None


class CheckView(TypedDict):
    """``points``: of a sweep, else 0; ``runs``: of all points; ``estimated_s``: how long they may take.
    ``simulated``: not in a lab."""

    ok: bool
    problems: list[WrongView]
    kind: Literal["experiment", "sweep"] | None
    points: int
    runs: int
    schemes: list[str]
    estimated_s: float | None
    simulated: bool


class PresetClaim(TypedDict):
    """What a paper claims: scheme *scheme* is better than *against* in *measure*."""

    text: str
    source: str
    figure: str
    measure: str
    scheme: str
    against: str


class PresetView(TypedDict):
    """A spec that comes with Capstan; ``text``: its YAML."""

    name: str
    title: str
    description: str
    points: int
    runs: int
    schemes: list[str]
    estimated_s: float
    claims: list[PresetClaim]
    text: str


class SpecsView(TypedDict):
    """The presets, by name."""

    presets: list[PresetView]


class RatioView(TypedDict):
    """The ratio of two schemes at one point of a sweep (``point``: "" where there is none), with its 95 % interval."""

    point: str
    ratio: float
    low: float | None
    high: float | None


class FoundView(TypedDict):
    """What a claim came to; ``note``: how a lab differed from the preset, or why no lab can judge it."""

    verdict: Literal[
        "holds",
        "more",
        "in part",
        "not",
        "open",
        "not simulated",
        "not run",
        "no figure",
        "simulated only",
    ]
    figures: list[RatioView]
    note: str


class EvidenceRowView(TypedDict):
    """``why``: why it does not hold, in Markdown."""

    simulated: FoundView
    on_switches: FoundView
    why: str


class EvidenceClaim(TypedDict):
    """A claim of a paper; ``compared``: both schemes, the measure and what the paper says of their ratio.
    ``row``: as in docs/evidence.md; null while the preset is not simulated there."""

    preset: str
    paper: str
    text: str
    source: str
    figure: str
    scheme: str
    against: str
    compared: str
    row: EvidenceRowView | None


class EvidenceView(TypedDict):
    """Claims of the presets, in their order."""

    claims: list[EvidenceClaim]


class EngineView(TypedDict):
    """``workers``: how many labs run at the same time; ``simulation_workers``: how many workers that simulate, none of
    them beside a lab; ``running``, ``queued``: numbers of submissions, next first;
    ``paused``: why no worker is started just now."""

    executor: Literal["local", "dask"]
    address: str | None
    workers: int
    simulation_workers: int
    running: list[int]
    queued: list[int]
    paused: str | None


class KeptView(TypedDict):
    """A run that is there already."""

    label: str
    repeat: int
    run: int


class Claim(TypedDict):
    """What a worker is to run: an experiment or a sweep's point. ``record``: null: no packets."""

    experiment: int
    parent: int | None
    attempt: int
    spec: dict[str, Any]
    fabric: str
    simulated: bool
    kept: list[KeptView]
    record: Annotated[dict[str, Any], WindowView] | None


class ClaimView(TypedDict):
    """``claim``: null while there is nothing to do."""

    claim: Claim | None


class GoOnView(TypedDict):
    """``go_on``: false for a worker that is to stop: the experiment is cancelled, or another one's."""

    go_on: bool


class SimulatedRunView(TypedDict):
    """A run that goes on. ``experiment``: whose run it is: itself, or a point of the sweep that was asked for;
    ``scheme``: its label; ``repeat``: from 1 on; ``at_s``: seconds of the run's time. ``loads``: ``at`` is when they
    came, ``interval_s`` is of the run's time."""

    experiment: int
    scheme: str
    repeat: int
    at_s: float
    fabric: FabricView
    loads: LinksView


class SimulatedLinksView(TypedDict):
    """``run``: null if none is simulated now, before its first sample, and where its fabric is too large for one."""

    run: SimulatedRunView | None
