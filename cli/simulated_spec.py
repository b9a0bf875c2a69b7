"""``capstan simulate SPEC``: a spec's schemes in simulation, with the tables of ``capstan run``."""

from __future__ import annotations

import dataclasses
import tempfile
from functools import partial
from pathlib import Path

from cli.console import fail, need_place, number_range, progress, results, write_text
from cli.recordings import Recording, single_run, write_recording
from cli.simulated_progress import StepDisplay
from cli.specs import SpecChanges, changed_spec, need_path_policy
from experiments.results.document import json_text
from experiments.results.sweep_results import sweep_tables
from experiments.results.tables import tables
from experiments.spec.spec import Spec
from host_agent.paths.own import read_path_policy
from plain.sqlite_url import sqlite_url
from simulation.experiment import Simulated, simulate_spec, simulate_sweep
from simulation.fabrics import SettingsError
from simulation.packet_trace import Recorder


@dataclasses.dataclass(frozen=True, slots=True)
class SimulationOptions:
    """What of a spec is simulated, and where the result goes. None: as the spec has it; no recording.

    cores: how many runs at once. database: SQLAlchemy URL; None: SQLite in *directory*.
    path_policy: the file that decides classes with `entropy: file`.
    """

    changes: SpecChanges
    directory: Path
    cores: int
    database: str | None
    json_file: str | None
    recording: Recording | None = None
    path_policy: Path | None = None


def run_simulated(name: str, options: SimulationOptions) -> None:
    """Simulate the spec of this name, keep and print the result; ends the program where that cannot be."""
    loaded = changed_spec(name, options.changes)
    recording = options.recording
    if recording is not None:
        loaded = single_run(loaded, name)
    spec = loaded.spec
    need_path_policy(spec, options.path_policy)
    own_paths = None if options.path_policy is None else read_path_policy(options.path_policy)
    need_place(options.directory)
    recorder = Recorder(recording.from_ms, recording.for_ms) if recording else None
    try:
        with StepDisplay(spec.title) as display:
            simulate = partial(simulate_sweep) if spec.sweep else partial(simulate_spec, recorder=recorder)
            result = simulate(
                spec,
                loaded.text,
                options.directory,
                on_step=display.update,
                cores=options.cores,
                own_paths=own_paths,
            )
    except SettingsError as error:
        fail(f"{name}: {error}")
    try:
        if options.json_file != "-":
            results.print(sweep_tables(result.document) if spec.sweep else tables(result.document))
    finally:  # where its reader has gone, as `head` does, printing ends the program
        _keep_all(result, options, spec, recorder)


def _keep_all(result: Simulated, options: SimulationOptions, spec: Spec, recorder: Recorder | None) -> None:
    """Keep a result in all ways that were asked for, whichever of them fails, and print where it is."""
    unwritten: OSError | None = None
    if options.json_file:
        try:
            write_text(json_text(result.document), options.json_file)
        except OSError as error:
            unwritten = error
    # what takes seconds to load comes after all that is waited for
    numbers = _keep(result, options)
    where = f"kept in {result.directory} and as experiment {number_range(numbers)}"
    try:
        with progress.status("drawing"):
            _draw(spec, result)
    finally:
        try:
            (progress if options.json_file == "-" else results).print(where, markup=False, soft_wrap=True)
        finally:  # last: where it cannot be written, all else is kept
            if options.recording is not None and recorder is not None and recorder.trace is not None:
                write_recording(recorder.trace, options.recording.path)
    if isinstance(unwritten, BrokenPipeError):
        raise unwritten
    if unwritten is not None:
        fail(f"{options.json_file}: {unwritten.strerror}: the JSON document was not written")


def _keep(result: Simulated, options: SimulationOptions) -> list[int]:
    from sqlalchemy.exc import SQLAlchemyError

    from controller.store.database import DatabaseError, database_words
    from simulation.recording import keep_simulated

    url = options.database or sqlite_url(options.directory.absolute() / "capstan.db")
    try:
        return keep_simulated(url, result.points)
    except DatabaseError as error:
        fail(f"kept in {result.directory}, but not as an experiment: {error}")
    except SQLAlchemyError as error:
        fail(f"kept in {result.directory}, but not as an experiment: {database_words(error)}")


def _draw(spec: Spec, result: Simulated) -> None:
    """Draw the figures beside the result, each of which is there whole or not at all."""
    from experiments.results.drawing import draw_comparison, draw_sweep

    draw = draw_sweep if spec.sweep else draw_comparison
    with tempfile.TemporaryDirectory(prefix=".figures-", dir=result.directory) as partial:
        for file in draw(result.document, Path(partial)):
            file.replace(result.directory / file.name)
