"""The result document, and the files in which a result is kept."""

from __future__ import annotations

import csv
import io
import json
import math
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from rich.console import Console, RenderableType

from experiments.results.admissions import Admissions, admission_entry, retransmitted_bytes
from experiments.results.claims import claim_verdicts
from experiments.results.cpu_use import CpuUse
from experiments.results.drops import Drops, all_drops
from experiments.results.flow_kinds import add_kinds
from experiments.results.notices import disturbance_notices, fabric_notices, limited_notices, types_notices
from experiments.results.on_share import mean_share, on_share
from experiments.results.outcome import FlowOutcome
from experiments.results.path_use import paths_of
from experiments.results.run_shares import RunCounts, add_shares
from experiments.results.statistics import summarize
from experiments.results.tables import tables
from experiments.spec.serialized import spec_to_dict
from experiments.spec.spec import Spec
from protocol.version import VERSION
from topologies.cores import own_cores
from workloads.applications import describe

FORMAT: Final = 1
TABLE_COLUMNS: Final = 150


@dataclass(frozen=True, slots=True)
class Run:
    """One run of one scheme.

    plan: digest of the planned flows; modes: mode changes that the controller saw, plain data, with times in
    seconds since the run's start; splits: likewise, how paths were split (Freeway), the first one before the start;
    changes: likewise, links and switches that went or came; types: likewise, types of flows that agents got
    (None: the scheme learns none); run_id: what the controller's database calls it.
    """

    label: str
    scheme: str
    repeat: int
    plan: str
    duration_s: float
    flows: tuple[FlowOutcome, ...]
    cpu: CpuUse | None
    """None: it was simulated, at whatever pace the processor gave it."""
    modes: tuple[Mapping[str, Any], ...] = ()
    splits: tuple[Mapping[str, Any], ...] = ()
    changes: tuple[Mapping[str, Any], ...] = ()
    types: tuple[Mapping[str, Any], ...] | None = None
    run_id: int | None = None
    admitted: Admissions | None = None
    """Under schemes with admission."""
    disturbed: tuple[Mapping[str, Any], ...] = ()
    """Parts of the lab that ended by themselves during it, and were started again."""
    repeated: int = 0
    """How often it was begun anew since it was disturbed."""
    limited_before: int = 0
    """How often it was begun anew since the processor had limited it."""
    not_counted: int = 0
    """Flows that are not among `flows` since they are in no figure: the database has none of them."""
    notices: tuple[str, ...] = ()
    """What a result is to say of it besides."""
    drops: Drops | None = None
    """Packets that ports dropped; None: in a lab."""

    @property
    def cpu_limited(self) -> bool:
        """Return whether the processor, not the fabric, set the pace."""
        return self.cpu is not None and self.cpu.limited

    @property
    def counted(self) -> tuple[FlowOutcome, ...]:
        """Return the flows that figures are of."""
        return tuple(flow for flow in self.flows if flow.counted)

    def short_flows(self) -> dict[str, Any]:
        """Return how many short flows that count have finished, and their mean time, plain; None: none has."""
        short = [
            flow.fct_s for flow in self.counted if flow.traffic_class == "short" and flow.fct_s is not None
        ]
        return {"n": len(short), "afct_ms": sum(short) / len(short) * 1e3 if short else None}

    @property
    def goodput_mbps(self) -> float:
        """Return what flows carried together in the measuring window."""
        return sum(flow.window_bytes * 8e-6 / flow.window_s for flow in self.flows if flow.window_s > 0)

    def happened(self) -> dict[str, Any]:
        """Return what happened besides flows and modes, plain, by its name in documents."""
        return {
            "path_splits": [dict(split) for split in self.splits],
            "fabric_changes": [dict(change) for change in self.changes],
            "types_learnt": None if self.types is None else [dict(types) for types in self.types],
            "disturbed": [dict(part) for part in self.disturbed],
            "repeated": self.repeated,
            "limited_before": self.limited_before,
            "notices": list(self.notices),
        }


