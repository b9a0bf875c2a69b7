"""Which specs only a simulation can run."""

from __future__ import annotations

from controller.schemes.overrides import first_lab_problem
from experiments.spec.simulated import flows_problem, lab_problem
from experiments.spec.spec import Spec
from experiments.spec.sweep import points, schemes_of_points


def no_lab(spec: Spec) -> str | None:
    """Return the first thing in a spec that only a simulation can have, and what to do; None: a lab can run it."""
    specs = [point.spec for point in points(spec)]
    return (
        next((problem for each in specs if (problem := lab_problem(each.simulation)) is not None), None)
        or next((problem for each in specs if (problem := each.fabric.lab_problem) is not None), None)
        or flows_problem(max(each.expected_flows() for each in specs))
        or first_lab_problem(schemes_of_points(spec))
    )
