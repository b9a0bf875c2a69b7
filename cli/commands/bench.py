"""``capstan bench``."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any, Final

import click
from rich.table import Table

from benchmarks.busy import idle_figure
from benchmarks.figures import goal_words, verdict, verdict_notes
from capstan_client.errors import CapstanError
from cli.console import error_text, fail, json_option, progress, results, write_json
from cli.privileges import need_lab, new_file_for_caller
from experiments.run.cpu import sample
from plain.reading import did_you_mean

BENCHMARKS: Final = {
    "lab": "processor time that a lab takes a packet and hop, a packet and host agent, and where it is saturated",
    "bringup": "a fabric of 16 hosts up, from nothing until all reach each other, and gone",
    "fabric": "round-trip time and throughput through host agents, against the raw path",
    "agent": "round-trip time, throughput and processor time of two agents on a bare link, coded and uncoded",
    "codes": "encoding and decoding of a coding unit, against memcpy and public libraries",
    "capton": "a decision of CAPTON's scheduler, against the pseudocode as it stands",
    "grants": "from a request of CAPTON's agents to its grant, in a lab, as the agents measure it",
    "api": "mode switches while 200 readers watch, and the API's own latency",
    "overload": "mode switches, links, health and memory of a controller that is flooded from all sides",
    "store": "flow records kept a second, and pages among five million",
    "queues": "strictness of priority queues: what a flood in a low queue costs a high one",
    "mode": "latency of CAPS's mode switches, from the first short packet to the data plane",
    "simulator": "packets simulated a second and core, and memory: 10,000 web search flows among 144 hosts",
    "sweeps": "16 simulated runs on all cores, over those on one: by `simulate`, and by the engine's workers",
    "tpfs": "types and thresholds from records of finished flows: time and memory",
    "marking": "a class of 35 submissions, each checked in a sandbox",
    "webui": "what the dashboard costs a browser with 64 links and 2000 flows, a table of 100 000, and accessibility",
}
"""Name (and module in benchmarks/) of each benchmark, and what it measures."""
WITHOUT_LAB: Final = frozenset({"marking", "overload", "simulator", "sweeps"})
"""Benchmarks that need neither root nor what a lab needs; the launcher knows them, too."""


@click.command("bench", epilog="Examples:  ./capstan bench    ./capstan bench mode --json -")
@click.argument("name", required=False)
@json_option
def bench_command(name: str | None, json_file: str | None) -> None:
    """Measure this machine: the benchmark NAME, or all of them. Exit code 0 also where a goal is missed.

    If a benchmark fails, the others still run, and the exit code is 1.
    """
    if name is not None and name not in BENCHMARKS:
        fail(f"benchmark {name!r} is not known{did_you_mean(name, BENCHMARKS)}", code=2)
    if name not in WITHOUT_LAB:
        need_lab("bench")
    documents: dict[str, dict[str, Any]] = {}
    try:
        failed = _measured([name] if name else list(BENCHMARKS), documents, json_file)
    finally:  # whatever ends it: what was measured is kept
        if json_file and documents:
            with new_file_for_caller(json_file):
                write_json(_merge(documents), json_file)
    if failed:
        fail(f"no figures of {', '.join(failed)} (reasons above)")


def _measured(names: Sequence[str], documents: dict[str, dict[str, Any]], json_file: str | None) -> list[str]:
    """Run benchmarks, add what each gives to *documents* and print it; return the names of those that failed."""
    failed = []
    for benchmark in names:
        before = sample()
        with progress.status(f"bench {benchmark}: {BENCHMARKS[benchmark]}"):
            try:
                documents[benchmark] = importlib.import_module(f"benchmarks.{benchmark}").run()
            except (CapstanError, RuntimeError, OSError) as error:
                progress.print(f"bench {benchmark}: {error_text(error)}", markup=False, soft_wrap=True)
                failed.append(benchmark)
                continue
        cores = documents[benchmark]["machine"]["cores"]
        documents[benchmark]["figures"]["processors_idle"] = idle_figure(before, sample(), cores).to_dict(
            cores
        )
        if json_file != "-":
            _print(benchmark, documents[benchmark])
    return failed


def _merge(documents: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return one document, figures as they are for one benchmark, with its name before them for several."""
    if len(documents) == 1:
        return next(iter(documents.values()))
    return {
        "figures": {
            f"{name}.{figure}": value
            for name, document in documents.items()
            for figure, value in document["figures"].items()
        },
        "notes": [note for document in documents.values() for note in document.get("notes", [])],
        "machine": next(iter(documents.values()))["machine"],
    }


def _print(name: str, document: dict[str, Any]) -> None:
    machine = document["machine"]
    table = Table(title=f"bench {name}: {BENCHMARKS[name]}", title_justify="left")
    table.add_column("figure", overflow="fold")  # what gives way where a terminal is narrow
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("unit")
    table.add_column("goal", justify="right", no_wrap=True)
    table.add_column("met")
    for figure, data in document["figures"].items():
        value = f"{'at most ' if data['bound'] else ''}{data['value']:.4g}"
        table.add_row(figure, value, data["unit"], goal_words(data), verdict(data))
    results.print(table)
    for note in [*document.get("notes", []), *verdict_notes(document["figures"].values(), machine["cores"])]:
        results.print(note, markup=False)
    results.print(
        f"{machine['processor']}, {machine['cores']:g} cores, Linux {machine['kernel']}, Python {machine['python']}",
        markup=False,
    )
