"""Specs by name or file, as commands take them; problems are printed, all at once."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path

import click

from cli.console import fail
from controller.schemes import loader
from controller.schemes.overrides import overrides_problem, with_overrides
from controller.schemes.scheme import Scheme
from experiments.spec import check as checking
from experiments.spec.serialized import spec_text
from experiments.spec.spec import (
    SchemeChoice,
    Spec,
    is_scheme_file,
    label_of,
    spec_from_dict,
    title_with,
    with_all_schemes,
)
from experiments.spec.sweep import SweepError, for_schemes, only, schemes_of_points, with_own_claims
from plain.bounds import first_beyond
from plain.reading import PlainError
from plain.text_file import read_text
from plain.yaml_source import Problem, Source, path_of, read
from simulation.no_lab import no_lab


@dataclass(frozen=True, slots=True)
class LoadedSpec:
    """A spec that was read from a file: as commands use it, and as its file has it (text: unless options change it)."""

    spec: Spec
    text: str
    path: Path
    source: Source


def find_spec(name: str) -> Path:
    """Return the file that *name* means; ends with exit code 2 if there is none."""
    try:
        return checking.find_spec(name)
    except checking.SpecMissingError as error:
        fail(str(error), code=2)


def load_scheme(name: str) -> Scheme:
    """Return the scheme *name*, or of a file; ends with exit code 2 if there is none of that name, 1 if it is wrong."""
    try:
        return loader.load(name)
    except loader.SchemeError as error:
        fail(str(error), code=2 if name not in loader.scheme_names() and not loader.is_path(name) else 1)


def load_spec(name: str, schemes: tuple[str, ...] = (), *, lab: bool = False) -> LoadedSpec:
    """Return the spec *name*, with *schemes* in place of its own if there are any; ends with 1 if it is wrong.

    lab: `all` stands for the schemes that switches and agents can carry out.
    """
    path = find_spec(name)
    text = read_text(path)
    source = read(text, str(path))
    problems = checking.problems_of(source, loader.scheme_names(), overrides_problem)
    if problems:
        print_problems(str(path), problems)
        sys.exit(1)
    every = loader.lab_scheme_names if lab else loader.scheme_names
    spec = with_all_schemes(spec_from_dict(source.data), every)
    if schemes:
        choices = _chosen(schemes)
        labels = [[choice.label for choice in group] for group in (spec.schemes, choices)]
        title = title_with(spec.title, *labels)
        try:
            sweep = for_schemes(spec.sweep, *labels)
        except SweepError as error:
            fail(f"{name}: {error}", code=2)
        spec = replace(spec, title=title, schemes=choices, baseline=choices[0].label, sweep=sweep)
        spec = with_own_claims(spec)
    return LoadedSpec(spec, text, path, source)


def _chosen(names: tuple[str, ...]) -> tuple[SchemeChoice, ...]:
    """Return schemes in place of a spec's own, each under a label that no other has: its name, or that of its file if
    another scheme has the same name. Ends with exit code 2 where two labels are equal all the same.
    """
    own = [label_of(load_scheme(name).name) for name in names]
    labels = [
        label_of(Path(name).stem) if own.count(label) > 1 and is_scheme_file(name) else label
        for name, label in zip(names, own, strict=True)
    ]
    for name, label in zip(names, labels, strict=True):
        if labels.count(label) > 1:
            fail(
                f"--scheme {name}: another scheme is called {label!r}, too: leave one out, or rename its file",
                code=2,
            )
    return tuple(SchemeChoice(name, label) for name, label in zip(names, labels, strict=True))


def load_lab_spec(name: str, schemes: tuple[str, ...] = ()) -> LoadedSpec:
    """Return the spec *name* for a lab; ends with exit code 1 also for what only a simulation can have."""
    loaded = load_spec(name, schemes, lab=True)
    if (problem := no_lab(loaded.spec)) is not None:
        fail(f"{name}: {problem}")
    return loaded


def simulation_problems(loaded: LoadedSpec) -> list[Problem]:
    """Return the first thing in a spec that a simulation would refuse, at any point, or nothing."""
    from simulation.first_problem import first_problem  # with the simulator, which most commands do without

    spec = with_all_schemes(spec_from_dict(loaded.source.data), loader.scheme_names)
    error = first_problem(spec)
    if error is None:
        return []
    field = path_of(error.where)
    of_sweep = bool(spec.sweep) and field not in loaded.source.values
    return [
        Problem(*loaded.source.place(("sweep",) if of_sweep else field), "", str(error), str(loaded.path))
    ]


def need_path_policy(
    spec: Spec, file: Path | None, remedy: str = "give your file with --path-policy FILE"
) -> None:
    """Raise PathFileError if *file* holds no path policy; end if a scheme asks for one and *file* is None (2).

    A scheme as the spec has it at any point of its sweep, overrides and all.
    """
    if file is not None:
        # with the compiled policies, which `check` and every command's --help do without
        from host_agent.paths.own import read_path_policy

        read_path_policy(file)
        return
    for choice in schemes_of_points(spec):
        try:
            scheme = with_overrides(loader.load(choice.name), choice.overrides)
        except PlainError:  # said, with its place, where the scheme is made to be run
            continue
        if "file" in (scheme.short.entropy, scheme.long.entropy, scheme.control.entropy):
            fail(f"scheme {choice.name}: has `entropy: file`: {remedy}", code=2)


def print_problems(path: str, problems: list[Problem]) -> None:
    """Print a line for each problem on standard error, and how many there are."""
    for problem in problems:
        click.echo(str(problem), err=True)
    click.echo(f"{path}: {len(problems)} problem{'s' if len(problems) > 1 else ''}", err=True)


@dataclass(frozen=True, slots=True)
class SpecChanges:
    """What the options say in place of the spec. None, empty: as the spec has it."""

    seed: int | None = None
    repeats: int | None = None
    schemes: tuple[str, ...] = ()
    points: tuple[str, ...] = ()


def changed_spec(name: str, changes: SpecChanges) -> LoadedSpec:
    """Return the spec *name* with what the options change; ends the program where they do not fit."""
    return _with_changes(name, load_spec(name, changes.schemes), changes)


def changed_lab_spec(name: str, changes: SpecChanges) -> LoadedSpec:
    """Return the same for a lab; ends the program also for what only a simulation can have."""
    return _with_changes(name, load_lab_spec(name, changes.schemes), changes)


def _with_changes(name: str, loaded: LoadedSpec, changes: SpecChanges) -> LoadedSpec:
    spec = replace(
        loaded.spec,
        seed=loaded.spec.seed if changes.seed is None else changes.seed,
        repeats=loaded.spec.repeats if changes.repeats is None else changes.repeats,
    )
    if wrong := first_beyond(spec):  # the file's own numbers are checked as they are read
        fail(f"--{wrong[0]} {wrong[1]}", code=2)
    if changes.points:
        try:
            spec = only(spec, changes.points)
        except SweepError as error:
            fail(f"{name}: {error}", code=2)
    # kept beside the result: what ran, not what its file says
    return replace(loaded, spec=spec, text=loaded.text if changes == SpecChanges() else spec_text(spec))
