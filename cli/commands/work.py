"""``capstan work``: a worker for submitted experiments."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import click

from capstan_client.http import TOKEN_VARIABLE
from cli.console import progress
from cli.controller_options import authority_option, token_file_option
from cli.privileges import is_root, need_lab
from cli.sharing import stand_back
from cli.worker_options import labs_option, patience_option
from plain.text_file import read_text
from topologies.cores import own_cores

BEHIND_OTHERS: Final = 10
"""A controller on the same machine comes first."""


@click.command(
    "work",
    epilog="Example, on another machine:  "
    "capstan work --api https://192.0.2.1:8080 --authority ca.pem --token-file api-token",
)
@click.option(
    "--api", required=True, metavar="URL", help="URL of the controller whose queue this worker serves."
)
@token_file_option
@authority_option
@click.option("--name", default="manual", show_default=True, help="Name of this worker at the controller.")
@labs_option(1, "waits while so many workers are at work")
@click.option("--labs-only", is_flag=True, help="Take no simulations.")
@click.option("--simulations", is_flag=True, help="Take simulations only: no root, no lab.")
@click.option("--cores", type=click.IntRange(1), help="Runs of a simulation at once. Default: all.")
@patience_option
def work_command(
    *,
    api: str,
    token_file: Path | None,
    authority: Path | None,
    name: str,
    labs: int,
    labs_only: bool,
    simulations: bool,
    cores: int | None,
    patience_s: float,
) -> None:
    """Run what is queued at a controller, on labs of this machine and in simulation, until nothing is left. Without
    root it takes simulations only. The controller starts workers by itself; this is for machines that it cannot reach.
    """
    if labs_only and simulations:
        raise click.UsageError("--labs-only and --simulations exclude each other")
    if not is_root() and not (labs_only or simulations):
        progress.print("labs need root: this worker takes simulations only", markup=False)
        simulations = True
    if not simulations:
        need_lab("work")
    from contextlib import nullcontext

    from engine.executors import SECRET_VARIABLE
    from engine.worker import Worker, machine_slot
    from engine.worker_client import Takes, WorkerClient

    token = os.environ.pop(TOKEN_VARIABLE, None)
    secret = os.environ.pop(SECRET_VARIABLE, "")
    if token_file is not None:
        token = read_text(token_file).strip()
    takes: Takes = "simulations" if simulations else "labs" if labs_only else "all"
    if simulations and hasattr(os, "nice"):
        os.nice(BEHIND_OTHERS)
        if os.getsid(0) == os.getpid():  # else the session is a terminal's, or another program's
            stand_back(os.getpid(), BEHIND_OTHERS)
    with (
        nullcontext() if simulations else machine_slot(labs),
        WorkerClient(api, token, patience_s=patience_s, authority=authority) as client,
    ):
        attempts = Worker(
            client, name, takes=takes, cores=cores or own_cores().workers(), secret=secret
        ).run()
    progress.print(f"nothing is left to run; {attempts} begun", markup=False)
