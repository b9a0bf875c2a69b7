"""``capstan simulate --trace-file``: a trace's flows over a simulated fabric, beside another simulator's figures."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, get_args

from rich.table import Table

from cli.console import progress, results, write_json
from simulation.fabrics import Fabric, LinkChange, SettingsError
from simulation.reference import Expected, read_reference
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
from simulation.spec_marks import MARK_FROM_PACKETS
from simulation.summary import Figure, summarise
from simulation.tcp import PROFILES, Control, Profile, Tcp
from simulation.trace import read_trace
from simulation.words import marks_words, room_words, transport_words

TRANSPORTS: Final = ("window", "pfabric", *get_args(Control))
BEYOND_TOLERANCE: Final = 3
"""The exit code where a figure is further from a reference's than its tolerance."""
_PROFILE_OF: Final[Mapping[str, Profile]] = {"newreno": "ns2", "cubic": "linux", "dctcp": "datacenter"}
_PFABRIC_BUFFER_BYTES: Final = 36_864


@dataclass(frozen=True, slots=True)
class TraceRequest:
    """What of a trace is simulated, and where the result goes. flows: the first ones alone; None: all of the file.

    reference: figures to stand beside; None: none do.
    """

    file: Path
    flows: int | None
    reference: Path | None
    json_file: str | None


def run_trace(request: TraceRequest, options: Mapping[str, Any]) -> None:
    """Simulate and print; ends the program with `BEYOND_TOLERANCE` if a figure is beyond the reference's tolerance.

    options: of the command line, by the names of `_settings_of`.

    Raises:
        OSError, TraceError, SettingsError: a file that cannot be read, or what cannot be simulated or compared.
    """
    settings = _settings_of(**options)
    trace = read_trace(request.file)
    trace = trace.first(request.flows) if request.flows else trace
    others = read_reference(request.reference, settings, trace) if request.reference else {}
    notice = _rarely_marks(settings)
    if notice is not None:
        progress.print(notice, markup=False, soft_wrap=True)
    with progress.status(f"simulating {len(trace)} flows") as status:
        result = run(settings, trace, lambda done: status.update(f"{done} of {len(trace)} flows have ended"))
    figures = summarise(settings, trace, result)
    unknown = sorted(others.keys() - figures.keys())
    if unknown:
        raise SettingsError(
            f"{request.reference}: this run has no figure {unknown[0]!r}; it has {', '.join(figures)}"
        )
    if request.json_file:
        write_json(_document(settings, result, figures, others), request.json_file)
    if request.json_file != "-":
        profile = _profile_of(options["transport"], options["profile"])
        _print(len(trace), settings, profile, result, figures=figures, others=others)
    beyond = [name for name, other in others.items() if other.holds(figures[name].value) is False]
    if beyond:
        progress.print(f"beyond the reference's tolerance: {'; '.join(beyond)}", markup=False, soft_wrap=True)
        sys.exit(BEYOND_TOLERANCE)


def _profile_of(transport: str | None, profile: Profile | None) -> Profile | None:
    """Return the profile that a transport has if none is asked for; None: the transport is no TCP."""
    return profile or _PROFILE_OF.get(transport or "")


