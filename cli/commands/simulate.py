"""``capstan simulate``: a spec, or flows of a trace, over a simulated fabric, packet by packet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, get_args

import click
from rich.table import Table

from cli.console import json_option, progress, results, write_json
from cli.recordings import Recording, recording_options
from cli.spec_options import database_option, points_option, repeats_option, results_option, schemes_option
from simulation.fabrics import Fabric, LinkChange, SettingsError
from simulation.reference import read_reference
from simulation.runs import Result, run
from simulation.settings import (
    PATHS,
    Buffer,
    FixedWindow,
    Paths,
    PFabricHosts,
    Queue,
    Settings,
    Sharing,
    Transport,
)
from simulation.summary import Figure, summarise
from simulation.tcp import PROFILES, Control, Profile, Tcp
from simulation.trace import read_trace
from simulation.words import marks_words, room_words, transport_words
from topologies.cores import own_cores

OF_SPEC: Final = frozenset(
    {"repeats", "schemes", "points", "directory", "cores", "database"}
    | {"packet_trace", "trace_from", "trace_for", "path_policy"}
)
"""Options that only a spec has."""
OF_BOTH: Final = frozenset({"spec", "trace_file", "seed", "json_file"})
TRANSPORTS: Final = ("window", "pfabric", *get_args(Control))
_PROFILE_OF: Final[Mapping[str, Profile]] = {"newreno": "ns2", "cubic": "linux", "dctcp": "datacenter"}
_PFABRIC_BUFFER_BYTES: Final = 36_864
_MARK_FROM_PACKETS: Final = 65
"""What DCTCP's authors advise at 10 Gbit/s."""


