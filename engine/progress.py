"""The progress of submissions, from what workers report of their experiments."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypedDict

from capstan_client.progress import Progress as SubmissionProgress
from controller.api.answers_experiments import State
from engine.worker_report import WorkerReportBody
from simulation.link_samples import LinkSample

LEASE_S: Final = 30.0
"""A worker that has not reported for so long, in seconds, is lost."""


class WorkerView(TypedDict):
    """One worker: ``point`` of the sweep that it is at, ``lab``: the id of its lab, once that is there."""

    name: str
    point: int | None
    lab: str | None
    stage: str


@dataclass(frozen=True, slots=True)
class ProgressView(SubmissionProgress):
    """Where an experiment is. Flows are those of the run that is on. ``left_s``: null when it is over.
    ``queue_position``: 1 is next; null when it does not wait."""

    experiment: int
    state: State
    workers: list[WorkerView]
    at: float


class WorkerReports:
    """Reports by experiment, newest only; safe to call from any thread. Times: monotonic seconds."""

    def __init__(self, now: float) -> None:
        self._began = now
        self._reports: dict[int, tuple[WorkerReportBody, float]] = {}
        self._links: dict[int, tuple[LinkSample, float]] = {}
        self._lock = threading.Lock()

    def put(self, experiment: int, report: WorkerReportBody, now: float) -> None:
        """Note where a worker is."""
        with self._lock:
            self._reports[experiment] = replace(report, links=None), now
            if report.links is not None and report.links.is_small():
                self._links[experiment] = report.links, now

    def newest(self, experiment: int) -> WorkerReportBody | None:
        """Return the last report of an experiment's worker."""
        with self._lock:
            report, _ = self._reports.get(experiment, (None, 0.0))
        return report

    def links(self, experiment: int) -> tuple[LinkSample, float] | None:
        """Return the newest sample of the links of its run, if it is simulated, and when it came."""
        with self._lock:
            return self._links.get(experiment)

    def forget(self, experiment: int) -> None:
        """Forget the report: no worker is at it any more."""
        with self._lock:
            self._reports.pop(experiment, None)
            self._links.pop(experiment, None)

    def lost(self, experiment: int, now: float) -> bool:
        """Return whether its worker has been silent for too long (counted from our own start on)."""
        with self._lock:
            _, reported = self._reports.get(experiment, (None, self._began))
        return now - max(reported, self._began) > LEASE_S

    def progress(
        self, rows: Sequence[Mapping[str, Any]], order: Sequence[int], workers: int, wall: float
    ) -> ProgressView:
        """Return the progress of the submission with these *rows* of `ExperimentQueue.standing`, itself first.

        order: submissions that wait. workers: how many work at the same time. wall: now, Unix seconds.
        """
        top, parts = rows[0], rows[1:] or rows
        with self._lock:
            reported_at = {
                row["id"]: self._reports[row["id"]][0] for row in parts if row["id"] in self._reports
            }
        reports = {
            row["id"]: (row, reported_at[row["id"]])
            for row in parts
            if row["id"] in reported_at and row["worker"] and reported_at[row["id"]].attempt == row["attempt"]
        }
        first = next(iter(reports.values()), None)
        stage = top["state"]
        if first is not None:
            row, report = first
            stage = f"{row['words']}: {report.stage}" if row["words"] else report.stage
        started = top["started_at"]
        ended = top["finished_at"] if top["finished_at"] is not None else wall
        return ProgressView(
            experiment=top["id"],
            state=top["state"],
            stage=stage,
            runs_done=sum(row["runs_kept"] for row in parts),
            runs=sum(row["runs"] for row in parts),
            points_done=sum(row["state"] == "finished" for row in rows[1:]),
            points=len(rows) - 1,
            flows_finished=sum(report.finished for _, report in reports.values()),
            flows_failed=sum(report.failed for _, report in reports.values()),
            flows=sum(report.flows for _, report in reports.values()),
            elapsed_s=0.0 if started is None else round(max(0.0, ended - started), 3),
            left_s=_left_s(parts, reported_at, workers),
            queue_position=order.index(top["id"]) + 1 if top["id"] in order else None,
            workers=[
                {"name": report.worker, "point": row["point"], "lab": report.lab, "stage": report.stage}
                for row, report in reports.values()
            ],
            at=wall,
        )


def _left_s(
    parts: Sequence[Mapping[str, Any]], reports: Mapping[int, WorkerReportBody], workers: int
) -> float | None:
    """Return the seconds that are left: reported for what runs, estimated for what waits, shared by workers."""
    total_s = longest = 0.0
    for row in parts:
        share = 1 - row["runs_kept"] / row["runs"] if row["runs"] else 1.0
        own = 0.0
        if row["state"] == "queued":
            own = row["estimated_s"] * share
        elif row["state"] == "running":
            report = reports.get(row["id"])
            own = row["estimated_s"] * share if report is None or report.left_s is None else report.left_s
        total_s, longest = total_s + own, max(longest, own)
    if not any(row["state"] in ("queued", "running") for row in parts):
        return None
    return round(max(total_s / max(workers, 1), longest), 1)