def result_document(
    spec: Spec,
    runs: Sequence[Run],
    *,
    started: datetime,
    duration_s: float,
    notices: Iterable[str],
    versions: Mapping[str, str],
) -> dict[str, Any]:
    """Return the whole result as plain data, ready for JSON.

    Raises:
        EmptyError: a class of flows without a finished one.
        ValueError: schemes did not get the same flows.
    """
    by_label: dict[str, list[Run]] = {choice.label: [] for choice in spec.schemes}
    for run in sorted(runs, key=lambda run: run.repeat):
        by_label[run.label].append(run)
    plans = {label: [run.plan for run in group] for label, group in by_label.items()}
    if len({tuple(digests) for digests in plans.values()}) != 1:
        raise ValueError(f"the schemes did not get the same flows: {plans}")
    schemes = _schemes(spec, by_label)
    return {
        "format": FORMAT,
        "name": spec.name,
        "title": spec.title,
        "started": started.isoformat(timespec="seconds"),
        "duration_s": round(duration_s, 1),
        "seed": spec.seed,
        "repeats": spec.repeats,
        "baseline": spec.baseline,
        "cpu_limited": any(run.cpu_limited for run in runs),
        "disturbed": any(run.disturbed for run in runs),
        "packet_time_ms": spec.packet_time_s * 1e3,
        "long_flow_pressure": spec.long_flow_pressure(),
        "flow_sizes": describe(spec.workload.flows),
        "transport": {
            "congestion_control": spec.transport.congestion,
            "profile": spec.transport.profile,
        },
        "schemes": schemes,
        "runs": [_run(run) for run in runs],
        "claims": [
            asdict(claim) | {"ours": ours}
            for claim, ours in zip(spec.claims, claim_verdicts(spec.claims, schemes), strict=True)
        ],
        "notices": [*notices, *_notices_of_runs(spec, runs)],
        "versions": dict(versions),
        "machine": machine(),
        "spec": spec_to_dict(spec),
    }


def _schemes(spec: Spec, by_label: Mapping[str, Sequence[Run]]) -> dict[str, dict[str, Any]]:
    """Return the document's entry of each scheme, by its label. Raises EmptyError."""
    outcomes = {label: [run.counted for run in group] for label, group in by_label.items()}
    schemes = summarize(outcomes, spec.baseline, spec.seed)
    add_kinds(schemes, outcomes, spec.seed, large_limit_bytes=spec.workload.large_limit_bytes)
    paths = paths_of(spec.fabric)
    counts = {
        label: [
            RunCounts(run.counted, len(run.flows) + run.not_counted, run.admitted, run.modes, paths)
            for run in group
        ]
        for label, group in by_label.items()
    }
    add_shares(schemes, counts, spec.seed)
    for choice in spec.schemes:
        group = by_label[choice.label]
        entry = schemes[choice.label]
        entry["scheme"] = choice.name
        entry["overrides"] = dict(choice.overrides)
        entry["cpu"] = _cpu([run.cpu for run in group if run.cpu is not None])
        entry["cpu_limited"] = any(run.cpu_limited for run in group)
        entry["disturbed"] = any(run.disturbed for run in group)
        entry["retransmitted_bytes"] = retransmitted_bytes(run.counted for run in group)
        entry["admission"] = admission_entry(
            [run.admitted for run in group if run.admitted is not None],
            sum(len(run.flows) + run.not_counted for run in group),
        )
        entry["drops"] = all_drops(run.drops for run in group)
        entry["mode_changes"] = sum(len(run.modes) for run in group)
        entry["on_share"] = mean_share(_on_share(spec, run) for run in group)
    return schemes


def _notices_of_runs(spec: Spec, runs: Sequence[Run]) -> list[str]:
    """Return what to know of these runs, kind by kind, and of each kind run by run."""
    types_by_s = spec.warm_up_s + spec.workload.flows.lead_in_s
    by_kind: tuple[Callable[[Run], Iterable[str]], ...] = (
        lambda run: run.notices,
        lambda run: fabric_notices(run.label, run.repeat, run.changes),
        lambda run: disturbance_notices(run.label, run.repeat, run.disturbed, run.repeated),
        lambda run: limited_notices(run.label, run.repeat, run.limited_before),
        lambda run: [] if run.types is None else types_notices(run.label, run.repeat, run.types, types_by_s),
    )
    return [notice for of_kind in by_kind for run in runs for notice in of_kind(run)]


def _on_share(spec: Spec, run: Run) -> float | None:
    """Return for how much of the time in which short flows began leaves were ON."""
    starts = [flow.planned_s for flow in run.flows if flow.traffic_class == "short"]
    return on_share(run.modes, spec.warm_up_s, max(starts)) if starts else None


def _cpu(uses: Sequence[CpuUse]) -> dict[str, Any] | None:
    """Return what was left of the processor in all runs of a scheme; None: they were simulated."""
    if not uses:
        return None
    stalled = [use.stalled_share for use in uses if use.stalled_share is not None]
    return {
        "idle_share": sum(use.idle_share for use in uses) / len(uses),
        "lowest_idle_share": min(use.lowest_idle_share for use in uses),
        "stalled_share": max(stalled) if stalled else None,
        "late_ms": max(use.late_ms for use in uses),
        "pressure": _whose_pressure(uses),
    }


