"""Simulates what a spec asks for: every scheme on the same flows, and the result as `capstan run` keeps it."""

from __future__ import annotations

import secrets
import shutil
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from experiments.results.document import Run, new_directory, own_versions, result_document, write_result
from experiments.results.statistics import EmptyError
from experiments.results.sweep_results import sweep_document, write_sweep
from experiments.spec.serialized import spec_text
from experiments.spec.spec import SchemeChoice, Spec
from experiments.spec.sweep import points, words
from simulation.batch import Case, OnStep, prepare, simulate
from simulation.fabrics import SettingsError
from simulation.link_samples import LinkSample
from simulation.own_paths import MakePathPolicy
from simulation.packet_trace import Recorder
from simulation.scheme_hosts import SimulatedHosts
from simulation.spec_fabric import SWITCH_PS
from simulation.spec_marks import has_rooms, small_rooms
from simulation.spec_run import payload_bytes
from simulation.words import room_words, transport_words
from topologies.links import Link

_MOST_NAMES: Final = 6
"""Of links, in a notice."""


@dataclass(frozen=True, slots=True)
class SimulatedPoint:
    """A spec without a sweep, its result document, and its runs. started: Unix seconds."""

    spec: Spec
    document: dict[str, Any]
    runs: Sequence[Run]
    started: float


@dataclass(frozen=True, slots=True)
class Simulated:
    """document: as in result.json; directory: where it is kept; points: of a sweep, or the spec alone."""

    document: dict[str, Any]
    directory: Path
    points: Sequence[SimulatedPoint]


def simulate_document(
    spec: Spec,
    on_step: OnStep = lambda step: None,
    *,
    cores: int = 1,
    finished: Collection[Run] = (),
    on_run: Callable[[Run], Run] = lambda run: run,
    recorder: Recorder | None = None,
    on_links: Callable[[LinkSample], None] | None = None,
    shaped: bool = False,
) -> tuple[dict[str, Any], list[Run]]:
    """Return the result document of a spec without a sweep, and its runs. recorder: of the first run.

    shaped: links are shapers, as the lab's are. finished: runs of it that are there already.
    on_run: called with each run as it ends; returns it as it was recorded. on_links: as of `batch.simulate`.

    Raises:
        SettingsError: what a simulation cannot do, or a class of flows none of which has ended.
    """
    started, begun = datetime.now(UTC), time.monotonic()
    case = prepare(spec, shaped=shaped)
    runs = list(finished)
    there = {(0, run.label, run.repeat) for run in finished}
    simulated = simulate([case], on_step, cores=cores, without=there, recorder=recorder, on_links=on_links)
    with closing(simulated) as ended:
        runs += [on_run(run) for _, run in ended]
    runs = in_order(spec, runs)
    return _document(case, runs, started, time.monotonic() - begun), runs


def simulate_spec(
    spec: Spec,
    text: str,
    results: Path,
    *,
    on_step: OnStep = lambda step: None,
    cores: int = 1,
    recorder: Recorder | None = None,
    own_paths: MakePathPolicy | None = None,
) -> Simulated:
    """Simulate a spec without a sweep, keep the result below *results*, and return it. text: the spec as written.

    recorder: records a window of the first run. own_paths: makes what decides classes with `entropy: file`.

    Raises:
        SettingsError: as `simulate_document`.
    """
    (point,) = _simulated([prepare(spec, own_paths=own_paths)], on_step, cores, recorder)
    with _whole_directory(results, spec.name, point) as place:
        write_result(place.partial, point.document, point.runs, text)
    return Simulated(point.document, place.whole, [point])


def simulate_sweep(
    spec: Spec,
    text: str,
    results: Path,
    *,
    on_step: OnStep = lambda step: None,
    cores: int = 1,
    own_paths: MakePathPolicy | None = None,
) -> Simulated:
    """Simulate each point of the spec's sweep, each kept in a directory of its own below the sweep's."""
    grid = points(spec)
    cases = [prepare(point.spec, words(spec.sweep, point.at), own_paths) for point in grid]
    ended = _simulated(cases, on_step, cores)
    with _whole_directory(results, spec.name, ended[0]) as place:
        of_points = []
        for index, (grid_point, point) in enumerate(zip(grid, ended, strict=True)):
            directory = place.partial / f"point-{index + 1:0{len(str(len(grid)))}d}"
            directory.mkdir()
            write_result(directory, point.document, point.runs, spec_text(point.spec))
            of_points.append((grid_point.at, directory, point.document))
        whole = sweep_document(spec, of_points)
        write_sweep(place.partial, whole, text)
    return Simulated(whole, place.whole, ended)


