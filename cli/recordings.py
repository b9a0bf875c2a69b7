"""What commands that run a spec have in common where they record it packet by packet: options, and the file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from cli.console import fail, progress, writable
from experiments.results.packet_trace import MOST_HOPS, WINDOW_MS, PacketTrace, write_trace
from experiments.spec.serialized import spec_text
from experiments.spec.sweep import points
from plain.finite_range import FiniteRange

if TYPE_CHECKING:
    from cli.specs import LoadedSpec  # of which `simulate --help` needs nothing

_FROM_MS: Final = 0.0
_MOST_MS: Final = 10**9
"""Longer than any run, and in ps still a number of 64 bits."""


@dataclass(frozen=True, slots=True)
class Recording:
    """Where a window of the first run is kept, packet by packet, and which window."""

    path: Path
    from_ms: float
    for_ms: float


def recording_options(clock: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the decorator that gives a command --trace and its window. clock: what ms are, "ms" or "simulated ms"."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(_options(clock)):
            command = option(command)
        return command

    return decorate


def _options(clock: str) -> list[Callable[[Callable[..., Any]], Callable[..., Any]]]:
    return [
        click.option(
            "--trace",
            "packet_trace",
            type=click.Path(path_type=Path, dir_okay=False),
            callback=writable,
            help="Record SPEC's first run packet by packet into this file (gzip); give one --scheme.",
        ),
        click.option(
            "--trace-from",
            type=FiniteRange(0, _MOST_MS),
            default=_FROM_MS,
            show_default=True,
            metavar="MS",
            help=f"Begin of what --trace records, in {clock}.",
        ),
        click.option(
            "--trace-for",
            type=FiniteRange(0, _MOST_MS, min_open=True),
            default=WINDOW_MS,
            show_default=True,
            metavar="MS",
            help=f"Length of what --trace records, in {clock}; at most {MOST_HOPS} hops of packets.",
        ),
    ]


def single_run(loaded: LoadedSpec, name: str) -> LoadedSpec:
    """Return a spec that is to be recorded; in place of a sweep with one point, the experiment there.

    Ends the program where it has several schemes or points.
    """
    there = points(loaded.spec)
    if len(there) > 1 or len(loaded.spec.schemes) > 1:
        fail(
            f"{name}: --trace records one run: give one --scheme, and of a sweep over one axis one --point",
            code=2,
        )
    if not loaded.spec.sweep:
        return loaded
    spec = there[0].spec
    return replace(loaded, spec=spec, text=spec_text(spec))


def write_recording(trace: PacketTrace, path: Path) -> None:
    """Write a recording, and print what it has."""
    try:
        write_trace(trace, path)
    except OSError as error:
        fail(f"{path}: {error.strerror}: the recording was not written")
    begin_ms, length_ms = trace.begin_ps / 1e9, trace.length_ps / 1e9
    progress.print(
        f"{path}: {len(trace.hops['packet'])} hops of {len(trace.packets['flow'])} packets in {length_ms:g} ms "
        f"from {begin_ms:g} ms on",
        markup=False,
        soft_wrap=True,
    )
    if trace.cut:
        progress.print(
            f"recording ended at {begin_ms + length_ms:g} ms, when {MOST_HOPS} hops were recorded: "
            "give a shorter window by --trace-from and --trace-for",
            markup=False,
            soft_wrap=True,
        )
