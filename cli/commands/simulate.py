"""``capstan simulate``: a spec, or flows of a trace, over a simulated fabric, packet by packet."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, get_args

import click

from cli.console import json_option
from cli.recordings import Recording, recording_options
from cli.simulated_trace import TRANSPORTS, TraceRequest, run_trace
from cli.spec_options import (
    database_option,
    need_recording,
    points_option,
    repeats_option,
    results_option,
    schemes_option,
)
from plain.finite_range import FiniteRange
from simulation.fabrics import MOST_GBPS, MOST_US
from simulation.settings import PATHS, Paths, Queue
from simulation.tcp import Profile
from topologies.cores import own_cores

OF_SPEC: Final = frozenset(
    {"repeats", "schemes", "points", "directory", "cores", "database"}
    | {"packet_trace", "trace_from", "trace_for", "path_policy"}
)
"""Options that only a spec has."""
OF_BOTH: Final = frozenset({"spec", "trace_file", "seed", "json_file"})
OF_LEAF_SPINE: Final = frozenset({"leaves", "hosts_per_leaf", "spines"})
_NUMBER: Final = click.IntRange(1, 2**32 - 1)
"""What the simulator counts in 32 bits."""
_BYTES: Final = click.IntRange(1, 2**63 - 1)
_GBPS: Final = FiniteRange(0, MOST_GBPS, min_open=True)


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
    "--flows",
    type=click.IntRange(1, 2**32 - 1),
    help="Number of flows to simulate, from the first on. Default: all.",
)
@click.option(
    "--leaves", type=click.IntRange(1, 100_000), default=9, show_default=True, help="Leaf switches."
)
@click.option(
    "--hosts-per-leaf",
    type=click.IntRange(1, 100_000),
    default=16,
    show_default=True,
    help="Hosts of each leaf.",
)
@click.option(
    "--spines", type=click.IntRange(1, 10_000), default=16, show_default=True, help="Spine switches."
)
@click.option(
    "--fat-tree", "k", type=click.IntRange(2, 72), metavar="K", help="Switches with K ports instead."
)
@click.option(
    "--host-gbps", type=_GBPS, default=10.0, show_default=True, help="Rate of hosts' links, Gbit/s."
)
@click.option(
    "--fabric-gbps", type=_GBPS, default=10.0, show_default=True, help="Rate of all other links, Gbit/s."
)
@click.option(
    "--delay-us",
    type=FiniteRange(0, MOST_US),
    default=0.2,
    show_default=True,
    help="Delay of every link, one way.",
)
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
@click.option("--window", type=_NUMBER, help="Packets, at first. Default: 12, TCP: the profile's.")
@click.option("--largest-window", type=_NUMBER, help="Packets. Default with pfabric: 15.")
@click.option(
    "--timeout-us",
    type=FiniteRange(0, MOST_US, min_open=True),
    help="With pfabric fixed, default 45; with TCP the least.",
)
@click.option(
    "--mark-from", type=click.IntRange(0, 2**32 - 1), help="Waiting packets from which DCTCP's are marked."
)
@click.option(
    "--queue", type=click.Choice(get_args(Queue)), help="Default: pfabric with its transport, else fifo."
)
@click.option("--buffer-bytes", type=_BYTES, help="Of a port. Default: 36864 with pfabric, else endless.")
@click.option("--buffer-packets", type=_NUMBER, help="Of a port, instead.")
@click.option(
    "--shared-buffer-bytes",
    "shared_bytes",
    type=_BYTES,
    help="Of a switch, shared by its ports. Without --buffer-bytes or --buffer-packets no port has another limit.",
)
@click.option(
    "--alpha",
    type=FiniteRange(0, 1e9, min_open=True),
    help="Most that a queue may hold, as a multiple of the free part of the shared buffer. Default: 1.",
)
@click.option(
    "--paths",
    type=click.Choice(get_args(Paths)),
    default="turn",
    show_default=True,
    help="; ".join(f"{name}: {meaning}" for name, meaning in PATHS.items()) + ".",
)
@click.option("--seed", type=click.IntRange(0, 2**64 - 1), help="Instead of SPEC's; of a trace: 1.")
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
    *,
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
    (docs/simulator.md). Ends with exit code 3 if a figure is further from the reference's than its tolerance.
    """
    if (spec is None) == (trace_file is None):
        raise click.UsageError(
            "give SPEC or --trace-file FILE; SPEC is a YAML file or a preset's name, such as small"
        )
    _need_options_of(context, of_trace=trace_file is not None)
    need_recording(packet_trace is not None, "--trace FILE")
    if spec is not None:
        from cli.simulated_spec import SimulationOptions, run_simulated
        from cli.specs import SpecChanges

        cores = own_cores().workers() if cores is None else cores
        run_simulated(
            spec,
            SimulationOptions(
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
    run_trace(TraceRequest(trace_file, flows, reference, json_file), options)


def _need_options_of(context: click.Context, *, of_trace: bool) -> None:
    """Raise UsageError for an option of SPEC beside a trace, of a trace beside SPEC, or of another shape of fabric."""
    for parameter in context.command.params:
        name = parameter.name or ""
        given = context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
        of_spec = name in OF_SPEC
        wrong = of_spec if of_trace else not of_spec and name not in OF_BOTH
        if given and wrong:
            where = "SPEC" if of_spec else "a trace"
            raise click.UsageError(f"{parameter.opts[0]} is an option of {where}: leave it out")
        if given and name in OF_LEAF_SPINE and context.params["k"] is not None:
            raise click.UsageError(
                f"{parameter.opts[0]} is of a leaf-spine: leave it or --fat-tree out, whose K sets all numbers"
            )
