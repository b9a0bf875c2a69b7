"""``capstan schemes`` and ``capstan check``: what there is, and whether a spec is right."""

from __future__ import annotations

import dataclasses
import sys
from typing import Final

import click

from cli.console import json_option, results, write_json
from cli.sizing import duration, expected
from cli.specs import load_spec, print_problems, simulation_problems
from controller.schemes.loader import all_schemes
from controller.schemes.scheme import Admission, ClassScheme, Coding, Priority, Queues, Replication, Scheme
from engine.estimate import simulated_s
from experiments.spec.simulated import Simulation
from experiments.spec.spec import Spec
from experiments.spec.sweep import points
from simulation.no_lab import no_lab

_PLAIN: Final = {"spray": "spray", "hash": "flow-hash"}
"""Path policies that go without saying, by a switch's group."""


@click.command("schemes", epilog="Examples:  ./capstan schemes    ./capstan schemes --json - | jq .schemes")
@json_option
def schemes_command(json_file: str | None) -> None:
    """List the schemes: what each is made of, and the paper it comes from."""
    schemes = all_schemes()
    if json_file:
        write_json({"schemes": [dataclasses.asdict(scheme) for scheme in schemes]}, json_file)
    if json_file == "-":
        return
    for scheme in schemes:
        results.print(f"[bold]{scheme.name}[/bold]")
        for flows, scheme_class in (("short flows", scheme.short), ("long flows", scheme.long)):
            results.print(f"  {flows:<12}{_class(scheme_class)}", soft_wrap=True)
        if scheme.queues is not None:
            results.print(f"  {'queues':<12}{_queues(scheme, scheme.queues)}", soft_wrap=True)
        if scheme.priority is not None:
            results.print(f"  {'priority':<12}{_priority(scheme.priority)}", soft_wrap=True)
        if scheme.prior_knowledge:
            results.print(
                f"  {'classes':<12}from the first packet on, for flows whose size is announced",
                soft_wrap=True,
            )
        if scheme.admission is not None:
            results.print(f"  {'admission':<12}{_admission(scheme.admission)}", soft_wrap=True)
        if scheme.dctcp is not None or scheme.pfabric is not None:
            results.print(f"  {'hosts':<12}{_hosts(scheme)}; for ./capstan simulate alone", soft_wrap=True)
        if scheme.partition is not None:
            results.print(
                f"  {'partition':<12}paths of their own for short and for long flows, by load", soft_wrap=True
            )
        if scheme.replication is not None:
            results.print(f"  {'replicas':<12}{_REPLICAS[scheme.replication]}", soft_wrap=True)
        for paper in scheme.papers:
            doi = f", doi:{paper.doi}" if paper.doi else ""
            results.print(f"  {'paper':<12}{paper.title}, {paper.venue} {paper.year}{doi}", soft_wrap=True)
    results.print(
        "\nEach is a file in controller/schemes/; the path of your own file goes wherever a name goes."
    )


_REPLICAS: Final[dict[Replication, str]] = {
    "flow": "short flows are sent twice, on connections of their own",
    "syn": "short flows open two connections and send on the one that is there first",
}


def _admission(rule: Admission) -> str:
    paths = "all paths in turn" if rule.paths == "all" else "a path of its own each"
    return f"flows above {rule.threshold()} B ask the controller, which grants the least left first: {paths}"


def _hosts(scheme: Scheme) -> str:
    if scheme.pfabric is not None:
        of = scheme.pfabric
        return (
            f"pFabric, windows of {of.initial_window} to {of.largest_window} packets, time-out of "
            f"{of.timeout_packet_times:g} packet times, {of.buffer_bytes} B a port"
        )
    assert scheme.dctcp is not None
    return f"DCTCP, ports mark from {scheme.dctcp.mark_from_packets} packets on"


def _queues(scheme: Scheme, queues: Queues) -> str:
    buffer = "" if queues.buffer_packets is None else f" of {queues.buffer_packets} packets"
    if scheme.priority is not None:
        return f"{queues.number} a port{buffer}, strict"
    levels = ", ".join(
        f"{name} {class_.priority}"
        for name, class_ in (
            ("short flows", scheme.short),
            ("long flows", scheme.long),
            ("control", scheme.control),
        )
    )
    return f"{queues.number} a port{buffer}, strict; priority of {levels}"


def _priority(priority: Priority) -> str:
    by = "announced size" if priority.kind == "size" else "bytes sent"
    first, *_, last = (*priority.scaled()[:1], *priority.scaled()[-1:])
    types = ", those of known types their own" if priority.prediction is not None else ""
    return f"by {by}, thresholds {first / 1e3:g} to {last / 1e3:g} kB{types}"


def _class(scheme_class: ClassScheme) -> str:
    parts = [_path(scheme_class)]
    if scheme_class.coding is not None:
        parts.append(_coding(scheme_class.coding))
    if scheme_class.release is not None:
        parts.append(f"in order within {scheme_class.release.packet_times:g} packet times")
    return "; ".join(parts)


def _coding(coding: Coding) -> str:
    over = " over windows" if coding.unit == "window" else ""
    if coding.redundancy == "one-per-unit":
        return f"{coding.code}, one repair a {'window' if over else 'unit'}"
    return f"{coding.code}, redundancy by {coding.redundancy}{over}, pB by {coding.estimator}"


def _path(scheme_class: ClassScheme) -> str:
    if scheme_class.by_mode is not None:
        group = f"{scheme_class.by_mode.on} while short flows are ON, {scheme_class.by_mode.off} while OFF"
    else:
        group = str(scheme_class.group)
    if scheme_class.entropy == _PLAIN.get(group, "spray"):
        return group
    parameters = {} if scheme_class.path is None else scheme_class.path.given()
    given = ", ".join(f"{name.replace('_', ' ')} {value:g}" for name, value in parameters.items())
    return f"{group}, {scheme_class.entropy}" + (f" ({given})" if given else "")


@click.command("check", epilog="Examples:  ./capstan check demo    ./capstan check my-experiment.yaml")
@click.argument("spec")
def check_command(spec: str) -> None:
    """Report every problem of SPEC (a file, or a preset's name) with its line number; exit code 1 if there is any.

    A spec with settings for simulations, or that no lab can run, is checked for ./capstan simulate, too. Without
    problems, print how long it will run, or how much processor time its simulation takes.
    """
    loaded = load_spec(spec, lab=True)
    problem = no_lab(loaded.spec)
    if problem is not None or loaded.spec.simulation != Simulation():
        wrong = simulation_problems(loaded)
        if wrong:
            print_problems(str(loaded.path), wrong)
            sys.exit(1)
    runs, seconds = expected(loaded.spec)
    takes = f"about {duration(seconds)}"
    if problem is not None:
        takes = f"simulated in about {duration(_simulated_s(loaded.spec))} of one processor"
    results.print(
        f"{loaded.path}: nothing wrong; {runs} run{'' if runs == 1 else 's'}, {takes}",
        markup=False,
        soft_wrap=True,
    )
    if problem is not None:
        results.print(problem, markup=False, soft_wrap=True)


def _simulated_s(spec: Spec) -> float:
    """Return seconds of one processor for all points of a spec."""
    return sum(simulated_s(point.spec) for point in points(spec))
