"""``capstan show``: an experiment that repeats, for people who watch."""

from __future__ import annotations

from pathlib import Path

import click

from cli.console import error_text, need_place, progress, results
from cli.live import Display, print_attempt, print_page, print_restart
from cli.privileges import need_lab, results_for_caller
from cli.sizing import notice, scale_option, sized
from cli.spec_options import results_option, schemes_option
from cli.specs import SpecChanges, changed_lab_spec, need_path_policy
from experiments.results.tables import tables
from experiments.run.deployment import Deployment
from experiments.run.experiment import Result
from experiments.run.served import ServedController
from experiments.run.showing import ROUNDS, show
from experiments.spec.serialized import spec_text
from plain.sqlite_url import sqlite_url
from topologies.cores import own_cores


@click.command(
    "show",
    epilog="Examples:  ./capstan show demo    ./capstan show demo --controller /var/lib/capstan",
)
@click.argument("spec")
@click.option("--seed", type=click.IntRange(0), help="Seed of the first round, in place of the spec's.")
@schemes_option
@results_option
@click.option(
    "--keep-results",
    default=20,
    show_default=True,
    type=click.IntRange(1),
    help=f"Number of newest rounds whose files are kept, in {ROUNDS}/ of the results; the database keeps all.",
)
@click.option(
    "--controller",
    type=click.Path(path_type=Path),
    help="Data directory of a controller that serves already, in this network namespace (default: one of our own).",
)
@click.option(
    "--fit",
    "fitting",
    is_flag=True,
    help="Leave out paths, or slow links down, as far as this machine needs; results say by how much.",
)
@scale_option
def show_command(
    *,
    spec: str,
    seed: int | None,
    schemes: tuple[str, ...],
    directory: Path,
    keep_results: int,
    controller: Path | None,
    fitting: bool,
    scale: float | None,
) -> None:
    """Run the experiment SPEC again and again on one fabric, until Ctrl-C, while nothing else is queued.

    Every round has the next seed: other flows. A round that was disturbed (a link taken down, a scheme switched)
    has no result, and the next one begins. An experiment that is begun on the page (or submitted) ends the round and
    runs at once, on this fabric, or in a lab beside it where it needs another.
    """
    need_lab("show")
    from engine.held_lab import HeldQueue

    loaded = changed_lab_spec(spec, SpecChanges(seed=seed, schemes=schemes))
    need_path_policy(loaded.spec, None, "`show` takes none: use ./capstan run SPEC --path-policy FILE")
    if loaded.spec.sweep:
        raise click.UsageError(f"{spec} has a sweep: show takes one experiment on one fabric")
    need_place(directory)
    chosen = sized(loaded.spec, fitting=fitting, scale=scale, paths_first=True)
    chosen_spec = chosen.spec
    served = None if controller is None else ServedController.find(controller)
    deployment = Deployment(
        chosen_spec,
        database=sqlite_url(directory.absolute() / "capstan.db"),
        logs=directory.absolute() / "logs",
        on_stage=lambda words: progress.print(words, markup=False),
        served=served,
        on_restart=print_restart,
        controller_options=["--opens-on-tour"],
        queue=True,
    )

    def print_result(result: Result) -> None:
        results.print(tables(result.document))
        progress.print(f"kept in {result.directory} and as experiment {result.experiment}", markup=False)

    def print_error(error: Exception) -> None:
        progress.print(f"no result of this round: {error_text(error)}", markup=False, soft_wrap=True)

    with results_for_caller(directory, ROUNDS):
        directory.mkdir(parents=True, exist_ok=True)
        with deployment, HeldQueue(deployment, own_cores().workers(), print_attempt) as queue:
            progress.print(f"the fabric forwards; API {deployment.client.url}", markup=False)
            print_page(deployment.client.url)
            with Display(chosen_spec.title) as display:
                deployment.lab.notices += notice(chosen, own_cores().effective)
                display.notices(deployment.lab.notices)
                show(
                    deployment,
                    chosen_spec,
                    spec_text(chosen_spec) if chosen.changes else loaded.text,
                    results=directory,
                    keep=keep_results,
                    on_progress=display.update,
                    on_result=print_result,
                    on_spoilt=print_error,
                    between=queue.work_off,
                    wanted=queue.waiting,
                )
