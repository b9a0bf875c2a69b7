"""``capstan run`` and ``capstan demo``."""

from __future__ import annotations

from pathlib import Path

import click

from cli.console import json_option
from cli.lab_runs import asked_for, run_in_lab
from cli.privileges import need_all_of_a_lab, need_lab
from cli.recordings import Recording, recording_options, single_run
from cli.sizing import fit_option, scale_option, sized
from cli.spec_options import (
    database_option,
    need_recording,
    path_policy_option,
    points_option,
    repeats_option,
    results_option,
    schemes_option,
    seed_option,
)
from cli.specs import SpecChanges


@click.command(
    "run",
    epilog="Examples:  ./capstan run small    ./capstan run my-experiment.yaml --json -    ./capstan run demo --seed 7",
)
@click.argument("spec")
@seed_option
@repeats_option
@schemes_option
@points_option
@results_option
@database_option
@path_policy_option
@recording_options("ms of the run")
@click.option("--keep", is_flag=True, help="Leave the fabric up afterwards, until Ctrl-C.")
@fit_option
@scale_option
@json_option
def run_command(
    *,
    spec: str,
    seed: int | None,
    repeats: int | None,
    schemes: tuple[str, ...],
    points: tuple[str, ...],
    directory: Path,
    database: str | None,
    path_policy: Path | None,
    packet_trace: Path | None,
    trace_from: float,
    trace_for: float,
    keep: bool,
    fitting: bool,
    scale: float | None,
    json_file: str | None,
) -> None:
    """Run the experiment SPEC: a YAML file, or a preset's name.

    Every scheme gets the same flows; a spec with a sweep runs at each of its points. The result is printed, kept as
    JSON, CSV and figures (PNG, SVG), and in the database. Before it starts, it says how long it takes and whether this
    machine carries it.
    """
    need_recording(packet_trace is not None, "--trace FILE")
    need_lab("run")
    chosen = asked_for(spec, SpecChanges(seed, repeats, schemes, points), path_policy)
    if packet_trace is not None:
        chosen = single_run(chosen, spec)
    run_in_lab(
        chosen,
        sized(chosen.spec, fitting=fitting, scale=scale),
        directory,
        json_file,
        database=database,
        keep=keep,
        path_policy=path_policy,
        recording=None if packet_trace is None else Recording(packet_trace, trace_from, trace_for),
    )


@click.command("demo", epilog="Examples:  ./capstan demo    ./capstan demo --keep")
@seed_option
@results_option
@click.option(
    "--keep", is_flag=True, help="Leave the fabric and its page up afterwards, for experiments, until Ctrl-C."
)
@scale_option
@json_option
def demo_command(
    *, seed: int | None, directory: Path, keep: bool, scale: float | None, json_file: str | None
) -> None:
    """Run ECMP, RPS and CAPS on the same flows over paths of real switches, in some three minutes.

    There are 16 paths, or as many as this machine's processors carry, 8 at least. Its page opens on a tour; experiments
    that are begun there meanwhile run after it.
    """
    need_all_of_a_lab("demo", directory)
    chosen = asked_for("demo", SpecChanges(seed), None)
    fit = sized(chosen.spec, fitting=True, scale=scale, paths_first=True)
    run_in_lab(chosen, fit, directory, json_file, keep=keep, demo=True)
