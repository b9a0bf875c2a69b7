"""A submission as the experiments that it stands for, or everything that is wrong with it."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Annotated, Any, Final, Literal

import yaml
from msgspec import Meta

from capstan_client.errors import CapstanError
from controller.api.bodies import MOST_RUN_MS
from controller.api.describing import Published
from controller.schemes.loader import lab_scheme_names, scheme_names
from controller.schemes.overrides import overrides_problem
from controller.store.queue import NewJob
from engine.estimate import expected_s, simulated_s
from engine.simulated_check import tried_here
from engine.size_budget import SizeBudget
from experiments.results.packet_trace import WINDOW_MS
from experiments.spec.check import find_spec, preset_names, problems_of
from experiments.spec.schema import schema
from experiments.spec.spec import (
    Axis,
    Spec,
    is_scheme_file,
    plain,
    spec_from_dict,
    spec_to_dict,
    title_with,
    with_all_schemes,
)
from experiments.spec.sweep import MOST_POINTS, SweepError, check_axes, grid, points, set_field, words
from plain.reading import PlainError, build, did_you_mean
from plain.yaml_source import Problem, Source, read
from simulation.no_lab import no_lab

MOST_BYTES: Final = 1 << 20
"""Of a spec's text."""
MOST_RUNS: Final = 10_000
MOST_GRID_BYTES: Final = 4 << 20
"""Of a spec's text, once for each point of its sweep: each is kept with its own."""
MOST_GRID_VALUES: Final = 500_000
"""Of a spec's values, once for each point."""
MOST_WINDOW_MS: Final = 600_000
MOST_RECORDED: Final = 32
"""Recordings of one submission, each of some 3 MB at most."""
DEEPEST_FIELD: Final = 32
"""Names in a dotted path."""
_ONE_OF: Final = ("spec", "text", "preset")


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


@dataclass(frozen=True, slots=True)
class Submission:
    """spec: as it will run; text: the same as YAML; job and points: what is queued (no points: no sweep)."""

    spec: Spec
    text: str
    job: NewJob
    points: tuple[NewJob, ...]


TryOut = Callable[[Spec, int], str]
"""Returns what a simulation would refuse in a spec (empty: nothing), whose links x points x schemes are given."""


def read_submission(request: SubmissionBody, try_out: TryOut = tried_here) -> Submission:
    """Return the submission that a request stands for. Raises SubmissionError."""
    where, text = _text(request)
    source = read(text, "")
    changed = _changed(request)
    if not source.problems and isinstance(source.data, dict) and changed:
        changed = _retitled(source.data, request.schemes) | changed
        text = yaml.safe_dump(
            plain(_with_changes(source.data, changed)), sort_keys=False, allow_unicode=True, width=110
        )
        source = read(text, "")
    _need_small(source, text, where)
    simulated = request.kind == "simulation"
    every = scheme_names() if simulated else lab_scheme_names()
    size = SizeBudget(len(every), simulated)
    files = _files(source.data, size)
    if too_large := size.problem():
        raise SubmissionError([FieldProblem(where, too_large)])
    problems = files or problems_of(source, scheme_names(), overrides_problem)
    if problems:
        placed = request.text is not None and not changed
        raise SubmissionError([_field_problem(problem, where, placed) for problem in problems])
    if simulated and request.record is not None:
        raise SubmissionError([FieldProblem("record", _NOT_SIMULATED)])
    submission = _submission(with_all_schemes(spec_from_dict(source.data), every), text, simulated)
    if submission.job.runs > MOST_RUNS:
        raise SubmissionError(
            [FieldProblem(where, f"more than {MOST_RUNS} runs: take fewer points or repeats")]
        )
    if simulated:
        if refused := try_out(submission.spec, size.scheme_links):
            raise SubmissionError([FieldProblem(where, refused)])
        return submission
    problem = no_lab(submission.spec)
    if problem is not None:
        raise SubmissionError([FieldProblem(where, f"{problem} (kind: simulation)")])
    return submission if request.record is None else _recorded(submission, request.record)


