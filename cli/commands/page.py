"""``capstan page``: the dashboard with simulations, on any machine: no root, no switches, no lab."""

from __future__ import annotations

from pathlib import Path

import click

from topologies.cores import own_cores


@click.command("page", epilog="Example:  capstan page --port 8081 --data my-results")
@click.option(
    "--port",
    default=8080,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="TCP port on 127.0.0.1; 0: any that is free.",
)
@click.option(
    "--data",
    default="capstan-data",
    show_default=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="Directory that keeps the results; made if missing.",
)
@click.option(
    "--cores", type=click.IntRange(1, 4096), help="Runs of simulations at once. Default: all cores."
)
def page_command(port: int, data: Path, cores: int | None) -> None:
    """Serve the page, with the tour and simulations that are begun on it: without root, switches or a lab.

    Only this machine reaches it. What was simulated is there again at the next start.
    """
    from controller.__main__ import serve_to_end
    from controller.app import Settings
    from engine.serving import experiments_extension

    settings = Settings(
        data,
        api_port=port,
        opens_on_tour=True,
        fabric=False,
        extension=experiments_extension(labs=0, dask=None, simulations=cores or own_cores().workers()),
    )
    serve_to_end(settings)