def _whose_pressure(uses: Sequence[CpuUse]) -> str | None:
    """Return whose tasks waited: the machine's, if in any run."""
    pressures = {use.pressure for use in uses} - {None}
    return "machine" if "machine" in pressures else next(iter(pressures), None)


def _run(run: Run) -> dict[str, Any]:
    return {
        "scheme": run.label,
        "repeat": run.repeat,
        "run_id": run.run_id,
        "plan": run.plan,
        "duration_s": round(run.duration_s, 3),
        "finished": sum(flow.state == "finished" for flow in run.flows),
        "failed": [{"id": flow.id, "error": flow.error} for flow in run.flows if flow.state == "failed"],
        "short_afct_ms": run.short_flows()["afct_ms"],
        "goodput_mbps": run.goodput_mbps,
        "late_start_ms": max(
            ((flow.started_s - flow.planned_s) * 1e3 for flow in run.flows if flow.started_s is not None),
            default=0.0,
        ),
        "modes": [dict(change) for change in run.modes],
        **run.happened(),
        "cpu": None if run.cpu is None else asdict(run.cpu),
        "cpu_limited": run.cpu_limited,
        "drops": None if run.drops is None else dict(run.drops),
    }


def machine() -> dict[str, Any]:
    """Return what ran it: how many cores it could use, and the kernel."""
    return {
        "cores": own_cores().effective,
        "processor": platform.machine(),
        "kernel": platform.release(),
        "python": platform.python_version(),
    }


def own_versions() -> dict[str, str]:
    """Return the versions of the parts that decide what a result is, but for those of a lab."""
    versions = {"capstan": VERSION, "kernel": platform.release(), "python": platform.python_version()}
    for package in ("numpy", "os-ken"):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return versions


def json_text(document: Mapping[str, Any]) -> str:
    """Return the document as JSON; raises ValueError for a figure that is no number (none may be)."""
    return json.dumps(_plain(document), indent=1, allow_nan=False, ensure_ascii=False) + "\n"


def _plain(value: Any) -> Any:
    """Return mappings, lists and rounded numbers: nine digits are more than any figure here has."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and math.isfinite(value):
        return float(f"{value:.9g}")
    return value


def flow_table(runs: Iterable[Run]) -> str:
    """Return all flow records as CSV: one row a flow and run; `paths` as ``stamp:datagrams`` words."""
    names = [item.name for item in fields(FlowOutcome)]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["scheme", "repeat", *names])
    for run in runs:
        for flow in run.flows:
            values = [getattr(flow, name) for name in names[:-1]]
            paths = " ".join(f"{stamp}:{count}" for stamp, count in flow.paths.items())
            writer.writerow([run.label, run.repeat, *("" if v is None else v for v in values), paths])
    return text.getvalue()


def text_of(shown: RenderableType) -> str:
    """Return the tables as plain text."""
    console = Console(file=io.StringIO(), width=TABLE_COLUMNS, no_color=True)
    console.print(shown)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def new_directory(results: Path, name: str, started: datetime) -> Path:
    """Return a new directory below *results* for what began then; never one that is there already."""
    stem = f"{name}-{started.astimezone(UTC).strftime('%Y%m%d-%H%M%S')}"
    attempt = 0
    while True:
        directory = results / (f"{stem}-{attempt}" if attempt else stem)
        try:
            directory.mkdir(parents=True)
        except FileExistsError:
            attempt += 1
        else:
            return directory


def write_result(directory: Path, document: Mapping[str, Any], runs: Sequence[Run], spec_text: str) -> Path:
    """Write flows.csv, tables.txt, spec.yaml and, once these are there, result.json into a directory; return it."""
    (directory / "flows.csv").write_text(flow_table(runs), encoding="utf-8")
    (directory / "tables.txt").write_text(text_of(tables(document)), encoding="utf-8")
    (directory / "spec.yaml").write_text(spec_text, encoding="utf-8")
    write_document(directory, document)
    return directory


def write_document(directory: Path, document: Mapping[str, Any]) -> None:
    """Write result.json, whole or not at all: what reads results takes a directory with one for a result."""
    draft = directory / ".result.json.new"
    try:
        draft.write_text(json_text(document), encoding="utf-8")
        draft.replace(directory / "result.json")
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
