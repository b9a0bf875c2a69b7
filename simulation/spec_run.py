"""One run of a spec, simulated: a plan's flows under one scheme, and what became of each."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Final

import capstan_native

from experiments.results.document import Run
from experiments.results.outcome import FlowOutcome
from experiments.spec.spec import SchemeChoice, Spec
from protocol.datagram import OVERLAY_OVERHEAD_BYTES
from simulation.admission import SimulatedController
from simulation.drops import drops_by_hop
from simulation.fabrics import PS_PER_S, SettingsError
from simulation.own_paths import MakePathPolicy, asks_for_own_paths, own_path_policies
from simulation.packet_trace import Recorded, Recorder
from simulation.paths_apart import FIELD, with_paths_apart
from simulation.scheme_hosts import ByLink, hosts_under
from simulation.spec_fabric import Room, SimulatedFabric
from simulation.spec_scheme import SimulatedScheme
from workloads.description import FIRST_SOURCE_PORT, SOURCE_PORTS
from workloads.flow_header import SINK_PORT
from workloads.plan import Plan, PlannedFlow

if TYPE_CHECKING:
    from simulation.learning import Learning

_EVENTS_A_STEP: Final = 1_000_000
_ENDLESS_PACKETS: Final = 2**32 - 1
"""What a flow without an end may send at most: at 10 Gbit/s for more than an hour."""
_HEADERS: Final = 20 + 20 + 12
"""Of IPv4 and TCP inside the tunnel, with a timestamp."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What all runs of one spec share."""

    spec: Spec
    fabric: SimulatedFabric
    own_paths: MakePathPolicy | None = None
    """Makes what decides classes with `entropy: file`; None: no scheme has any."""


def simulate_run(
    setting: Setting,
    choice: SchemeChoice,
    scheme: SimulatedScheme,
    repeat: int,
    *,
    plan: Plan,
    on_step: Callable[[capstan_native.Simulation], None] = lambda simulation: None,
    recorder: Recorder | None = None,
) -> Run:
    """Return what became of a plan's flows under a scheme. on_step: called with the run every now and then.

    recorder: records a window of the run, and is given it.

    Raises:
        SettingsError: it cannot be, or carries nothing; the text says why.
    """
    spec = setting.spec
    deadline_s = plan.window_s[1] + spec.timeout_s
    planned = plan.digest()
    plan = _apart(setting, scheme, repeat, plan)
    background = [row for row, flow in enumerate(plan.flows) if flow.size_bytes is None]
    noted: list[list[int]] = []
    types: list[dict[str, Any]] = []
    known: set[int] = set()
    try:
        simulation = new_simulation(setting, scheme, repeat, plan)
        controller = new_controller(spec, scheme)
        if recorder is not None:
            recorder.begin(simulation)

        def go_on(until_s: float) -> None:
            until_ps = round(until_s * PS_PER_S)
            while not simulation.run_until(_EVENTS_A_STEP, until_ps):
                if controller is not None:
                    controller.serve(simulation)
                on_step(simulation)

        learning = _learning(setting, scheme, plan)
        moments = [] if learning is None else list(learning.moments(deadline_s))
        for until_s in sorted({*plan.window_s, *moments, deadline_s}):
            go_on(until_s)
            noted += [simulation.acknowledged(background)] * plan.window_s.count(until_s)
            if learning is not None and until_s in moments and not simulation.is_over():
                types += _learn(learning, simulation, plan, known=known, now_s=until_s)
        simulation.stop()
    except (ValueError, OverflowError) as error:
        raise SettingsError(f"scheme {choice.label}, repeat {repeat + 1}: {error}") from None
    if recorder is not None:
        recorded = Recorded(spec, choice.label, repeat, plan, setting.fabric, hosts_under(spec, scheme))
        recorder.take(simulation, recorded)
    columns = Columns(simulation.flows(), simulation.counted)
    ended = next((row for row in background if columns.flows["completed_ps"][row] is not None), None)
    if ended is not None:
        raise SettingsError(
            f"scheme {choice.label}, repeat {repeat + 1}: flow {plan.flows[ended].id}, which has no end, has sent all "
            f"{_ENDLESS_PACKETS} packets that a simulation numbers: give a shorter run"
        )
    windows = dict(zip(background, zip(*noted, strict=True), strict=True))
    rows = _copies(plan, scheme)
    outcomes = tuple(
        _outcome(row, rows.get(row), plan, columns=columns, noted=windows.get(row))
        for row in range(len(plan.flows))
    )
    return Run(
        label=choice.label,
        scheme=choice.name,
        repeat=repeat,
        plan=planned,
        duration_s=simulation.now_ps() / PS_PER_S,
        flows=outcomes,
        cpu=None,
        types=None if learning is None else tuple(types),
        modes=tuple(_mode_changes(spec, simulation)),
        splits=tuple(
            {"at_s": at_ps / PS_PER_S, "low_latency": low, "throughput": high, "share": share}
            for at_ps, low, high, share in simulation.splits()
        ),
        drops=drops_by_hop(simulation.links(), simulation.totals()),
        admitted=None if controller is None else controller.admitted(simulation),
    )


