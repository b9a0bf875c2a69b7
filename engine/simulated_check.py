"""What a simulation would refuse in a submission: `python -m engine.simulated_check` tries out the spec of its input.

Laying out a fabric holds a thread for as long as the fabric is large, so large specs are tried out by another process.
"""

from __future__ import annotations

import json
import sys
from typing import Final

from controller.api.exporting import LimitError, printed
from experiments.spec.serialized import plain, spec_to_dict
from experiments.spec.spec import Spec, spec_from_dict
from experiments.spec.sweep import points

MOST_HERE: Final = 2000
"""Links x points x schemes that are tried out in the calling thread: a second at most."""
MOST_FLOWS_HERE: Final = 20_000
"""Of a run: some schemes give each flow a port, which is tried out with all of them."""


def tried_here(spec: Spec, scheme_links: int) -> str:
    """Return the first thing that a simulation would refuse at any point of a spec; empty: nothing."""
    from simulation.first_problem import first_problem

    return str(first_problem(spec, asked_for_own_paths=False) or "")


def tried_aside(spec: Spec, scheme_links: int) -> str:
    """Return the same, of a large spec from a process that has limits. scheme_links: links x points x schemes.

    Raises ProblemError (503): there is no place for it, or it could not be tried out.
    """
    if scheme_links <= MOST_HERE and all(
        point.spec.expected_flows() <= MOST_FLOWS_HERE for point in points(spec)
    ):
        return tried_here(spec, scheme_links)
    lines = [json.dumps(plain(spec_to_dict(spec))).encode()]
    try:
        return printed("the check of this simulation", "made", ("engine.simulated_check",), lines).decode()
    except LimitError as error:
        return (
            f"{error.detail}: take fewer schemes or points or smaller fabrics, or simulate it by "
            "./capstan simulate SPEC"
        )


def main() -> None:
    """Write what a simulation would refuse in the spec of standard input, as JSON, to standard output."""
    sys.stdout.write(tried_here(spec_from_dict(json.load(sys.stdin)), 0))


if __name__ == "__main__":
    main()
