"""Runs an experiment: all schemes on the same flows, interleaved, and what became of every flow."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from experiments.controller_client import ControllerClient, ControllerError
from experiments.cpu import CpuWatch
from experiments.deployment import Deployment
from experiments.drain import STILL_LEAST_S, wait_until_empty
from experiments.outcome import FlowOutcome, OutcomeError, join
from experiments.results import Run, keep, machine, own_versions, result_document
from experiments.spec import SchemeChoice, Spec, spec_to_dict
from experiments.traffic import Traffic
from workloads.plan import Plan

BETWEEN_RUNS_S: Final = 1.0 + STILL_LEAST_S
"""What collecting, storing and switching the scheme take, for the estimate of the time left."""
TAIL_S: Final = 2.0
"""The same for the last flows of a run, before one was seen."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Where an experiment is, for people who wait. run: 0 while starting, then 1..runs."""

    stage: str
    run: int
    runs: int
    finished: int
    failed: int
    flows: int
    elapsed_s: float
    left_s: float | None


OnProgress = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class Result:
    """document: as in result.json; directory: where it is kept; experiment: its number in the database."""

    document: dict[str, Any]
    directory: Path
    experiment: int


def run_experiment(
    spec: Spec,
    spec_text: str,
    *,
    results: Path,
    on_progress: OnProgress = lambda progress: None,
    database: str | None = None,
    on_up: Callable[[Deployment], None] = lambda deployment: None,
    on_result: Callable[[Result, Deployment], None] = lambda result, deployment: None,
) -> Result:
    """Bring the fabric up, run everything, keep the results, take the fabric down.

    results: directory below which the result gets one of its own. database: SQLAlchemy URL; default: the file
    capstan.db in `results`. on_up: called when the fabric forwards; on_result: with the fabric still up.

    Raises:
        DeploymentError, ControllerError, TrafficError, OutcomeError, EmptyError: no result, and why.
    """
    steps = _Steps(spec, on_progress)
    results.mkdir(parents=True, exist_ok=True)
    database = database or f"sqlite:///{results.absolute() / 'capstan.db'}"
    deployment = Deployment(spec, database=database, logs=results.absolute() / "logs", on_stage=steps.stage)
    with deployment:
        on_up(deployment)
        result = _Experiment(spec, spec_text, deployment, steps).run(results)
        on_result(result, deployment)
        steps.stage("taking the fabric down")
    return result


class _Steps:
    """Progress and the estimate of what is left."""

    def __init__(self, spec: Spec, on_progress: OnProgress) -> None:
        self._spec = spec
        self._on_progress = on_progress
        self._begun = time.monotonic()
        self._stage = "starting"
        self._run = 0
        self._finished = self._failed = self._flows = 0
        self._tails: list[float] = []
        self._end_of_run: float | None = None
        self.plans = [spec.plan(repeat) for repeat in range(spec.repeats)]
        self._order = [repeat for repeat in range(spec.repeats) for _ in spec.schemes]

    def stage(self, text: str) -> None:
        self._stage = text
        self._end_of_run = None
        self._tell()

    def begin_run(self, label: str, number: int, plan: Plan) -> None:
        self._run, self._flows = number, len(plan.sized)
        self._finished = self._failed = 0
        self._stage = f"{label}, repeat {self._order[number - 1] + 1} of {self._spec.repeats}"
        self._end_of_run = time.monotonic() + self._length(plan)
        self._tell()

    def flows(self, finished: int, failed: int) -> None:
        self._finished, self._failed = finished, failed
        self._tell()

    def end_run(self, tail_s: float) -> None:
        self._tails.append(tail_s)
        self._end_of_run = None

    def tick(self) -> None:
        self._tell()

    def _length(self, plan: Plan) -> float:
        tail = sum(self._tails) / len(self._tails) if self._tails else TAIL_S
        return plan.window_s[1] + tail

    def _left(self) -> float:
        now = time.monotonic()
        rest = sum(
            self._length(self.plans[repeat]) + self._spec.pause_s + BETWEEN_RUNS_S
            for repeat in self._order[self._run :]
        )
        return rest + (max(0.0, self._end_of_run - now) if self._end_of_run else 0.0)

    def _tell(self) -> None:
        self._on_progress(
            Progress(
                stage=self._stage,
                run=self._run,
                runs=len(self._order),
                finished=self._finished,
                failed=self._failed,
                flows=self._flows,
                elapsed_s=time.monotonic() - self._begun,
                left_s=self._left(),
            )
        )