def _settings_of(
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
    hosts = _hosts(transport, profile, window=window, largest_window=largest_window, timeout_us=timeout_us)
    pfabric = isinstance(hosts, PFabricHosts)
    if pfabric and buffer_bytes is None and buffer_packets is None:
        buffer_bytes = _PFABRIC_BUFFER_BYTES
    marks = _marks(hosts, mark_from, buffer_packets)
    if shared_bytes is None and alpha is not None:
        raise SettingsError("--alpha is of a shared buffer: give --shared-buffer-bytes, too")
    shared = None if shared_bytes is None else Sharing(shared_bytes, alpha or 1.0)
    discipline: Queue = queue or ("pfabric" if pfabric else "fifo")
    buffer = Buffer(discipline, buffer_bytes, buffer_packets, marks, shared=shared)
    return Settings(fabric, buffer, hosts, paths, seed)


def _marks(hosts: Transport, mark_from: int | None, buffer_packets: int | None) -> int:
    """Return the number of waiting packets from which ports mark; 0: never.

    Raises:
        SettingsError: no host reads marks, or no port holds so many packets.
    """
    reads = isinstance(hosts, Tcp) and hosts.marks
    number = (MARK_FROM_PACKETS if reads else 0) if mark_from is None else mark_from
    if number and not reads:
        raise SettingsError(
            f"--mark-from {number}: no host reads marks: give --transport dctcp, or leave it out"
        )
    if buffer_packets is not None and number > buffer_packets:
        raise SettingsError(
            f"--mark-from {number}{' (the default)' if mark_from is None else ''}: ports hold {buffer_packets} "
            "packets, so none would be marked: give fewer, or more --buffer-packets"
        )
    return number


def _rarely_marks(settings: Settings) -> str | None:
    """Return a notice if no port holds as many full packets as it marks from; None: it does."""
    buffer, full = settings.buffer, settings.payload_bytes + settings.header_bytes
    if buffer.limit_bytes is None or buffer.mark_from_packets * full <= buffer.limit_bytes:
        return None
    return (
        f"--mark-from {buffer.mark_from_packets}: ports hold {buffer.limit_bytes} B, {buffer.limit_bytes // full} full "
        "packets, so few packets are marked, or none: give fewer, or more --buffer-bytes"
    )


def _hosts(
    transport: str | None,
    profile: Profile | None,
    *,
    window: int | None,
    largest_window: int | None,
    timeout_us: float | None,
) -> Transport:
    """Return the transport: options that are given replace its own. Raises SettingsError for those that it has not."""
    if profile is None and transport in (None, "window"):
        for option, value in (("--largest-window", largest_window), ("--timeout-us", timeout_us)):
            if value is not None:
                raise SettingsError(
                    f"{option} {value:g}: the window is fixed, without a timer: give --transport or --profile, or "
                    "leave it out"
                )
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
    settings: Settings, result: Result, figures: Mapping[str, Figure], others: Mapping[str, Expected]
) -> dict[str, Any]:
    rows = {}
    for name, figure in figures.items():
        other = others.get(name)
        rows[name] = {
            "value": figure.value,
            "unit": figure.unit,
            "reference": None if other is None else other.value,
            "within_tolerance": None if other is None else other.holds(figure.value),
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
    *,
    figures: Mapping[str, Figure],
    others: Mapping[str, Expected],
) -> None:
    fabric, buffer = settings.fabric, settings.buffer
    table = Table(title=f"{flows} flows, {fabric.hosts} hosts", title_justify="left")
    for column in (
        "figure",
        "value",
        "unit",
        *(("reference", "difference", "tolerance", "within") if others else ()),
    ):
        table.add_column(column, justify="left" if column in ("figure", "unit") else "right")
    for name, figure in figures.items():
        cells = [name, _number(figure), figure.unit]
        if others:
            cells += _beside(figure, others.get(name))
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


def _beside(figure: Figure, other: Expected | None) -> list[str]:
    if other is None:
        return ["", "", "", ""]
    within = {None: "", True: "yes", False: "NO"}[other.holds(figure.value)]
    return [
        _number(Figure(other.value, figure.unit)),
        _difference(figure, other.value),
        other.tolerance,
        within,
    ]


def _number(figure: Figure) -> str:
    return {"us": f"{figure.value:.1f}", "ratio": f"{figure.value:.4f}"}.get(
        figure.unit, f"{figure.value:.0f}"
    )


def _difference(figure: Figure, other: float) -> str:
    if other == 0:
        return "0" if figure.value == 0 else "from 0"
    return f"{figure.value / other - 1:+.2%}"
