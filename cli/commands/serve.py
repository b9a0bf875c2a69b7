"""``capstan serve``, which joins the engine to the controller, and ``capstan agent``, the host agent alone."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import click

from cli.privileges import lab_obstacle
from cli.worker_options import labs_option, patience_option
from controller.__main__ import controller_options, run_controller
from host_agent.__main__ import agent_command
from topologies.cores import own_cores

if TYPE_CHECKING:
    from controller.app import MakeExtension


@click.command(
    "serve",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Example:  capstan serve --data /var/lib/capstan --openflow 192.0.2.1:6653 "
    "--switch-authority cacert.pem --agents-tls 192.0.2.1:6654 --certificate cert.pem --key key.pem "
    "--link-rate-mbps 1000",
)
@controller_options
@click.option(
    "--experiments/--no-experiments",
    default=None,
    help="Run experiments that are submitted by the API (default: yes, where what they need is installed).",
)
@labs_option(0, "0: only workers that others start")
@click.option(
    "--simulations",
    type=click.IntRange(0, 4096),
    help="Workers here that simulate, for submitted simulations, none beside a lab. Default: one a core.",
)
@click.option(
    "--dask",
    metavar="tls://ADDRESS:PORT",
    envvar="CAPSTAN_DASK",
    help="Run them on the workers of this Dask scheduler, not here [env: CAPSTAN_DASK].",
)
@click.option(
    "--dask-without-tls",
    is_flag=True,
    help="Reach a Dask scheduler in clear that is not on loopback: only where nothing else reaches that network.",
)
@patience_option
def serve_command(
    *,
    experiments: bool | None,
    labs: int,
    simulations: int | None,
    dask: str | None,
    dask_without_tls: bool,
    patience_s: float,
    **options: Any,
) -> None:
    """Run the controller alone, for switches and agents of a fabric that is not our lab."""

    def extension() -> MakeExtension | None:
        if experiments is False:
            return None
        return _experiments(
            labs=labs,
            simulations=simulations,
            dask=dask,
            dask_without_tls=dask_without_tls,
            patience_s=patience_s,
            required=experiments is not None,
        )

    run_controller(extension, **options)


def _experiments(
    *,
    labs: int,
    simulations: int | None,
    dask: str | None,
    dask_without_tls: bool,
    patience_s: float,
    required: bool,
) -> MakeExtension | None:
    """Return the engine; None, with a message, where it is not installed and was not asked for."""
    try:
        from engine.serving import ExecutorError, experiments_extension
    except ModuleNotFoundError as error:
        if required or dask is not None:
            raise click.ClickException(f"experiments cannot be run: {error}") from None
        logging.getLogger("capstan").warning("experiments cannot be submitted here: %s", error)
        return None
    if labs and dask is None and (obstacle := lab_obstacle()) is not None:
        logging.getLogger("capstan").warning("submitted simulations are run here, but no labs: %s", obstacle)
        labs = 0
    simulations = own_cores().workers() if simulations is None else simulations
    try:
        return experiments_extension(
            labs, dask=dask, patience_s=patience_s, dask_in_clear=dask_without_tls, simulations=simulations
        )
    except ExecutorError as error:
        raise click.ClickException(str(error)) from None


__all__ = ["agent_command", "serve_command"]
