"""``capstan report``."""

from __future__ import annotations

from pathlib import Path

import click

from cli.console import progress
from cli.privileges import give_to_caller
from experiments.results.report import write_report


@click.command(
    "report",
    epilog="Examples:  ./capstan report results/demo-20260101-1200    ./capstan report results/demo-... --out demo.md",
)
@click.argument("result", type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File to write (default: report.html in RESULT).",
)
def report_command(result: Path, out: Path | None) -> None:
    """Make one page of RESULT, the directory of a finished experiment or sweep: HTML, or Markdown (--out NAME.md).

    Question, figures, tables with intervals, versions, and how to run it again. The HTML file has everything in it.
    """
    files = write_report(result, out or result / "report.html")
    give_to_caller(*files)
    progress.print(f"written: {', '.join(map(str, files))}", markup=False, soft_wrap=True)