@click.command(
    "simulate",
    epilog="Examples:  ./capstan simulate small    ./capstan simulate my-experiment.yaml --scheme ecmp --scheme rps    "
    "./capstan simulate --trace-file flows.csv --transport pfabric --spines 4 --fabric-gbps 40 --json -",
)
@click.argument("spec", required=False)
@repeats_option
@schemes_option
@points_option
@results_option
@database_option
@click.option(
    "--cores",
    type=click.IntRange(1),
    help="Of SPEC: number of runs at once, each with memory of its own. Default: one a core.",
)
@click.option(
    "--path-policy",
    type=click.Path(path_type=Path),
    help="Of SPEC: Python file with a path policy of your own, for a scheme with `entropy: file`.",
)
@recording_options("simulated ms")
@click.option(
    "--trace-file",
    "trace_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="CSV: start_ns,src,dst,bytes, and level where queues are strict; hosts are numbered from 0, leaf by leaf.",
)
@click.option(
    "--flows", type=click.IntRange(1), help="Number of flows to simulate, from the first on. Default: all."
)
@click.option("--leaves", type=click.IntRange(1), default=9, show_default=True)
@click.option("--hosts-per-leaf", type=click.IntRange(1), default=16, show_default=True)
@click.option("--spines", type=click.IntRange(1), default=16, show_default=True)
@click.option("--fat-tree", "k", type=click.IntRange(2), metavar="K", help="Switches with K ports instead.")
@click.option(
    "--host-gbps", type=float, default=10.0, show_default=True, help="Rate of hosts' links, Gbit/s."
)
@click.option("--fabric-gbps", type=float, default=10.0, show_default=True, help="Rate of all other links.")
@click.option("--delay-us", type=float, default=0.2, show_default=True, help="Delay of every link, one way.")
@click.option(
    "--link",
    "links",
    multiple=True,
    metavar="LEAF-SPINE=GBPS[@US]",
    help="A link that differs, both directions; 0: it is down. Repeatable.",
)
@click.option(
    "--transport",
    type=click.Choice(TRANSPORTS),
    help="Default: window, or with --profile that profile's.",
)
@click.option(
    "--profile",
    type=click.Choice(get_args(Profile)),
    help="TCP's settings: ns2 (newreno), linux (cubic), datacenter (dctcp).",
)
@click.option("--window", type=click.IntRange(1), help="Packets, at first. Default: 12, TCP: the profile's.")
@click.option("--largest-window", type=click.IntRange(1), help="Packets. Default with pfabric: 15.")
@click.option("--timeout-us", type=float, help="With pfabric fixed, default 45; with TCP the least.")
@click.option("--mark-from", type=click.IntRange(0), help="Waiting packets from which DCTCP's are marked.")
@click.option(
    "--queue", type=click.Choice(get_args(Queue)), help="Default: pfabric with its transport, else fifo."
)
@click.option(
    "--buffer-bytes", type=click.IntRange(1), help="Of a port. Default: 36864 with pfabric, else endless."
)
@click.option("--buffer-packets", type=click.IntRange(1), help="Of a port, instead.")
@click.option(
    "--shared-buffer-bytes",
    "shared_bytes",
    type=click.IntRange(1),
    help="Of a switch, shared by its ports. Without --buffer-bytes or --buffer-packets no port has another limit.",
)
@click.option(
    "--alpha",
    type=click.FloatRange(0, min_open=True),
    help="Most that a queue may hold, as a multiple of the free part of the shared buffer. Default: 1.",
)
@click.option(
    "--paths",
    type=click.Choice(get_args(Paths)),
    default="turn",
    show_default=True,
    help="; ".join(f"{name}: {meaning}" for name, meaning in PATHS.items()) + ".",
)
@click.option("--seed", type=click.IntRange(0), help="Instead of SPEC's; of a trace: 1.")
@click.option(
    "--reference",
    type=click.Path(path_type=Path, dir_okay=False),
    help="CSV with another simulator's figures, to stand beside: simulation/yaps-websearch-144-load60.csv.",
)
@json_option
@click.pass_context
def simulate_command(
    context: click.Context,
    /,
    spec: str | None,
    repeats: int | None,
    schemes: tuple[str, ...],
    points: tuple[str, ...],
    directory: Path,
    database: str | None,
    cores: int | None,
    path_policy: Path | None,
    packet_trace: Path | None,
    trace_from: float,
    trace_for: float,
    trace_file: Path | None,
    flows: int | None,
    reference: Path | None,
    json_file: str | None,
    **options: Any,
) -> None:
    """Simulate the experiment SPEC, or a trace's flows, packet by packet: no root, no switches.

    SPEC is a YAML file or a preset's name, as ./capstan run takes it; the result has the same tables, files and
    figures. Of a trace, the defaults are the settings of the public trace's reference runs with a fixed window
    (docs/simulator.md).
    """
    if (spec is None) == (trace_file is None):
        raise click.UsageError(
            "give SPEC or --trace-file FILE; SPEC is a YAML file or a preset's name, such as small"
        )
    _need_options_of(context, of_trace=trace_file is not None)
    if spec is not None:
        from cli.simulated_spec import Asked, run_simulated
        from cli.specs import SpecChanges

        cores = own_cores().workers() if cores is None else cores
        run_simulated(
            spec,
            Asked(
                changes=SpecChanges(options["seed"], repeats, schemes, points),
                directory=directory,
                cores=cores,
                database=database,
                json_file=json_file,
                recording=None if packet_trace is None else Recording(packet_trace, trace_from, trace_for),
                path_policy=path_policy,
            ),
        )
        return
    assert trace_file is not None
    options["seed"] = 1 if options["seed"] is None else options["seed"]
    settings = _settings(**options)
    trace = read_trace(trace_file)
    trace = trace.first(flows) if flows else trace
    others = read_reference(reference, settings, len(trace)) if reference else {}
    with progress.status(f"simulating {len(trace)} flows") as status:
        result = run(settings, trace, lambda done: status.update(f"{done} of {len(trace)} flows have ended"))
    figures = summarise(settings, trace, result)
    if reference and not others:
        progress.print(f"{reference} has no run with these settings and {len(trace)} flows", markup=False)
    if json_file:
        write_json(_document(settings, result, figures, others), json_file)
    if json_file != "-":
        profile = options["profile"] or _PROFILE_OF.get(options["transport"] or "")
        _print(len(trace), settings, profile, result, figures, others)


def _need_options_of(context: click.Context, *, of_trace: bool) -> None:
    """Raise UsageError for an option of SPEC beside a trace, or of a trace beside SPEC."""
    for parameter in context.command.params:
        name = parameter.name or ""
        given = context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
        of_spec = name in OF_SPEC
        wrong = of_spec if of_trace else not of_spec and name not in OF_BOTH
        if given and wrong:
            where = "SPEC" if of_spec else "a trace"
            raise click.UsageError(f"{parameter.opts[0]} is an option of {where}: leave it out")


def _settings(
    *,
    leaves: int,
    hosts_per_leaf: int,
    spines: int,
    k: int | None,
    host_gbps: float,
    fabric_gbps: float,
    delay_us: float,
    links: tuple[str, ...],
    transport: str | None,
    profile: Profile | None,
    window: int | None,
    largest_window: int | None,
    timeout_us: float | None,
    mark_from: int | None,
    queue: Queue | None,
    buffer_bytes: int | None,
    buffer_packets: int | None,
    shared_bytes: int | None,
    alpha: float | None,
    paths: Paths,
    seed: int,
) -> Settings:
    fabric = Fabric(
        "fat-tree" if k else "leaf-spine",
        leaves,
        hosts_per_leaf,
        spines,
        k or 4,
        host_gbps,
        fabric_gbps,
        delay_us,
        tuple(LinkChange.parse(text) for text in links),
    )
    hosts = _hosts(transport, profile, window, largest_window, timeout_us)
    pfabric = isinstance(hosts, PFabricHosts)
    if pfabric and buffer_bytes is None and buffer_packets is None:
        buffer_bytes = _PFABRIC_BUFFER_BYTES
    if mark_from is None:
        mark_from = _MARK_FROM_PACKETS if isinstance(hosts, Tcp) and hosts.marks else 0
    if shared_bytes is None and alpha is not None:
        raise SettingsError("--alpha is of a shared buffer: give --shared-buffer-bytes, too")
    shared = None if shared_bytes is None else Sharing(shared_bytes, alpha or 1.0)
    discipline: Queue = queue or ("pfabric" if pfabric else "fifo")
    buffer = Buffer(discipline, buffer_bytes, buffer_packets, mark_from, shared=shared)
    return Settings(fabric, buffer, hosts, paths, seed)