@dataclass(frozen=True, slots=True)
class Columns:
    """What came of flows and of their copies, by row. counted: by their agents."""

    flows: capstan_native.SimulatedFlows
    counted: Callable[[int], capstan_native.SimulatedRecord]


def _copies(plan: Plan, scheme: SimulatedScheme) -> dict[int, int]:
    """Return the rows of replicated flows' copies, which come behind all flows, by the rows of the flows.

    Raises:
        SettingsError: a copy without a port.
    """
    if scheme.scheme.replication is None:
        return {}
    short = [row for row, flow in enumerate(plan.flows) if flow.traffic_class == "short"]
    if any(plan.flows[row].copy_port is None for row in short):
        raise SettingsError(
            f"scheme {scheme.scheme.name}: {len(plan.flows)} flows are too many to replicate them, since each flow and "
            f"each copy has a source port of its own, of {SOURCE_PORTS}",
            where="workload.flows",
            remedy="have fewer, and more repeats",
        )
    return {row: len(plan.flows) + place for place, row in enumerate(short)}


def _learning(setting: Setting, scheme: SimulatedScheme, plan: Plan) -> Learning | None:
    priority = scheme.scheme.priority
    if priority is None or priority.prediction is None:
        return None
    from simulation.learning import Learning  # what it imports takes a second, and few schemes learn

    return Learning(priority, priority.prediction, plan, setting.spec.fabric.hosts())


def _learn(
    learning: Learning, simulation: capstan_native.Simulation, plan: Plan, *, known: set[int], now_s: float
) -> Iterator[dict[str, Any]]:
    """Have agents know what the flows that have ended teach; yield what they were informed of. known: rows so far."""
    from simulation.learning import Ended

    completed = simulation.flows()["completed_ps"][: len(plan.flows)]
    ended = [
        Ended(row, end_ps / PS_PER_S)
        for row, end_ps in enumerate(completed)
        if end_ps is not None and row not in known
    ]
    known.update(flow.row for flow in ended)
    learnt = learning.learn(ended, now_s)
    if learnt is None:
        return
    simulation.set_types(learnt.features, learnt.values)
    types = learnt.types
    yield {
        "at_s": now_s,
        "flows": types.flows,
        "features": learnt.features,
        "types": len(types.types),
        "unknown_flows": types.unknown_flows,
        "seconds": 0.0,
    }


def _mode_changes(spec: Spec, simulation: capstan_native.Simulation) -> Iterator[Mapping[str, Any]]:
    tier = "l" if spec.fabric.topology == "leaf-spine" else "e"
    for at_ps, leaf, mode, cause in simulation.mode_changes():
        yield {"at_s": at_ps / PS_PER_S, "leaf": f"{tier}{leaf + 1}", "mode": mode, "cause": cause}


def payload_bytes(spec: Spec) -> int:
    """Return the data of a full packet: what the tunnel and its headers leave of the fabric's MTU."""
    return spec.fabric.mtu - OVERLAY_OVERHEAD_BYTES - _HEADERS


