"""Everything that is wrong with a spec, all at once, with line numbers."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from itertools import islice, product
from pathlib import Path
from typing import Any, Final

from capstan_client.errors import CapstanError
from experiments.spec.meaning import CheckOverrides, Meaning
from experiments.spec.schema_problems import against_schema
from experiments.spec.spec import Axis, Spec, spec_from_dict
from experiments.spec.sweep import SweepError, check_axes, grid, words
from plain.reading import PlainError, build, did_you_mean
from plain.yaml_source import MOST_PROBLEMS, Problem, Source, read, text_of
from plain.yaml_source import Path as FieldPath
from topologies.fabric_spec import canonical_name

PRESETS: Final = Path(__file__).parents[1] / "presets"
_SAME_OF_A_LINK: Final = (("rate_mbps", "rate_gbps"), ("buffer_packets", "buffer_bytes"), ("delay_ms",))
"""Fields of a link, those together that say the same."""


class SpecMissingError(CapstanError, LookupError):
    """No file, and no preset, has this name."""


class SpecError(CapstanError, ValueError):
    """A spec with problems; `problems` has them all, the text one a line."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = problems


def preset_names() -> list[str]:
    """Return the names of the presets that come with Capstan."""
    return sorted(path.stem for path in PRESETS.glob("*.yaml"))


def find_spec(name: str) -> Path:
    """Return the file of a preset's name or of a path. Raise SpecMissingError with a hint."""
    path = Path(name)
    is_path = path.suffix in (".yaml", ".yml") or "/" in name
    if not is_path and name in preset_names():
        return PRESETS / f"{name}.yaml"
    if path.is_file():
        return path
    if path.is_dir():
        raise SpecMissingError(
            f"{name!r} is a directory", remedy="give a YAML file in it, or a preset's name"
        )
    if path.exists():
        raise SpecMissingError(
            f"{name!r} is not a regular file", remedy="give a YAML file, or a preset's name"
        )
    if is_path:
        raise SpecMissingError(f"there is no file {name!r}")
    raise SpecMissingError(f"{name!r} is neither a file nor a preset{did_you_mean(name, preset_names())}")


def load(
    text: str, filename: str, schemes: Collection[str], check_overrides: CheckOverrides | None = None
) -> Spec:
    """Return the spec in *text*. Raises SpecError with everything that `check` finds."""
    return spec_of(read(text, filename), schemes, check_overrides)


def spec_of(source: Source, schemes: Collection[str], check_overrides: CheckOverrides | None = None) -> Spec:
    """Return the spec that was read as *source*. Raises SpecError with everything that `problems_of` finds."""
    problems = problems_of(source, schemes, check_overrides)
    if problems:
        raise SpecError(problems)
    return spec_from_dict(source.data)


def check(
    text: str, filename: str, schemes: Collection[str], check_overrides: CheckOverrides | None = None
) -> list[Problem]:
    """Return all problems of a spec, by line; none if it can be run.

    schemes: names of the schemes that the controller has. check_overrides: see there.
    """
    return problems_of(read(text, filename), schemes, check_overrides)


def problems_of(
    source: Source, schemes: Collection[str], check_overrides: CheckOverrides | None = None
) -> list[Problem]:
    """Return all problems of a spec that was read as *source*, as `check` does; of very many the first."""
    problems = list(source.problems)
    if source.data is None and not problems:
        problems.append(
            Problem(1, 1, "", "is empty; a spec needs at least name, title, fabric, schemes, workload")
        )
    if source.data is not None:
        problems += islice(against_schema(source), MOST_PROBLEMS)
        if isinstance(source.data, dict) and len(problems) < MOST_PROBLEMS:
            problems += Meaning(source, problems).problems(schemes, check_overrides)
            problems += _sweep(source, problems, schemes, check_overrides)
    return list(dict.fromkeys(replace(item, filename=source.filename) for item in sorted(problems)))


def _sweep(
    source: Source,
    problems: list[Problem],
    schemes: Collection[str],
    check_overrides: CheckOverrides | None,
) -> Iterator[Problem]:
    """Yield what is wrong with a sweep, and with the specs that it stands for where the spec itself is fine."""
    if not source.data.get("sweep") or any(problem.path.startswith("sweep") for problem in problems):
        return
    try:
        axes = tuple(build(Axis, item, "sweep") for item in source.data["sweep"])
    except PlainError as error:
        yield Problem(*source.place(("sweep",)), "sweep", f"{error.where}: {error.what}")
        return
    try:
        check_axes(axes)
        data = list(grid(source.data, axes))
    except SweepError as error:
        where: FieldPath = ("sweep", *error.path)
        yield Problem(*source.place(where), text_of(where), str(error))
        return
    if not any(problem.path.startswith("fabric") for problem in problems):
        for where, text in _not_reached(source.data.get("fabric"), axes):
            yield Problem(*source.place(where), text_of(where), text)
    reported = set()
    for ticks, combination in data:
        combination.pop("claims", None)  # checked once, beside the sweep that they may speak of
        point = replace(source, data=combination, problems=[])
        wrong = list(against_schema(point))
        wrong += Meaning(point, wrong).problems(schemes, check_overrides)
        for problem in wrong:
            if (problem.path, problem.message) in reported or problem in problems:
                continue
            reported.add((problem.path, problem.message))
            cause = _axis_of(problem.path, axes)
            place: FieldPath = ("sweep",) if cause is None else ("sweep", cause)
            text = f"where {words(axes, ticks)}: {problem.path}: {problem.message}"
            yield Problem(*source.place(place), text_of(place), text)


def _not_reached(fabric: Any, axes: tuple[Axis, ...]) -> Iterator[tuple[FieldPath, str]]:
    """Yield the fields that set for all links what an override leaves to them, and what to do.

    Points are made of a spec whose overrides are whole links: these would keep what all links had before the sweep.
    """
    overrides = fabric.get("overrides") if isinstance(fabric, Mapping) else None
    swept: dict[str, FieldPath] = {
        _of_link(field): ("sweep", index, "fields", number)
        for index, axis in enumerate(axes)
        for number, field in enumerate(axis.fields)
    }
    if not isinstance(overrides, Mapping) or swept.keys() & {"fabric", "fabric.overrides"}:
        return
    for kind, same in product(("link", "access"), _SAME_OF_A_LINK):
        of_all = (f"fabric.{kind}", *(f"fabric.{kind}.{one}" for one in same))
        where = next((swept[field] for field in of_all if field in swept), None)
        if where is None:
            continue
        for name, part in overrides.items():
            own = _of_link(f"fabric.overrides.{name}")
            given = own in swept or any(one in (part or {}) or f"{own}.{one}" in swept for one in same)
            if not given and (kind == "access") == ("h" in (name[:1], name.partition("-")[2][:1])):
                yield (
                    where,
                    f"does not reach the override {name}, which has no {same[0]} of its own: give it one, or set "
                    f"{own}.{same[0]}, too",
                )
                break


def _of_link(field: str) -> str:
    """Return a dotted path with the name of an override as fabrics have it."""
    steps = field.split(".")
    if steps[:2] == ["fabric", "overrides"]:
        steps[2:3] = [canonical_name(name) for name in steps[2:3]]
    return ".".join(steps)


def _axis_of(path: str, axes: tuple[Axis, ...]) -> int | None:
    """Return the index of the axis that sets the field at *path*, or something in it."""
    for index, axis in enumerate(axes):
        if any(field.startswith(path) or path.startswith(field) for field in axis.fields):
            return index
    return None