def in_order(spec: Spec, runs: Collection[Run]) -> list[Run]:
    """Return runs by repeat, and those of a repeat in the order of the spec's schemes."""
    labels = [choice.label for choice in spec.schemes]
    return sorted(runs, key=lambda run: (run.repeat, labels.index(run.label)))


def _simulated(
    cases: Sequence[Case], on_step: OnStep, cores: int, recorder: Recorder | None = None
) -> list[SimulatedPoint]:
    started, begun = datetime.now(UTC), time.monotonic()
    runs: list[list[Run]] = [[] for _ in cases]
    ended_s = [0.0] * len(cases)
    with closing(simulate(cases, on_step, cores=cores, recorder=recorder)) as ended:
        for index, run in ended:
            runs[index].append(run)
            ended_s[index] = time.monotonic() - begun
    simulated = []
    for index, (case, of_case) in enumerate(zip(cases, runs, strict=True)):
        ordered = in_order(case.spec, of_case)
        # cases overlap: each lasted from the end of those before it, so that their sum is what all of them took
        lasted_s = max(0.0, ended_s[index] - max(ended_s[:index], default=0.0))
        document = _document(case, ordered, started, lasted_s)
        simulated.append(SimulatedPoint(case.spec, document, ordered, started.timestamp()))
    return simulated


def _document(case: Case, runs: Sequence[Run], started: datetime, duration_s: float) -> dict[str, Any]:
    try:
        document = result_document(
            case.spec,
            runs,
            started=started,
            duration_s=duration_s,
            notices=_notices(case),
            versions=own_versions(),
        )
    except EmptyError as error:
        raise SettingsError(f"{case.point}: {error}" if case.point else str(error)) from None
    return document | {"kind": "simulation", "simulation": _settings(case)}


@dataclass(slots=True)
class _Place:
    partial: Path
    whole: Path


@contextmanager
def _whole_directory(results: Path, name: str, first: SimulatedPoint) -> Iterator[_Place]:
    """Yield a directory to write into, which gets its place below *results* when all of it is written, or is gone."""
    partial = results / f".{name}-{secrets.token_hex(4)}"
    partial.mkdir(parents=True)
    place = _Place(partial, partial)
    try:
        yield place
        place.whole = new_directory(results, name, datetime.fromisoformat(first.document["started"]))
        try:
            partial.rename(place.whole)
        except FileExistsError:  # Windows: no directory is renamed over another, even over an empty one
            place.whole.rmdir()
            partial.rename(place.whole)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        with suppress(OSError):  # it is whole, or was never made
            place.whole.rmdir()
        raise


def _settings(case: Case) -> dict[str, Any]:
    shared = case.spec.simulation.shared_buffer
    limits = {name: getattr(case.spec.fabric, name).limits for name in ("link", "access")}
    rooms = {name: packets for name, (packets, _) in limits.items()}
    in_bytes = {name: own_bytes for name, (_, own_bytes) in limits.items()}
    by_links = has_rooms(case.spec)
    return {
        "profile": case.spec.simulation.profile or case.spec.transport.profile,
        "transport": asdict(case.transport),
        "payload_bytes": payload_bytes(case.spec),
        "buffer_packets": rooms if by_links else None,
        **({"link_buffer_bytes": in_bytes} if by_links and any(in_bytes.values()) else {}),
        "buffer_bytes": case.spec.simulation.buffer_bytes,
        "shared_buffer": None if shared is None else asdict(shared),
        "mark_from_packets": case.mark_from,
        "agent_clock": case.schemes[0][1].clock,
        "hosts": {choice.label: hosts.to_dict() for choice, hosts in _of_schemes(case)},
    }


def _rooms(case: Case) -> str:
    """Return a sentence about the queues of ports, and under which schemes they are so where schemes differ."""
    fabric = case.spec.fabric
    of_links = _links_rooms([fabric.link, fabric.access, *fabric.overrides.values()])
    labels: dict[str, list[str]] = {}
    for (choice, _), hosts in zip(case.schemes, case.hosts, strict=True):
        of_ports = room_words(hosts.buffer, of_links if hosts.by_link == "all" else "")
        if hosts.by_link == "hosts":
            of_ports = f"{room_words(hosts.buffer, of_links)} at hosts, at switches of a shared buffer"
        labels.setdefault(of_ports, []).append(choice.label)
    if len(labels) == 1:
        return f"Queues of a port: {next(iter(labels))}."
    each = [f"{of_ports} under {', '.join(names)}" for of_ports, names in labels.items()]
    return f"Queues of a port: {'; '.join(each)}."