def new_controller(spec: Spec, scheme: SimulatedScheme) -> SimulatedController | None:
    """Return whom a run's flows ask; None: none asks."""
    rule = scheme.scheme.admission
    return None if rule is None else SimulatedController(rule, spec.fabric, scheme.clock)


def new_simulation(
    setting: Setting, scheme: SimulatedScheme, repeat: int, plan: Plan
) -> capstan_native.Simulation:
    """Return a run that has not begun.

    Raises:
        ValueError, OverflowError: settings or flows that cannot be.
    """
    spec, places = setting.spec, setting.spec.fabric.hosts()
    flows = [*plan.flows, *(plan.flows[row] for row in _copies(plan, scheme))]
    number = {place.name: index for index, place in enumerate(places)}
    hosts = hosts_under(spec, scheme)
    settings: dict[str, Any] = {
        "fabric": setting.fabric.native,
        "buffer": hosts.buffer.to_native(),
        "payload_bytes": payload_bytes(spec),
        "header_bytes": _HEADERS,
        "acknowledgement_bytes": _HEADERS,
        "balancing": "hash",
        "seed": (spec.seed << 16 | repeat) % 2**64,
    }
    scheme_settings: dict[str, Any] = {
        "policy": scheme.policy,
        "groups": list(scheme.groups),
        **scheme.central(),
        "own_paths": _own_paths(setting, scheme, repeat),
        "clock": scheme.clock,
        "addresses": [ip_address(place.overlay).packed for place in places],
        "lines": [*_lines(plan, scheme)],
    }
    return capstan_native.Simulation(
        settings,
        hosts.transport.to_native(),
        [round(flow.start_s * PS_PER_S) for flow in flows],
        [number[flow.source] for flow in flows],
        [number[flow.destination] for flow in flows],
        [flow.size_bytes or _ENDLESS_PACKETS * payload_bytes(spec) for flow in flows],
        scheme=scheme_settings,
        rooms=_rooms(setting, hosts.by_link),
    )


def _apart(setting: Setting, scheme: SimulatedScheme, repeat: int, plan: Plan) -> Plan:
    """Return the plan, with its long flows on paths of their own if the spec asks for that.

    Raises:
        SettingsError: they cannot be.
    """
    spec = setting.spec
    if not spec.simulation.long_paths_apart:
        return plan
    if spec.fabric.topology != "leaf-spine":
        raise SettingsError(
            f"paths of a {spec.fabric.topology} share links", where=FIELD, remedy="leave it out"
        )

    def hashed(candidates: Plan) -> list[int | None]:
        made = new_simulation(setting, scheme, repeat, candidates)
        return [made.hashed_path(row) for row in range(len(candidates.flows))]

    return with_paths_apart(plan, spec.fabric.spines, hashed)


def try_out(setting: Setting, choice: SchemeChoice, scheme: SimulatedScheme) -> None:
    """Make a run of a single flow under a scheme, without running it, so that what no run can have is found at once.

    Raises:
        SettingsError: what that is.
    """
    spec, places = setting.spec, setting.spec.fabric.hosts()
    if spec.simulation.long_paths_apart:
        _apart(setting, scheme, 0, spec.plan(0))
    if scheme.scheme.replication is not None and 2 * spec.expected_flows() > SOURCE_PORTS:
        _copies(spec.plan(0), scheme)
    first, last = places[0].name, places[-1].name
    flow = PlannedFlow(0, first, last, FIRST_SOURCE_PORT, 0.0, 1, "short", FIRST_SOURCE_PORT + 1)
    try:
        new_simulation(setting, scheme, 0, Plan((flow,), (0.0, 0.0)))
        new_controller(spec, scheme)
    except (ValueError, OverflowError, TypeError) as error:
        cut_off = str(error).startswith("no path is left")
        named = re.sub(r"host (\d+)", lambda match: places[int(match[1])].name, str(error))
        too_large = f" ({error.__cause__})" if isinstance(error.__cause__, OverflowError) else ""
        raise SettingsError(
            f"scheme {choice.label}: {named}{too_large}", where="fabric.down" if cut_off else ""
        ) from None


