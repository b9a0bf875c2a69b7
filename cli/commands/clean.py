"""``capstan clean``."""

from __future__ import annotations

import click

from cli.console import results
from cli.privileges import need_root


@click.command("clean", epilog="Example:  ./capstan clean")
@click.option("--all", "everything", is_flag=True, help="End labs that are still in use, too.")
def clean_command(everything: bool) -> None:
    """End what an earlier lab left behind, and only that.

    Labs whose launcher still runs are left alone unless --all is given; nothing that Capstan did not start is
    ever touched.
    """
    need_root("clean")
    from topologies import registry

    ended = registry.clean(include_alive=everything)
    for line in ended:
        results.print(line, markup=False)
    results.print(
        "nothing was left behind" if not ended else f"cleaned: {len(ended)} things ended or removed"
    )
