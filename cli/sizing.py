"""How heavy an experiment is for this machine: said before it starts, and made lighter where that is asked for."""

from __future__ import annotations

import click

from cli.console import fail, progress
from experiments.run.progress import Steps
from experiments.spec.fitting import LEAST_SCALE, SIZED_FOR, Fit, FitError, busiest, fit, scaled
from experiments.spec.load import CARRIED_SHARE, REFERENCE, PacketCosts, costs_where
from experiments.spec.spec import Spec
from experiments.spec.sweep import by_fabric, points
from plain.finite_range import FiniteRange
from topologies.cores import own_cores
from topologies.other_programs import Busy, busy_now

_SURE_SHARE = CARRIED_SHARE / 3
"""Below this share of the processors a machine three times as slow would do, and none is measured."""
_BRING_UP_S = 6.0

fit_option = click.option(
    "--fit",
    "fitting",
    is_flag=True,
    help="Slow the links down as far as this machine needs, with all times; the result says by how much.",
)
scale_option = click.option(
    "--scale",
    type=FiniteRange(LEAST_SCALE, 1.0),
    envvar="CAPSTAN_SCALE",
    show_envvar=True,
    help="Share of the spec's packet rate to run at (default: what this machine carries); 1: the spec unchanged.",
)


def sized(spec: Spec, *, fitting: bool, scale: float | None, paths_first: bool = False) -> Fit:
    """Return *spec* as it will run here, and print how long it takes and whether this machine carries it.

    fitting: make it lighter until it does. scale: by how much instead. Ends with exit code 2 where that cannot be.
    """
    cores = own_cores().effective
    try:
        load = busiest(spec, REFERENCE)
        costs = REFERENCE if load.share(cores) < _SURE_SHARE else measured_costs()
        if scale is not None:
            chosen = scaled(spec, scale, costs, paths_first=paths_first)
        elif fitting:
            chosen = fit(spec, cores, costs, paths_first=paths_first)
        else:
            chosen = Fit(spec, busiest(spec, costs))
    except FitError as error:
        fail(f"{spec.name}: {error}", code=2)
    fitted: Fit | FitError | None = None
    if chosen.load.verdict(cores) != "carries":
        try:
            fitted = fit(spec, cores, costs, paths_first=paths_first)
        except FitError as error:
            fitted = error
    for line in words(chosen, fitted, cores):
        progress.print(line, markup=False, soft_wrap=True)
    return chosen


def measured_costs() -> PacketCosts:
    """Return what packets cost this machine, by two seconds of a real switch; print what other programs take of it."""
    from topologies.switch_cost import measure_switch_us

    with progress.status("measuring what a packet costs a switch here"):
        others = busy_now()
        costs = costs_where(measure_switch_us())
    if others is not None:
        line = others_words(others, own_cores().effective)
        progress.print(line, markup=False, soft_wrap=True)
    return costs


def others_words(others: Busy, number: float) -> str:
    """Return the line that says what other programs take of *number* cores."""
    return (
        f"note: other programs take {others.cores:.1f} of {number:g} cores now, most of it {others.program!r}: "
        "runs are sized for an idle machine, and marked if its processors limit them; end the others for sure figures"
    )


def words(chosen: Fit, fitted: Fit | FitError | None, number: float) -> list[str]:
    """Return the lines that say how long *chosen* takes and what it takes of *number* cores.

    fitted: what `--fit` would make of it, or why it cannot; None where this machine carries it.
    """
    runs, seconds = expected(chosen.spec)
    load = chosen.load
    lines = [f"for this machine: {'; '.join(chosen.changes)}"] if chosen.changes else []
    lines.append(
        f"{runs} run{'' if runs == 1 else 's'}, about {duration(seconds)}; "
        f"at the busiest {load.packets_per_s:.0f} packets/s take about {load.cores:.1f} of {number:g} cores "
        f"({load.share(number):.0%})"
    )
    if fitted is not None:
        will = "will" if load.verdict(number) == "does not carry" else "may"
        lines.append(
            f"note: runs {will} be limited by the processors and marked, "
            f"as more than {CARRIED_SHARE:.0%} of them are taken; {_fitted_words(fitted)}"
        )
    return lines


def _fitted_words(fitted: Fit | FitError) -> str:
    if isinstance(fitted, FitError):
        return f"--fit does not help: {fitted}"
    _, seconds = expected(fitted.spec)
    return f"--fit: {'; '.join(fitted.changes)} (about {duration(seconds)})"


def expected(spec: Spec) -> tuple[int, float]:
    """Return the number of *spec*'s runs and the seconds that they take, with the start of each of its fabrics."""
    grid = points(spec)
    runs, seconds = Steps([point.spec for point in grid], lambda state: None).expected
    return runs, seconds + _BRING_UP_S * len(by_fabric(grid))


def duration(seconds: float) -> str:
    """Return `45 s`, `3 min` or `1.5 h`."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def notice(chosen: Fit, number: float) -> list[str]:
    """Return what a result must say of how it was sized; nothing where it ran as its spec says."""
    return [f"{SIZED_FOR} {number:g} cores: {'; '.join(chosen.changes)}"] if chosen.changes else []
