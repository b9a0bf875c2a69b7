"""``capstan clean``."""

from __future__ import annotations

import click

from cli.console import results
from cli.privileges import need_root


@click.command("clean", epilog="Example:  ./capstan clean")
def clean_command() -> None:
    """End what an earlier lab left behind, and only that.

    Labs whose launcher still runs are left alone; nothing that Capstan did not start is ever touched.
    """
    need_root("clean")
    from topologies import registry

    ended = registry.clean()
    for lab_id in ended:
        results.print(str(lab_id), markup=False)
    results.print(
        "nothing was left behind" if not ended else f"cleaned: {len(ended)} things ended or removed"
    )
