"""``capstan work``: a worker for submitted experiments."""

from __future__ import annotations

import os
from pathlib import Path

import click

from cli.console import progress
from cli.privileges import need_lab


@click.command(
    "work",
    epilog="Example, on another machine:  capstan work --api https://192.0.2.1 --authority ca.pem --token-file token",
)
@click.option(
    "--api", required=True, metavar="URL", help="Of the controller that experiments were submitted to."
)
@click.option(
    "--token-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Its api-token, where it needs one (or the variable CAPSTAN_API_TOKEN).",
)
@click.option(
    "--authority",
    type=click.Path(path_type=Path, dir_okay=False),
    help="What the certificate of an https URL is checked by, PEM (default: this machine's authorities).",
)
@click.option("--name", default="manual", show_default=True, help="What the controller calls this worker.")
@click.option(
    "--labs",
    default=1,
    show_default=True,
    type=click.IntRange(1, 16),
    help="Labs that this machine may have at a time: waits while so many workers are at work.",
)
@click.option(
    "--patience-s",
    default=60.0,
    show_default=True,
    type=click.FloatRange(1, 3600),
    help="How long the controller, or its database, may be away.",
)
def work_command(
    api: str, token_file: Path | None, authority: Path | None, name: str, labs: int, patience_s: float
) -> None:
    """Run what is queued at a controller, on labs of this machine, until nothing is left. The controller starts
    workers by itself; this is for machines that it cannot reach."""
    need_lab("work")
    from engine.executors import TOKEN_VARIABLE
    from engine.worker import Worker, machine_slot
    from engine.worker_client import WorkerClient

    token = os.environ.pop(TOKEN_VARIABLE, None)
    if token_file is not None:
        token = token_file.read_text(encoding="utf-8").strip()
    with machine_slot(labs), WorkerClient(api, token, patience_s, authority=authority) as client:
        attempts = Worker(client, name).run()
    progress.print(f"nothing is left to run; {attempts} begun", markup=False)