def _own_paths(setting: Setting, scheme: SimulatedScheme, repeat: int) -> list[Any] | None:
    if setting.own_paths is None or not asks_for_own_paths(scheme.scheme):
        return None
    hosts, seed = len(setting.spec.fabric.hosts()), (setting.spec.seed, repeat)
    return own_path_policies(setting.own_paths, hosts, seed, scheme.policy.packet_time_s)


def _rooms(setting: Setting, by_link: ByLink) -> list[Room]:
    """Return the ports that have the room of their link, by the link's number: hosts' own come first."""
    count = len(setting.spec.fabric.hosts())
    return [
        room for room in setting.fabric.rooms if by_link == "all" or (by_link == "hosts" and room[0] < count)
    ]


Line = tuple[int, int, bool, tuple[int, bool] | None]
"""Ports of a flow, whether it has no end; the row of its copy, and whether one gives way to one that is open."""


def _lines(plan: Plan, scheme: SimulatedScheme) -> Iterator[Line]:
    copies, of_opening = _copies(plan, scheme), scheme.scheme.replication == "syn"
    for row, flow in enumerate(plan.flows):
        twin = (copies[row], of_opening) if row in copies else None
        yield flow.source_port, flow.port or SINK_PORT, flow.size_bytes is None, twin
    for row in copies:
        flow = plan.flows[row]
        yield flow.copy_port or 0, flow.port or SINK_PORT, False, (row, of_opening)


def _outcome(
    row: int,
    copy: int | None,
    plan: Plan,
    *,
    columns: Columns,
    noted: tuple[int, ...] | None,
) -> FlowOutcome:
    """Return what became of a flow: of one with a copy, times and paths are those of the one that was first."""
    planned, flows = plan.flows[row], columns.flows
    both = [row] if copy is None else [row, copy]
    ended = [connection for connection in both if flows["completed_ps"][connection] is not None]
    first = ended[0] if ended else row
    others = [connection for connection in both if connection != first]
    record, completed = columns.counted(first), flows["completed_ps"][first]
    finished, endless = completed is not None, planned.size_bytes is None
    acknowledged = flows["acknowledged"][first]
    return FlowOutcome(
        id=planned.id,
        source=planned.source,
        destination=planned.destination,
        source_port=planned.source_port if first == row else planned.copy_port or 0,
        traffic_class=planned.traffic_class,
        size_bytes=planned.size_bytes,
        state="background" if endless else "finished" if finished else "failed",
        error="" if endless or finished else f"not finished: {acknowledged} B acknowledged at the run's end",
        planned_s=planned.start_s,
        started_s=round(planned.start_s, 6),
        fct_s=None if completed is None or endless else completed / PS_PER_S - planned.start_s,
        bytes_acked=acknowledged,
        window_bytes=0 if noted is None else noted[1] - noted[0],
        window_s=0.0 if noted is None else plan.window_s[1] - plan.window_s[0],
        retransmissions=sum(flows["resent"][connection] for connection in both),
        bytes_retransmitted=sum(flows["resent_bytes"][connection] for connection in both),
        duplicates_reported=sum(flows["duplicates"][connection] for connection in both),
        reordering_events=0,
        out_of_order=flows["early"][first],
        rtt_ms=flows["round_trip_ps"][first] / 1e9,
        min_rtt_ms=flows["least_round_trip_ps"][first] / 1e9,
        packets=record["packets"],
        repairs=record["repairs"],
        recovered=record["recovered"],
        lost=record["lost"],
        reordered=record["reordered"],
        release_timeouts=record["release_timeouts"],
        copy_packets=sum(columns.counted(connection)["packets"] for connection in others),
        application=planned.application,
        port=planned.port or SINK_PORT,
        counted=planned.counted,
        paths={str(stamp): count for stamp, count in sorted(record["paths"].items())},
    )