def _hosts(
    transport: str | None,
    profile: Profile | None,
    window: int | None,
    largest_window: int | None,
    timeout_us: float | None,
) -> Transport:
    """Return the transport: options that are given replace its own."""
    if profile is None and transport in (None, "window"):
        return FixedWindow(window or FixedWindow().window)
    given: dict[str, Any] = {"initial_window": window, "largest_window": largest_window}
    given["timeout_us" if transport == "pfabric" else "least_timeout_us"] = timeout_us
    given = {name: value for name, value in given.items() if value is not None}
    if transport == "pfabric":
        if profile is not None:
            raise SettingsError("--profile sets TCP: leave it out with --transport pfabric")
        return replace(PFabricHosts(), **given)
    if transport == "window":
        raise SettingsError("--profile sets TCP: leave it out with --transport window")
    of = PROFILES[profile or _PROFILE_OF[transport or ""]]
    if transport is not None:
        given |= {"control": transport, "marks": transport == "dctcp"}
    return replace(of, **given)


def _document(
    settings: Settings, result: Result, figures: Mapping[str, Figure], others: Mapping[str, float]
) -> dict[str, Any]:
    rows = {
        name: {"value": figure.value, "unit": figure.unit, "reference": others.get(name)}
        for name, figure in figures.items()
    }
    return {
        "settings": settings.to_dict(),
        "figures": rows,
        "events": result.totals.events,
        "simulated_s": result.totals.simulated_s,
        "flows": {
            "completed_ps": result.completed_ps.tolist(),
            "delivered_ps": result.delivered_ps.tolist(),
            "sent": result.sent.tolist(),
            "resent": result.resent.tolist(),
        },
    }


def _print(
    flows: int,
    settings: Settings,
    profile: Profile | None,
    result: Result,
    figures: Mapping[str, Figure],
    others: Mapping[str, float],
) -> None:
    fabric, buffer = settings.fabric, settings.buffer
    table = Table(title=f"{flows} flows, {fabric.hosts} hosts", title_justify="left")
    for column in ("figure", "value", "unit", *(("reference", "difference") if others else ())):
        table.add_column(column, justify="left" if column in ("figure", "unit") else "right")
    for name, figure in figures.items():
        cells = [name, _number(figure), figure.unit]
        if others:
            other = others.get(name)
            cells += (
                ["", ""]
                if other is None
                else [_number(Figure(other, figure.unit)), _difference(figure, other)]
            )
        table.add_row(*cells)
    results.print(table)
    shape = (
        f"fat tree, k = {fabric.k}"
        if fabric.shape == "fat-tree"
        else f"{fabric.leaves} leaves x {fabric.hosts_per_leaf} hosts, {fabric.spines} spines"
    )
    limit = room_words(buffer)
    if buffer.shared is not None:
        limit += f", {buffer.shared.bytes} B a switch shared, alpha {buffer.shared.alpha:g}"
    totals = result.totals
    rate = totals.data_packets_sent / max(totals.processor_s, 1e-9) / 1e6
    for line in (
        f"{shape}; {fabric.host_gbps:g} and {fabric.fabric_gbps:g} Gbit/s, {fabric.delay_us:g} us a link; "
        f"queues: {limit}; {marks_words(buffer)}",
        f"transport: {transport_words(settings.transport, profile)}",
        f"paths: {settings.paths} ({PATHS[settings.paths]}); seed {settings.seed}",
        f"{totals.simulated_s:.3f} s simulated in {totals.processor_s:.1f} s of processor time: "
        f"{rate:.2f} million data packets/s",
    ):
        results.print(line, markup=False, soft_wrap=True)


def _number(figure: Figure) -> str:
    return {"us": f"{figure.value:.1f}", "ratio": f"{figure.value:.4f}"}.get(
        figure.unit, f"{figure.value:.0f}"
    )


def _difference(figure: Figure, other: float) -> str:
    if other == 0:
        return "0" if figure.value == 0 else "from 0"
    return f"{figure.value / other - 1:+.2%}"
