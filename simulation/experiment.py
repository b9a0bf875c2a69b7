"""Simulates what a spec asks for: every scheme on the same flows, and the result as `capstan run` keeps it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from experiments.results.document import Run, new_directory, own_versions, result_document, write_result
from experiments.results.statistics import EmptyError
from experiments.results.sweep_results import sweep_document, write_sweep
from experiments.spec.spec import SchemeChoice, Spec, spec_text
from experiments.spec.sweep import Point, points, words
from simulation.fabrics import SettingsError
from simulation.packet_trace import Recorder
from simulation.spec_fabric import simulated_fabric
from simulation.spec_run import Setting, payload_bytes, simulate_run
from simulation.spec_scheme import SimulatedScheme, simulated_scheme
from simulation.tcp import PROFILES, Control, Tcp


@dataclass(frozen=True, slots=True)
class Simulated:
    """document: as in result.json; directory: where it is kept."""

    document: dict[str, Any]
    directory: Path


@dataclass(frozen=True, slots=True)
class Step:
    """Where a simulation is: point of the sweep, scheme, run of so many, and how many of its flows have ended."""

    point: str
    label: str
    run: int
    runs: int
    finished: int
    flows: int


OnStep = Callable[[Step], None]


def transport_of(spec: Spec) -> Tcp:
    """Return the hosts' TCP: the spec's profile, with its congestion control.

    Raises:
        SettingsError: a congestion control that is not simulated.
    """
    profile = PROFILES[spec.transport.profile]
    controls: Mapping[str, Control] = {"cubic": "cubic", "reno": "newreno"}
    control = controls.get(spec.transport.congestion)
    if control is None:
        raise SettingsError(
            f"transport.congestion_control: {spec.transport.congestion} is not simulated; give cubic or reno"
        )
    return replace(profile, control=control)


def simulate_document(
    spec: Spec,
    on_step: OnStep = lambda step: None,
    point: str = "",
    recorder: Recorder | None = None,
) -> tuple[dict[str, Any], list[Run]]:
    """Return the result document of a spec without a sweep, and its runs. recorder: of the first run.

    Raises:
        SettingsError: what a simulation cannot do, or a class of flows none of which has ended.
    """
    started, begun = datetime.now(UTC), time.monotonic()
    setting = Setting(spec, simulated_fabric(spec.fabric), transport_of(spec))
    schemes = [(choice, simulated_scheme(spec, choice)) for choice in spec.schemes]
    runs: list[Run] = []
    for repeat in range(spec.repeats):
        plan = spec.plan(repeat)
        for choice, scheme in schemes:
            at = Step(point, choice.label, len(runs) + 1, spec.repeats * len(schemes), 0, len(plan.sized))
            on_step(at)

            def progress(finished: int, at: Step = at) -> None:
                on_step(replace(at, finished=finished))

            runs.append(
                simulate_run(setting, choice, scheme, repeat, plan, progress, None if runs else recorder)
            )
    try:
        document = result_document(
            spec, runs, started, time.monotonic() - begun, _notices(setting, schemes), own_versions()
        )
    except EmptyError as error:
        raise SettingsError(str(error)) from None
    return document | {"kind": "simulation", "simulation": _settings(setting, schemes)}, runs


def simulate_spec(
    spec: Spec,
    text: str,
    results: Path,
    on_step: OnStep = lambda step: None,
    recorder: Recorder | None = None,
) -> Simulated:
    """Simulate a spec without a sweep and keep the result below *results*. text: the spec as its author wrote it.

    recorder: records a window of the first run.

    Raises:
        SettingsError: as `simulate_document`.
    """
    document, runs = simulate_document(spec, on_step, recorder=recorder)
    directory = new_directory(results, spec.name, _when(document))
    write_result(directory, document, runs, text)
    return Simulated(document, directory)


def simulate_sweep(spec: Spec, text: str, results: Path, on_step: OnStep = lambda step: None) -> Simulated:
    """The same for each point of the spec's sweep, each kept in a directory of its own below the sweep's."""
    grid = points(spec)
    found: list[tuple[Point, dict[str, Any], list[Run]]] = []
    for point in grid:
        found.append((point, *simulate_document(point.spec, on_step, words(spec.sweep, point.at))))
    directory = new_directory(results, spec.name, _when(found[0][1]))
    kept = []
    for index, (point, document, runs) in enumerate(found):
        place = directory / f"point-{index + 1:0{len(str(len(grid)))}d}"
        place.mkdir()
        kept.append((point.at, write_result(place, document, runs, spec_text(point.spec)), document))
    whole = sweep_document(spec, kept) | {"simulated": True}
    write_sweep(directory, whole, text)
    return Simulated(whole, directory)


def _when(document: Mapping[str, Any]) -> datetime:
    return datetime.fromisoformat(document["started"])


def _settings(setting: Setting, schemes: Sequence[tuple[SchemeChoice, SimulatedScheme]]) -> dict[str, Any]:
    return {
        "transport": asdict(setting.transport),
        "payload_bytes": payload_bytes(setting.spec),
        "agent_clock": schemes[0][1].clock,
    }


def _notices(setting: Setting, schemes: Sequence[tuple[SchemeChoice, SimulatedScheme]]) -> list[str]:
    """Return what people must know of a simulated result."""
    tcp, clock = setting.transport, schemes[0][1].clock
    found = [
        f"Simulated, packet by packet: TCP {tcp.control}, initial window {tcp.initial_window}, time-outs from "
        f"{tcp.least_timeout_us / 1000:g} ms, losses by {'time (RACK)' if tcp.rack else 'duplicates'}, "
        f"{'with' if tcp.sack else 'without'} SACK. Hosts and switches take no time."
    ]
    if clock > 1:
        found.append(
            f"Agents' clocks go {clock:.3g} times slower than time: packets are faster than in any lab."
        )
    return found