def _links_rooms(links: Sequence[Link]) -> str:
    """Return what ports of *links* hold, in words."""
    packets, in_bytes = (
        sorted({limit for link in links if (limit := link.limits[unit]) is not None}) for unit in range(2)
    )
    limits = [
        f"{sizes[0]} {unit}" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]} {unit}"
        for sizes, unit in ((packets, "packets"), (in_bytes, "B"))
        if sizes
    ]
    return " or ".join(limits) + (" by link" if len(packets) + len(in_bytes) > 1 else "")


def _unmarked(case: Case) -> str:
    """Return a sentence about the links whose ports are too small to mark, or nothing."""
    names = {
        name: None for _, scheme in case.schemes for name in small_rooms(case.spec, scheme, case.mark_from)
    }
    if not names:
        return ""
    shown = [*names][:_MOST_NAMES]
    more = f" and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
    verbs = ("holds", "marks") if len(names) == 1 else ("hold", "mark")
    return f" {', '.join(shown)}{more} {verbs[0]} fewer and {verbs[1]} none."


def _of_schemes(case: Case) -> Iterator[tuple[SchemeChoice, SimulatedHosts]]:
    """Yield the schemes that have hosts of their own."""
    for (choice, scheme), hosts in zip(case.schemes, case.hosts, strict=True):
        if scheme.scheme.lab_problem is not None:
            yield choice, hosts


def _choosing_by_handshakes(case: Case) -> list[str]:
    """Return the schemes under which the first of two connections that is open sends."""
    return [choice.label for choice, scheme in case.schemes if scheme.scheme.replication == "syn"]


def _notices(case: Case) -> list[str]:
    """Return what people must know of a simulated result."""
    tcp, clock = case.transport, case.schemes[0][1].clock
    profile = case.spec.simulation.profile or case.spec.transport.profile
    at_once = "" if case.setting.fabric.shaped else " Hosts and switches take no time."
    notices = [f"Simulated, packet by packet: {transport_words(tcp, profile)}. {_rooms(case)}{at_once}"]
    if case.setting.fabric.shaped:
        notices.append(
            "Links are shapers, as the lab's: a packet is at the far end as soon as it may be sent, and the next one "
            "waits for as long as its bits take; a switch, or the host that sends it, takes "
            f"{SWITCH_PS / 10**6:g} us for each."
        )
    if case.mark_from:
        others = ", and drop there what cannot be marked" if case.spec.simulation.drop_unmarkable else ""
        notices.append(
            f"Ports mark packets (ECN) from {case.mark_from} waiting ones on{others}.{_unmarked(case)}"
        )
    if (shared := case.spec.simulation.shared_buffer) is not None:
        notices.append(
            f"Ports of a switch share {shared.bytes} B: a queue holds up to {shared.alpha:g} times what is free."
        )
    if case.spec.simulation.long_paths_apart and case.spec.workload.long_flows is not None:
        notices.append(
            "Each long flow without end takes another path than the others where leaves hash flows."
        )
    delay_ps = max(scheme.control_delay_ps for _, scheme in case.schemes)
    if delay_ps:
        loss = case.spec.simulation.control_loss or 0.0
        lost = f"; {loss:.3g} of these messages are lost, and asked for again" if loss else ""
        notices.append(
            f"Flows that ask get their grants {2 * delay_ps / 1e6:g} us after their requests{lost}."
        )
    notices += [f"Under {choice.label} {hosts.words()}." for choice, hosts in _of_schemes(case)]
    if not case.transport.opening and (labels := _choosing_by_handshakes(case)):
        notices.append(
            f"Under {', '.join(labels)} both connections of a short flow send until one of them has ended, as with "
            "`replication: flow`: this TCP has no handshake that would choose one (profile linux has)."
        )
    if clock > 1:
        notices.append(
            f"Agents' clocks go {clock:.3g} times faster than time: a packet takes 0.6 ms of them, as at 20 Mbit/s."
        )
    return notices
