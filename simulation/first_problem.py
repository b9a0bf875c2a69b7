"""What a simulation would refuse in a spec, found without running it."""

from __future__ import annotations

from dataclasses import replace

from controller.schemes import loader
from controller.schemes.overrides import with_overrides
from experiments.spec.spec import SchemeChoice, Spec
from experiments.spec.sweep import points, words
from plain.overrides import merge
from simulation.batch import prepare
from simulation.fabrics import SettingsError
from simulation.own_paths import asks_for_own_paths


def first_problem(spec: Spec, *, asked_for_own_paths: bool = True) -> SettingsError | None:
    """Return the first thing in a spec that a simulation would refuse, at any point; None: it would run all of it.

    asked_for_own_paths: schemes with `entropy: file` get a path policy when the spec is run, so they are left out here;
    else they are refused.
    """
    try:
        for point in points(spec):
            prepare(
                _with_own_paths_out(point.spec) if asked_for_own_paths else point.spec,
                words(spec.sweep, point.at),
            )
    except SettingsError as error:
        return error
    return None


def _with_own_paths_out(spec: Spec) -> Spec:
    return replace(
        spec, schemes=tuple(choice for choice in spec.schemes if not _gets_own_paths(spec, choice))
    )


def _gets_own_paths(spec: Spec, choice: SchemeChoice) -> bool:
    """Return whether a scheme asks for a path policy as the spec has it, overrides and all."""
    overrides = merge(spec.policy, choice.overrides)
    return asks_for_own_paths(with_overrides(loader.load(choice.name), overrides))
