"""A submission as the experiments that it stands for, or everything that is wrong with it."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import yaml

from controller.schemes.loader import lab_scheme_names, scheme_names
from controller.schemes.overrides import overrides_problem
from controller.store.queue import NewJob
from engine.estimate import expected_s, simulated_s
from engine.requested_spec import changes_of, need_no_own_schemes, retitled, text_of, with_changes
from engine.simulated_check import tried_here
from engine.size_budget import SizeBudget
from engine.submission_bodies import FieldProblem, RecordBody, SubmissionBody, SubmissionError
from experiments.spec.check import find_spec, problems_of
from experiments.spec.serialized import plain, spec_to_dict
from experiments.spec.spec import Axis, Spec, is_scheme_file, spec_from_dict, with_all_schemes
from experiments.spec.sweep import MOST_POINTS, SweepError, check_axes, grid, points, words
from plain.reading import PlainError, build
from plain.yaml_source import Problem, Source, read
from simulation.no_lab import no_lab

MOST_RUNS: Final = 10_000
MOST_GRID_BYTES: Final = 4 << 20
"""Of a spec's text, once for each point of its sweep: each is kept with its own."""
MOST_GRID_VALUES: Final = 500_000
"""Of a spec's values, once for each point."""
MOST_RECORDED: Final = 32
"""Recordings of one submission, each of some 3 MB at most."""


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
    where, text = text_of(request)
    source = read(text, "")
    changed = changes_of(request)
    if not source.problems and isinstance(source.data, dict) and changed:
        need_no_own_schemes(request, source.data)
        changed = retitled(source.data, request.schemes) | changed
        text = yaml.safe_dump(
            plain(with_changes(source.data, changed)), sort_keys=False, allow_unicode=True, width=110
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
        placed = text == request.text  # else these are lines of what it has become
        raise SubmissionError([_field_problem(problem, where, placed) for problem in problems])
    if simulated and request.record is not None:
        raise SubmissionError([FieldProblem("record", _NOT_SIMULATED)])
    submission = _submission(with_all_schemes(spec_from_dict(source.data), lambda: every), text, simulated)
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
    spec = with_all_schemes(spec_from_dict(read(text, name).data), lab_scheme_names)
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
