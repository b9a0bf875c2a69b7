"""``capstan submit``: an experiment for a controller's queue, followed to its end."""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import click
from rich.markup import escape

from capstan_client import Capstan
from capstan_client.errors import ControllerError
from capstan_client.experiment import Experiment
from capstan_client.http import TOKEN_VARIABLE
from capstan_client.progress import Progress
from cli.console import json_option, progress, results, write_text
from cli.controller_options import authority_option, token_file_option
from cli.spec_options import need_recording, repeats_option, seed_option
from experiments.results.packet_trace import WINDOW_MS
from plain.finite_range import FiniteRange
from plain.text_file import read_text


@click.command(
    "submit",
    epilog="Examples:  ./capstan submit small --simulation    "
    "./capstan submit my.yaml --api https://192.0.2.1:8080 --authority ca.pem --token-file api-token",
)
@click.argument("spec", required=False)
@click.option(
    "--cancel", type=click.IntRange(1), metavar="NUMBER", help="Cancel this experiment, and no more."
)
@click.option("--simulation", is_flag=True, help="Run it packet by packet, not in a lab.")
@click.option(
    "--api",
    default="http://127.0.0.1:8080",
    show_default=True,
    metavar="URL",
    help="URL of the controller's API.",
)
@token_file_option
@authority_option
@seed_option
@repeats_option
@click.option(
    "--scheme", "schemes", multiple=True, help="Scheme's name, in place of the spec's schemes; repeatable."
)
@click.option(
    "--record",
    is_flag=True,
    help="In a lab: record each scheme's first run packet by packet, to play again on the page; takes processor time.",
)
@click.option(
    "--record-from",
    type=FiniteRange(0),
    metavar="MS",
    help="Begin of what --record records, in ms of the run.  [default: the first short flow]",
)
@click.option(
    "--record-for",
    type=FiniteRange(1),
    default=WINDOW_MS,
    show_default=True,
    metavar="MS",
    help="Length of what --record records, in ms.",
)
@json_option
def submit_command(
    *,
    spec: str | None,
    cancel: int | None,
    simulation: bool,
    api: str,
    token_file: Path | None,
    authority: Path | None,
    record: bool,
    record_from: float | None,
    record_for: float,
    json_file: str | None,
    **changes: Any,
) -> None:
    """Have a controller (of ./capstan serve --experiments, lab, show) run SPEC: a YAML file, or a preset's name.

    Follow it to its end and print the result. Ctrl-C stops following; the experiment goes on, until --cancel ends it:
    at once if it waits, within seconds if it runs.
    """
    if (spec is None) == (cancel is None):
        raise click.UsageError("give either SPEC or --cancel NUMBER")
    token = read_text(token_file).strip() if token_file else os.environ.get(TOKEN_VARIABLE)
    if cancel is not None:
        with Capstan(api, token, authority=authority) as controller:
            controller.experiment(cancel).cancel()
        progress.print(f"experiment {cancel} is being cancelled", markup=False, soft_wrap=True)
        return
    assert spec is not None
    changes["schemes"] = changes["schemes"] or None
    _check_recording(record, simulation)
    changes["record"] = {"from_ms": record_from, "for_ms": record_for} if record else None
    is_file = "/" in spec or spec.endswith((".yaml", ".yml"))
    source: dict[str, Any] = {"spec": Path(spec)} if is_file else {"preset": spec}
    with Capstan(api, token, authority=authority) as controller:
        try:
            experiment = controller.submit(**source, **changes, kind="simulation" if simulation else None)
        except ControllerError as error:
            if error.status is not None:
                raise
            raise click.ClickException(
                f"{error}; start one first, in another terminal: capstan page (simulations), "
                "or ./capstan serve --experiments"
            ) from None
        progress.print(f"submitted to {api} as experiment {experiment.number}", markup=False, soft_wrap=True)
        _follow(experiment)
        document = experiment.summary()
    _print_result(document, json_file)


def _check_recording(record: bool, simulation: bool) -> None:
    """Raise click.UsageError for --record where it has no sense, and for its window without it."""
    if record and simulation:
        raise click.UsageError(
            "--record is for runs in a lab: a simulation is simulated again for its packets"
        )
    need_recording(record, "--record")


def _print_result(document: dict[str, Any], json_file: str | None) -> None:
    """Write the result document to *json_file*, if any, and its tables to the terminal, unless that has the JSON."""
    from experiments.results.document import json_text  # with what --help need not wait for
    from experiments.results.sweep_results import sweep_tables
    from experiments.results.tables import tables

    if json_file:
        write_text(json_text(document), json_file)
    if json_file != "-":
        results.print((sweep_tables if document.get("kind") == "sweep" else tables)(document))


def _follow(experiment: Experiment) -> None:
    with progress.status("submitted") as status:
        for now in experiment.follow():
            status.update(escape(progress_line(now, datetime.now())))
    experiment.wait()  # it is over: raises if it did not finish


def progress_line(now: Progress, now_wall: datetime) -> str:
    """Return what runs, how far it is, and when it ends. at: local time."""
    if now.state == "queued":
        place = f", number {now.queue_position} in the queue" if now.queue_position else ""
        return f"waits{place}"
    line = f"{now.stage}: {now.runs_done} of {now.runs} runs, {now.flows_finished} of {now.flows} flows"
    if now.left_s is None:
        return line
    end = now_wall + timedelta(seconds=now.left_s)
    return f"{line}, {now.left_s:.0f} s left, until {end:%H:%M:%S}"
