"""``capstan simulate SPEC``: a spec's schemes in simulation, with the tables of ``capstan run``."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from cli.console import fail, progress, results, write_text
from cli.specs import load_spec
from experiments.results.document import json_text
from experiments.results.drawing import draw_comparison, draw_sweep
from experiments.results.sweep_results import sweep_tables
from experiments.results.tables import tables
from experiments.spec.spec import Spec
from experiments.spec.sweep import SweepError, only
from simulation.experiment import Simulated, Step, simulate_spec, simulate_sweep
from simulation.fabrics import SettingsError
from simulation.packet_trace import MOST_HOPS, PacketTrace, Recorder, write_trace


@dataclasses.dataclass(frozen=True, slots=True)
class Recording:
    """Where a window of the first run is kept, packet by packet, and which window."""

    path: Path
    from_ms: float
    for_ms: float


def run_simulated(
    name: str,
    *,
    seed: int | None,
    repeats: int | None,
    schemes: tuple[str, ...],
    wanted: tuple[str, ...],
    directory: Path,
    json_file: str | None,
    recording: Recording | None = None,
) -> None:
    """Simulate the spec of this name, keep and print the result; ends the program where that cannot be."""
    loaded = load_spec(name, schemes)
    spec = dataclasses.replace(
        loaded.spec,
        seed=loaded.spec.seed if seed is None else seed,
        repeats=loaded.spec.repeats if repeats is None else repeats,
    )
    try:
        spec = only(spec, wanted) if wanted else spec
    except SweepError as error:
        fail(f"{name}: {error}", code=2)
    if recording is not None and (spec.sweep or len(spec.schemes) > 1):
        fail(
            f"{name}: --trace records one run: give one --scheme, and a --point of each axis of a sweep",
            code=2,
        )
    recorder = Recorder(recording.from_ms, recording.for_ms) if recording else None
    try:
        found = _simulated(spec, loaded.text, directory, recorder)
        if recording is not None and recorder is not None and recorder.trace is not None:
            _keep(recorder.trace, recording.path)
    except SettingsError as error:
        fail(f"{name}: {error}")
    if json_file != "-":
        results.print(sweep_tables(found.document) if spec.sweep else tables(found.document))
        results.print(f"kept in {found.directory}", markup=False, soft_wrap=True)
    if json_file:
        write_text(json_text(found.document), json_file)
    if json_file == "-":
        progress.print(f"kept in {found.directory}", markup=False, soft_wrap=True)
    with progress.status("drawing"):  # after all that is waited for
        (draw_sweep if spec.sweep else draw_comparison)(found.document, found.directory)


def _keep(trace: PacketTrace, path: Path) -> None:
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


def _simulated(spec: Spec, text: str, directory: Path, recorder: Recorder | None) -> Simulated:
    with progress.status(f"simulating {spec.title}", spinner="dots") as status:

        def show(step: Step) -> None:
            at = f"{step.point}, " if step.point else ""
            status.update(
                f"{at}run {step.run} of {step.runs}, {step.label}: {step.finished} of {step.flows} flows have ended"
            )

        if spec.sweep:
            return simulate_sweep(spec, text, directory, show)
        return simulate_spec(spec, text, directory, show, recorder)