def _recorded(submission: Submission, window: RecordBody) -> Submission:
    """Return a submission whose first runs are recorded. Raises SubmissionError for too many of them."""
    points, schemes = max(1, len(submission.points)), len(submission.spec.schemes)
    if points * schemes > MOST_RECORDED:
        raise SubmissionError(
            [
                FieldProblem(
                    "record",
                    f"is for {MOST_RECORDED} runs at most, one of each scheme at each point, and these are "
                    f"{points * schemes}: take fewer points or schemes, or record none",
                )
            ]
        )
    record = asdict(window)
    return replace(
        submission,
        job=replace(submission.job, record=record),
        points=tuple(replace(point, record=record) for point in submission.points),
    )


def preset_submission(name: str) -> Submission:
    """Return the preset *name* as it is, simulated where no lab can run it.

    Nothing else is checked, which takes seconds: presets are right.
    """
    text = find_spec(name).read_text(encoding="utf-8")
    spec = with_all_schemes(spec_from_dict(read(text, name).data), lab_scheme_names())
    return _submission(spec, text, no_lab(spec) is not None)


def _submission(spec: Spec, text: str, simulated: bool = False) -> Submission:
    jobs = [
        _job(point.spec, text, point=point.at, words=words(spec.sweep, point.at), simulated=simulated)
        for point in points(spec)
    ]
    if not spec.sweep:
        return Submission(spec, text, replace(jobs[0], at=None, words=""), ())
    total = replace(
        _job(spec, text, point=None, words="", simulated=simulated),
        runs=sum(job.runs for job in jobs),
        estimated_s=sum(job.estimated_s for job in jobs),
    )
    return Submission(spec, text, total, tuple(jobs))


def fabric_key(spec: Spec) -> str:
    """Return what is equal for specs that one lab can serve."""
    shape = {name: value for name, value in spec_to_dict(spec).items() if name in ("fabric", "transport")}
    return hashlib.sha256(json.dumps(plain(shape), sort_keys=True).encode()).hexdigest()[:16]


def _job(spec: Spec, text: str, *, point: tuple[Any, ...] | None, words: str, simulated: bool) -> NewJob:
    return NewJob(
        name=spec.name,
        title=spec.title,
        seed=spec.seed,
        spec=plain(spec_to_dict(spec)),
        text=text,
        runs=len(spec.schemes) * spec.repeats,
        estimated_s=simulated_s(spec) if simulated else expected_s(spec),
        fabric=fabric_key(spec),
        at=point,
        words=words,
        simulated=simulated,
    )


def _text(request: SubmissionBody) -> tuple[str, str]:
    """Return the field that has the spec, and the spec's text."""
    given = [name for name in _ONE_OF if getattr(request, name) is not None]
    if len(given) != 1:
        raise SubmissionError([FieldProblem("", f"exactly one of {', '.join(_ONE_OF)} is needed")])
    where = given[0]
    if request.preset is not None:
        if request.preset not in preset_names():
            hint = did_you_mean(request.preset, preset_names())
            raise SubmissionError([FieldProblem("preset", f"preset {request.preset!r} is not known{hint}")])
        return where, find_spec(request.preset).read_text(encoding="utf-8")
    if request.spec is not None:
        return where, yaml.safe_dump(request.spec, sort_keys=False, allow_unicode=True, width=110)
    assert request.text is not None
    if len(request.text.encode()) > MOST_BYTES:
        raise SubmissionError([FieldProblem(where, f"is longer than {MOST_BYTES >> 10} KiB")])
    return where, request.text


def _changed(request: SubmissionBody) -> dict[str, Any]:
    """Return values of dotted fields of the spec that the request gives."""
    fields = {
        "name": request.name,
        "seed": request.seed,
        "repeats": request.repeats,
        "schemes": request.schemes,
    }
    own = {name: value for name, value in fields.items() if value is not None}
    changed = own | {path: value for path, value in request.set.items() if path not in own}
    if request.schemes is not None:  # what the spec says of its own schemes goes, what the request says stays
        changed = {"baseline": None, "claims": None} | changed
    if request.sweep is not None:
        changed["sweep"] = _axes(request.sweep)
    return changed


def _retitled(data: Mapping[str, Any], schemes: list[str] | None) -> dict[str, Any]:
    """Return the spec's title for the schemes that a request has run in place of its own; empty: as it is."""
    title, own = data.get("title"), data.get("schemes")
    if schemes is None or not isinstance(title, str) or not isinstance(own, list):
        return {}
    named = [_label(item) for item in own]
    return {"title": title_with(title, [label for label in named if label], schemes)}


