"""Runs of one spec, or of a sweep's points, simulated side by side: as many at once as there are cores to use."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

import capstan_native

from experiments.results.document import Run
from experiments.spec.spec import SchemeChoice, Spec
from simulation.fabrics import SettingsError
from simulation.link_samples import LinkSample, LinkSampler, SampledRun
from simulation.own_paths import NEEDED, MakePathPolicy, asks_for_own_paths
from simulation.packet_trace import Recorder
from simulation.scheme_hosts import SimulatedHosts, check_marks, hosts_under
from simulation.spec_fabric import simulated_fabric
from simulation.spec_marks import mark_from
from simulation.spec_run import Setting, simulate_run, try_out
from simulation.spec_scheme import SimulatedScheme, simulated_scheme
from simulation.spec_transport import transport_of
from simulation.tcp import Tcp
from workloads.plan import Plan

LEAST_SHARE_FOR_ESTIMATE = 0.02
"""Of all flows that have ended, before which a time that is left would be a guess."""
_LOOK_S = 0.2


@dataclass(frozen=True, slots=True)
class Step:
    """Where a simulation is. point, label: of the run that moved last; run: the newest that has begun, from 1 on.

    finished, flows: of all runs; left_s: None while too little has ended to say.
    """

    point: str
    label: str
    run: int
    runs: int
    runs_done: int
    finished: int
    flows: int
    elapsed_s: float
    left_s: float | None


OnStep = Callable[[Step], None]


@dataclass(frozen=True, slots=True)
class Case:
    """A spec without a sweep that a simulation can do. point: of a sweep, in words.

    transport, mark_from: the spec's own; hosts: under each of the schemes.
    """

    setting: Setting
    schemes: Sequence[tuple[SchemeChoice, SimulatedScheme]]
    point: str
    transport: Tcp
    mark_from: int
    hosts: Sequence[SimulatedHosts]

    @property
    def spec(self) -> Spec:
        """Return the spec that it was made from."""
        return self.setting.spec


@dataclass(frozen=True, slots=True)
class _Job:
    case: int
    choice: SchemeChoice
    scheme: SimulatedScheme
    repeat: int
    plan: Plan


class _Cancelled(Exception):
    """The batch is to end: an error of another run, or a signal."""


def prepare(
    spec: Spec, point: str = "", own_paths: MakePathPolicy | None = None, shaped: bool = False
) -> Case:
    """Return a spec as a simulation takes it. own_paths: makes what decides classes with `entropy: file`.

    shaped: links are shapers, as the lab's are.

    Raises:
        SettingsError: the first thing in it that a simulation cannot do, with the point of the sweep; where: its field.
    """
    try:
        setting = Setting(spec, simulated_fabric(spec.fabric, shaped), own_paths)
        tcp = transport_of(spec)
        schemes = [(choice, simulated_scheme(spec, choice)) for choice in spec.schemes]
        for choice, scheme in schemes:
            if own_paths is None and asks_for_own_paths(scheme.scheme):
                raise SettingsError(f"scheme {choice.label}: {NEEDED}")
        hosts = [hosts_under(spec, scheme) for _, scheme in schemes]
        check_marks(spec, hosts)
        for choice, scheme in schemes:
            try_out(setting, choice, scheme)
        return Case(setting, schemes, point, tcp, mark_from(spec, tcp), hosts)
    except SettingsError as error:
        raised = SettingsError(f"{point}: {error}" if point else str(error))
        raised.where = error.where
        raise raised from None


def simulate(
    cases: Sequence[Case],
    on_step: OnStep = lambda step: None,
    *,
    cores: int = 1,
    without: Collection[tuple[int, str, int]] = (),
    recorder: Recorder | None = None,
    on_links: Callable[[LinkSample], None] | None = None,
) -> Generator[tuple[int, Run]]:
    """Yield each run as it ends, with the index of its case. What runs at the same time changes no result.

    on_step: called from any thread, but by one at a time. without: (case, label, repeat) of runs that exist already.
    recorder: of the first run. on_links: called with samples of what links carry, of one run at a time.
    If the caller ends early (an error, a signal), so do all runs.

    Raises:
        SettingsError: a run that cannot be, or carries nothing.
    """
    jobs = [
        _Job(index, choice, scheme, repeat, plan)
        for index, case in enumerate(cases)
        for repeat in range(case.spec.repeats)
        for plan in [case.spec.plan(repeat)]
        for choice, scheme in case.schemes
        if (index, choice.label, repeat) not in without
    ]
    progress = _Progress([len(job.plan.sized) for job in jobs], on_step)
    sampler = None if on_links is None else LinkSampler(on_links, time.monotonic)
    cancelled = threading.Event()

    def run_job(number: int) -> tuple[int, Run]:
        job = jobs[number]
        case = cases[job.case]

        sampled = SampledRun(number, job.choice.label, job.repeat, case.spec, case.setting.fabric)

        def flows_ended(finished: int) -> None:
            if cancelled.is_set():
                raise _Cancelled
            progress.flows(number, case.point, job.choice.label, finished)

        def on_run_step(simulation: capstan_native.Simulation) -> None:
            flows_ended(simulation.finished())
            if sampler is not None:
                sampler.look(sampled, simulation)

        flows_ended(0)
        recorded_by = None if number else recorder
        run = simulate_run(
            case.setting,
            job.choice,
            job.scheme,
            job.repeat,
            plan=job.plan,
            on_step=on_run_step,
            recorder=recorded_by,
        )
        progress.end(number, case.point, job.choice.label)
        if sampler is not None:
            sampler.end(number)
        return job.case, run

    pool = ThreadPoolExecutor(max(1, min(cores, len(jobs))), thread_name_prefix="simulation")
    try:
        waiting: set[Future[tuple[int, Run]]] = {pool.submit(run_job, number) for number in range(len(jobs))}
        while waiting:
            # with a limit: a signal's handler runs between waits
            done, waiting = wait(waiting, timeout=_LOOK_S, return_when=FIRST_COMPLETED)
            for future in done:
                yield future.result()
    finally:
        cancelled.set()
        pool.shutdown(cancel_futures=True)


class _Progress:
    """How far all runs are together."""

    def __init__(self, flows: Sequence[int], on_step: OnStep) -> None:
        self._flows = flows
        self._finished = [0] * len(flows)
        self._begun = self._done = 0
        self._on_step = on_step
        self._started = time.monotonic()
        self._lock = threading.Lock()

    def flows(self, number: int, point: str, label: str, finished: int) -> None:
        with self._lock:
            self._begun = max(self._begun, number + 1)
            self._finished[number] = finished
            self._publish(point, label)

    def end(self, number: int, point: str, label: str) -> None:
        with self._lock:
            self._finished[number] = self._flows[number]
            self._done += 1
            self._publish(point, label)

    def _publish(self, point: str, label: str) -> None:
        elapsed_s = time.monotonic() - self._started
        finished, flows = sum(self._finished), sum(self._flows)
        self._on_step(
            Step(
                point,
                label,
                self._begun,
                len(self._flows),
                self._done,
                finished,
                flows,
                elapsed_s,
                left_s(elapsed_s, finished / flows if flows else 0.0),
            )
        )


def left_s(elapsed_s: float, share: float) -> float | None:
    """Return the seconds that are left after *elapsed_s* for a *share* of the work; None: too early to say."""
    return elapsed_s * (1 - share) / share if share >= LEAST_SHARE_FOR_ESTIMATE else None
