"""One experiment on a running fabric: all schemes on the same flows, interleaved, and what became of every flow."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from capstan_client.controller import ControllerClient
from capstan_client.errors import ControllerError
from experiments.results.admissions import RESENT_S, SETTLE_S, AdmissionCount, Admissions
from experiments.results.document import Run, own_versions, result_document
from experiments.results.outcome import FlowOutcome, OutcomeError, join
from experiments.results.run_record import recording_body, rotated, run_body
from experiments.run.capture import LabRecorder, RecordedRun
from experiments.run.cpu import CpuWatch
from experiments.run.deployment import Deployment
from experiments.run.disturbed import MOST_REPEATS, DisturbedError, Watch
from experiments.run.drain import DrainError, still_s, wait_until_empty
from experiments.run.parts import DeploymentError
from experiments.run.progress import Steps
from experiments.run.recording import OwnRecord, Record
from experiments.run.run_events import (
    clock_notice,
    disturbances,
    fabric_changes,
    gap_notice,
    mode_changes,
    path_splits,
    types_learnt,
)
from experiments.run.traffic import Traffic
from experiments.spec.spec import SchemeChoice, Spec
from topologies.nodes import MININET_VERSION
from workloads.plan import Plan

Keep = Callable[[Mapping[str, Any], Sequence[Run]], Path]
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Result:
    """document: as in result.json; directory: where it is kept; experiment: its number in the database."""

    document: dict[str, Any]
    directory: Path
    experiment: int


class Experiment:
    """One spec on a fabric that is up.

    plans: one for each repeat. keep: takes the result document and its runs, returns where they are kept.
    record: gets the progress; default: the controller of this fabric. recorder: records the first repeat of each
    scheme packet by packet; None: nothing is captured. again: whether a run is done once more, with the
    same flows, for that to count.
    """

    def __init__(
        self,
        spec: Spec,
        deployment: Deployment,
        steps: Steps,
        *,
        plans: Sequence[Plan],
        keep: Keep,
        record: Record | None = None,
        recorder: LabRecorder | None = None,
        again: Callable[[Run], bool] = lambda run: False,
    ) -> None:
        self._spec = spec
        self._plans = plans
        self._keep = keep
        self._deployment = deployment
        self._client: ControllerClient = deployment.client
        self._record: Record = record if record is not None else OwnRecord(deployment.client)
        self._recorder = recorder
        self._again = again
        self._steps = steps
        self._runs: list[Run] = []
        self._quiet_since = time.monotonic() - spec.pause_s

    def run(self) -> Result:
        """Return all runs, the document of their results, and what the controller's database gets of them.

        Raises:
            DeploymentError, ControllerError, TrafficError, DrainError, OutcomeError, EmptyError, CaptureError: no
                result, and why.
        """
        spec, started, begun = self._spec, datetime.now(UTC), time.monotonic()
        controller = {"capstan": self._client.health().version}
        versions = own_versions() | controller | {"mininet": MININET_VERSION} | _ovs_version()
        number = self._record.begin(spec, versions)
        try:
            finished = {(run.label, run.repeat): run for run in self._record.finished_runs(self._plans)}
            with Traffic(self._deployment.lab.popen, spec.endpoints(), self._deployment.logs) as traffic:
                traffic.configure(spec.transport)
                for repeat, plan in enumerate(self._plans):
                    for choice in rotated(spec.schemes, repeat):
                        if (choice.label, repeat) in finished:
                            self._runs.append(finished[choice.label, repeat])
                            self._steps.skip_run()
                            continue
                        run, epoch = self._measured(traffic, choice, repeat, plan)
                        recorder = self._recorder_of(repeat)
                        trace = None if recorder is None else recorder.trace
                        body = run_body(run, spec.seed, epoch) | recording_body(trace)
                        add = partial(self._record.add, run, body)
                        self._runs.append(replace(run, run_id=self._recorded(add)))
            self._steps.stage("computing intervals")
            document = result_document(
                spec,
                self._runs,
                started=started,
                duration_s=time.monotonic() - begun,
                notices=[
                    *self._deployment.lab.notices,
                    *([] if self._recorder is None else self._recorder.notices()),
                ],
                versions=versions,
            )
            document["experiment"] = number
            directory = self._keep(document, self._runs)
            self._recorded(partial(self._record.finish, document))
        except BaseException as error:
            self._record.fail(error)
            raise
        return Result(document, directory, number)

    def _admission_count(self) -> AdmissionCount:
        time.sleep(SETTLE_S)
        return AdmissionCount(self._client.agents(), self._client.capton_resent())

    def _admitted(self, count: AdmissionCount, epoch: float) -> Admissions:
        """Return what agents have counted until now; their reports take a moment."""
        time.sleep(SETTLE_S)
        deadline = time.monotonic() + RESENT_S
        while True:
            agents, resent = self._client.agents(), self._client.capton_resent()
            if count.explained(agents, resent) or time.monotonic() > deadline:
                return count.until(agents, resent, time.monotonic() - epoch)
            time.sleep(0.2)

    def _recorded(self, request: Callable[[], Answer]) -> Answer:
        """Return the answer to a request of the record, also if the controller that takes it ends meanwhile."""
        watch = Watch(self._deployment, last=True)
        try:
            return request()
        except ControllerError:
            watch.settle()
            if not watch.disturbed:
                raise
        return request()  # the same run, or end, is kept once

    def _measured(self, traffic: Traffic, choice: SchemeChoice, repeat: int, plan: Plan) -> tuple[Run, float]:
        """Return one run, and its start in Unix seconds. It is done anew once, where *again* asks for it and it
        was not recorded."""
        run, epoch = self._whole(traffic, choice, repeat, plan)
        if self._recorder_of(repeat) is not None or not self._again(run):
            return run, epoch
        limited = int(run.cpu_limited)
        self._steps.repeat_run()
        run, epoch = self._whole(traffic, choice, repeat, plan)
        return replace(run, limited_before=limited), epoch

    def _recorder_of(self, repeat: int) -> LabRecorder | None:
        return self._recorder if repeat == 0 else None

    def _whole(self, traffic: Traffic, choice: SchemeChoice, repeat: int, plan: Plan) -> tuple[Run, float]:
        """Return one run, and its start in Unix seconds. It is done anew if a part of the lab ends meanwhile; the
        last time it counts all the same."""
        for repeated in range(MOST_REPEATS):
            watch = Watch(self._deployment, last=False)
            try:
                run, epoch = self._attempt(traffic, choice, repeat, plan, parts=watch)
                return replace(run, repeated=repeated), epoch
            except (DisturbedError, ControllerError, DeploymentError, DrainError, OutcomeError):
                self._deployment.wait_complete()
                if not watch.disturbed:
                    raise
            traffic.stop_flows()
            self._deployment.wait_whole()
            self._steps.repeat_run()
        run, epoch = self._attempt(traffic, choice, repeat, plan, parts=Watch(self._deployment, last=True))
        return replace(run, repeated=MOST_REPEATS), epoch

    def _attempt(
        self, traffic: Traffic, choice: SchemeChoice, repeat: int, plan: Plan, *, parts: Watch
    ) -> tuple[Run, float]:
        """Return the run, and its start in Unix seconds. Anything that is not whole raises: there is no half result."""
        spec = self._spec
        self._steps.begin_run(choice.label, plan)
        _, before = self._client.modes()
        scheme = self._deployment.set_scheme(choice, forget_flows=not spec.keep_learnt)["scheme"]
        traffic.prepare(plan, scheme["replication"])
        # The end of the pause is the proof that nothing is under way any more.
        proof_from = self._quiet_since + spec.pause_s - still_s(spec.packet_time_s)
        time.sleep(max(0.0, proof_from - time.monotonic()))
        wait_until_empty(lambda: self._client.report_flows(forget=True), spec.packet_time_s, parts.check)
        _, cursor = self._client.modes()
        admission = None if scheme.get("admission") is None else self._admission_count()

        def check() -> None:
            parts.check()
            self._steps.tick()

        deadline = plan.window_s[1] + spec.timeout_s
        wall_offset = time.time() - time.monotonic()
        recorder = self._recorder_of(repeat)
        with ExitStack() as stack:
            capture = (
                None if recorder is None else stack.enter_context(recorder.of(self._deployment.lab, plan))
            )
            on_start = (lambda epoch: None) if capture is None else capture.begin
            with CpuWatch(spec.packet_time_s, self._deployment.lab.pressure_file) as watch:
                epoch = traffic.run(deadline, self._steps.flows, check, on_start=on_start)
                duration = time.monotonic() - epoch
                sent, received = traffic.stop_flows()
            captured = None if recorder is None or capture is None else recorder.read(capture, choice.label)
        self._quiet_since = time.monotonic()
        self._steps.end_run(duration - plan.window_s[1])
        parts.settle()
        # entries of the last datagrams: what is in the air now belongs to aborted background flows
        entries = self._client.report_flows(forget=True)
        events, _ = self._client.modes(cursor)
        happened = self._client.all_events(before)
        admitted = None if admission is None else self._admitted(admission, epoch)
        self._deployment.check_health()
        parts.settle()
        if parts.controller_lost:
            events, happened = [], []
        refuse_switched(happened, cursor, choice.label)
        set_by_s = time.time() - time.monotonic() - wall_offset
        notices = (
            gap_notice(happened, before, choice.label, repeat),
            clock_notice(set_by_s, choice.label, repeat),
        )
        outcomes = join(plan, sent, received, [entry for host in entries.values() for entry in host])
        if not parts.disturbed:
            prove_agents_saw(outcomes)
        epoch_wall = epoch + wall_offset
        modes = mode_changes(events, epoch_wall, duration)
        if recorder is not None and captured is not None:
            recorder.take(captured, RecordedRun(spec, choice.label, repeat, plan, modes))
        assert watch.use is not None
        run = Run(
            label=choice.label,
            scheme=choice.name,
            repeat=repeat,
            plan=plan.digest(),
            duration_s=duration,
            flows=outcomes,
            cpu=watch.use,
            modes=modes,
            splits=path_splits(happened, epoch_wall, duration),
            changes=fabric_changes(happened, epoch_wall, duration),
            admitted=admitted,
            types=types_learnt(happened, epoch_wall, duration) if learns_types(scheme) else None,
            disturbed=disturbances(parts.restarts, epoch),
            notices=tuple(notice for notice in notices if notice),
        )
        return run, epoch_wall


def learns_types(scheme: Mapping[str, Any]) -> bool:
    """Return whether flows' priorities under a scheme follow from what was learnt of earlier ones."""
    priority = scheme.get("priority")
    return priority is not None and priority.get("prediction") is not None


def refuse_switched(happened: Iterable[Mapping[str, Any]], cursor: int, label: str) -> None:
    """Raise OutcomeError if the fabric was switched to another scheme after *cursor*, during a run of *label*."""
    for event in happened:
        if event["kind"] == "scheme-changed" and event["cursor"] > cursor:
            raise OutcomeError(
                f"the fabric was switched to scheme {event['scheme']!r} during a run of {label!r}"
            )


def prove_agents_saw(outcomes: tuple[FlowOutcome, ...]) -> None:
    """Check that agents counted every finished flow: one that crossed no overlay would measure something
    else.
    """
    unseen = [flow for flow in outcomes if flow.state == "finished" and not (flow.packets and flow.paths)]
    if unseen:
        raise OutcomeError(
            f"{len(unseen)} finished flows are missing in the agents' reports, the first from "
            f"{unseen[0].source}:{unseen[0].source_port} to {unseen[0].destination}",
            remedy="see whether agents were restarted",
        )


def _ovs_version() -> dict[str, str]:
    try:
        text = subprocess.run(
            ["ovs-vswitchd", "--version"], capture_output=True, text=True, check=True
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        return {}
    return {"open-vswitch": text.split("\n", 1)[0].rsplit(" ", 1)[-1]}