class _Experiment:
    def __init__(self, spec: Spec, spec_text: str, deployment: Deployment, steps: _Steps) -> None:
        self._spec = spec
        self._text = spec_text
        self._deployment = deployment
        self._client: ControllerClient = deployment.client
        self._steps = steps
        self._runs: list[Run] = []
        self._quiet_since = time.monotonic() - spec.pause_s

    def run(self, results: Path) -> Result:
        spec, started, begun = self._spec, datetime.now(UTC), time.monotonic()
        versions = own_versions() | {"capstan": self._client.health().version} | _ovs_version()
        number = self._client.create_experiment(spec.name, spec.seed, spec_to_dict(spec), versions, machine())
        try:
            with Traffic(self._deployment.lab.popen, spec.endpoints(), self._deployment.logs) as traffic:
                traffic.configure(spec.transport)
                for repeat, plan in enumerate(self._steps.plans):
                    for choice in rotated(spec.schemes, repeat):
                        run, body = self._one(traffic, choice, repeat, plan)
                        run_id = int(self._client.add_run(number, body)["id"])
                        self._runs.append(replace(run, run_id=run_id))
            self._steps.stage("computing intervals")
            document = result_document(
                spec,
                self._runs,
                started,
                time.monotonic() - begun,
                self._deployment.lab.notices,
                versions,
            )
            document["experiment"] = number
            directory = keep(document, self._runs, self._text, results)
            self._client.finish_experiment(
                number, {key: document[key] for key in ("schemes", "cpu_limited", "baseline")}
            )
        except BaseException as error:
            with suppress(ControllerError):
                self._client.fail_experiment(number, str(error) or type(error).__name__)
            raise
        return Result(document, directory, number)

    def _one(
        self, traffic: Traffic, choice: SchemeChoice, repeat: int, plan: Plan
    ) -> tuple[Run, Mapping[str, Any]]:
        """One run of one scheme. Anything that is not whole raises: there is no half result."""
        spec = self._spec
        self._steps.begin_run(choice.label, len(self._runs) + 1, plan)
        scheme = self._deployment.set_scheme(choice)["scheme"]
        traffic.prepare(plan, scheme["replication"])
        time.sleep(max(0.0, self._quiet_since + spec.pause_s - time.monotonic()))
        wait_until_empty(
            lambda: self._client.report_flows(forget=True), spec.packet_time_s, self._deployment.check
        )
        _, cursor = self._client.modes()

        def check() -> None:
            self._deployment.check()
            self._steps.tick()

        deadline = plan.window_s[1] + spec.timeout_s
        wall_offset = time.time() - time.monotonic()
        with CpuWatch(spec.packet_time_s) as watch:
            epoch = traffic.run(deadline, self._steps.flows, check)
            duration = time.monotonic() - epoch
            sent, received = traffic.stop_flows()
        self._quiet_since = time.monotonic()
        self._steps.end_run(duration - plan.window_s[1])
        # entries of the last datagrams: what is in the air now belongs to aborted background flows
        entries = self._client.report_flows(forget=True)
        events, _ = self._client.modes(cursor)
        self._deployment.check_health()
        outcomes = join(plan, sent, received, [entry for host in entries.values() for entry in host])
        _prove_agents_saw(outcomes)
        epoch_wall = epoch + wall_offset
        modes = [
            {
                "at_s": round(event["at"] - epoch_wall, 6),
                **{name: event[name] for name in ("leaf", "mode", "cause")},
            }
            for event in events
            if event["at"] - epoch_wall <= duration
        ]
        assert watch.use is not None
        run = Run(
            label=choice.label,
            scheme=choice.name,
            repeat=repeat,
            plan=plan.digest(),
            duration_s=duration,
            flows=outcomes,
            cpu=watch.use,
            modes=tuple(modes),
        )
        return run, run_body(run, spec.seed, epoch_wall)


def rotated(schemes: tuple[SchemeChoice, ...], repeat: int) -> tuple[SchemeChoice, ...]:
    """The order of one repeat: each scheme is first in turn, so that none always follows another."""
    first = repeat % len(schemes)
    return schemes[first:] + schemes[:first]


def _prove_agents_saw(outcomes: tuple[FlowOutcome, ...]) -> None:
    """A finished flow that no agent counted did not cross the overlay: the run would measure something else."""
    unseen = [flow for flow in outcomes if flow.state == "finished" and not (flow.packets and flow.paths)]
    if unseen:
        raise OutcomeError(
            f"{len(unseen)} finished flows are missing in the agents' reports, the first from "
            f"{unseen[0].source}:{unseen[0].source_port} to {unseen[0].destination}; were agents restarted?"
        )


def run_body(run: Run, seed: int, epoch_wall: float) -> dict[str, Any]:
    """A run as the API takes it."""
    flows = []
    for flow in run.flows:
        data = asdict(flow)
        data["flow"] = data.pop("id")
        del data["copy_packets"]  # in flows.csv; the database has the flow's own packets
        data["paths"] = dict(flow.paths)
        if flow.started_s is not None and flow.fct_s is not None:
            data["finished_s"] = round(flow.started_s + flow.fct_s, 6)
        flows.append(data)
    short = [flow.fct_s for flow in run.flows if flow.traffic_class == "short" and flow.fct_s is not None]
    return {
        "scheme": run.scheme,
        "label": run.label,
        "repeat": run.repeat,
        "seed": seed,
        "started_at": epoch_wall,
        "finished_at": epoch_wall + run.duration_s,
        "cpu_limited": run.cpu.limited,
        "cpu": asdict(run.cpu),
        "measures": {
            "short": {"n": len(short), "afct_ms": sum(short) / len(short) * 1e3 if short else None},
            "long": {
                "goodput_mbps": sum(
                    flow.window_bytes * 8e-6 / flow.window_s for flow in run.flows if flow.window_s > 0
                )
            },
        },
        "flows": flows,
    }


def _ovs_version() -> dict[str, str]:
    try:
        text = subprocess.run(
            ["ovs-vswitchd", "--version"], capture_output=True, text=True, check=True
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        return {}
    return {"open-vswitch": text.split("\n", 1)[0].rsplit(" ", 1)[-1]}
