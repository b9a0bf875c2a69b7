"""Which specs only a simulation can run."""

from __future__ import annotations

from controller.schemes.overrides import first_lab_problem
from experiments.spec.simulated import flows_problem, lab_problem
from experiments.spec.spec import Spec
from experiments.spec.sweep import points


def no_lab(spec: Spec) -> str | None:
    """Return the first thing in a spec that only a simulation can have, and what to do; None: a lab can run it."""
    return (
        lab_problem(spec.simulation)
        or flows_problem(max(point.spec.expected_flows() for point in points(spec)))
        or first_lab_problem(spec.schemes, spec.policy)
    )