def _label(scheme: Any) -> str:
    """Return what tables call a scheme of a spec that nothing has checked; empty: it is none."""
    given = (scheme.get("label") or scheme.get("name")) if isinstance(scheme, Mapping) else scheme
    return given if isinstance(given, str) else ""


def _axes(sweep: Any) -> Any:
    """Return a sweep's short form, `{"dotted.field": [values]}`, as axes; anything else as it is."""
    if not isinstance(sweep, Mapping):
        return sweep
    last = Counter(str(path).rpartition(".")[2] for path in sweep)
    return [
        {"label": _axis_label(str(path), last), "fields": [path], "values": values}
        for path, values in sweep.items()
    ]


def _axis_label(path: str, last: Mapping[str, int]) -> str:
    """Return what tables call an axis: the last name of its field, or all of them where two axes end alike."""
    name = path.rpartition(".")[2]
    return (name if last[name] == 1 else path.replace(".", " ")).replace("_", " ")


def _with_changes(data: dict[str, Any], changed: Mapping[str, Any]) -> dict[str, Any]:
    for path, value in changed.items():
        if value is None and path in data:
            del data[path]  # what belongs to other schemes
        elif path.count(".") >= DEEPEST_FIELD:
            raise SubmissionError([FieldProblem(f"set.{path[:100]}", "is not a field of this spec")])
        elif value is not None or "." in path:
            try:
                set_field(data, path, value)
            except (SweepError, IndexError, TypeError, ValueError, AttributeError):
                raise SubmissionError([FieldProblem(f"set.{path}", "is not a field of this spec")]) from None
    return data


def _need_small(source: Source, text: str, where: str) -> None:
    """Raise SubmissionError for a spec that is too large for as many points as its sweep has."""
    axes = source.data.get("sweep") if isinstance(source.data, dict) else None
    counts = [
        len(axis["values"])
        for axis in (axes if isinstance(axes, list) else [])
        if isinstance(axis, dict) and isinstance(axis.get("values"), list)
    ]
    grid_points = min(math.prod(counts), MOST_POINTS)
    if grid_points > 1 and (
        grid_points * len(text) > MOST_GRID_BYTES or grid_points * len(source.values) > MOST_GRID_VALUES
    ):
        raise SubmissionError(
            [
                FieldProblem(
                    where, f"is too large for a sweep of {grid_points} points: leave points or text out"
                )
            ]
        )


_NOT_SIMULATED: Final = (
    "is for runs in a lab: leave it out; a simulation that is over is simulated again when its packets are "
    "asked for"
)


def _files(data: Any, size: SizeBudget) -> list[Problem]:
    """Return which schemes are files, at any point: a submission names none of the controller's machine. size: points
    are counted there.
    """
    if not isinstance(data, dict):
        return []
    problems = [
        Problem(1, 1, f"schemes[{index}]", f"{name!r} is a file: {_NO_FILES}")
        for index, name in _file_names(data)
    ]
    try:
        axes = tuple(build(Axis, item, "sweep") for item in data.get("sweep") or ())
        check_axes(axes)
        named: set[str] = set()
        for _, point in grid(data, axes):
            size.add(point)
            named.update(name for _, name in _file_names(point))
    except (PlainError, SweepError, TypeError):
        size.add(data)
        return problems  # all that is wrong with the sweep is said with the rest
    return problems or [Problem(1, 1, "sweep", f"{name!r} is a file: {_NO_FILES}") for name in sorted(named)]


_NO_FILES: Final = "what is submitted names schemes of the controller only"


def _file_names(data: dict[str, Any]) -> Iterator[tuple[int, str]]:
    """Yield the index and the name of each scheme of a spec that is a file."""
    given = data.get("schemes")
    for index, item in enumerate(given if isinstance(given, list) else []):
        name = item.get("name") if isinstance(item, dict) else item
        if isinstance(name, str) and is_scheme_file(name):
            yield index, name


def _field_problem(problem: Problem, where: str, placed: bool) -> FieldProblem:
    path = f"{where}.{problem.path}" if problem.path else where
    position = (problem.line, problem.column) if placed else (0, 0)
    return FieldProblem(path, problem.message, *position)
