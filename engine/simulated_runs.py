"""Claimed experiments in simulation: without root, without a lab."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from engine.submitted_record import SubmittedRecord
from experiments.results.document import Run, own_versions
from experiments.results.run_record import run_body
from experiments.run.progress import OnProgress, RunProgress
from experiments.spec.spec import spec_from_dict
from simulation.batch import Step
from simulation.experiment import simulate_document
from simulation.link_samples import LinkSample


def simulate_claim(
    claim: Mapping[str, Any],
    record: SubmittedRecord,
    on_progress: OnProgress,
    *,
    on_links: Callable[[LinkSample], None],
    cores: int,
) -> None:
    """Simulate what was claimed to its end; each run is recorded as it ends. cores: how many runs at once.

    on_links: called with samples of what links of a run carry.

    Raises:
        SettingsError: a simulation cannot do it, or carries nothing.
    """
    spec = spec_from_dict(claim["spec"])
    number = record.begin(spec, own_versions())
    plans = [spec.plan(repeat) for repeat in range(spec.repeats)] if claim["kept"] else []
    finished = list(record.finished_runs(plans))

    def on_run(run: Run) -> Run:
        return replace(run, run_id=record.add(run, run_body(run, spec.seed, time.time())))

    def on_step(step: Step) -> None:
        on_progress(
            RunProgress(
                stage=step.label,
                run=len(finished) + step.run,
                runs=len(finished) + step.runs,
                finished=step.finished,
                failed=0,
                flows=step.flows,
                elapsed_s=step.elapsed_s,
                left_s=step.left_s,
            )
        )

    document, _ = simulate_document(
        spec, on_step, cores=cores, finished=finished, on_run=on_run, on_links=on_links
    )
    record.finish({**document, "experiment": number})
