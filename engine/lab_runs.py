"""Claimed experiments in labs of this machine; one that has the same fabric goes on in the same lab."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from engine.submitted_record import SubmittedRecord
from experiments.run.capture import LabRecorder
from experiments.run.deployment import Deployment
from experiments.run.experiment import Experiment
from experiments.run.progress import RunProgress, Steps
from experiments.spec.spec import spec_from_dict


class Watcher(Protocol):
    """Gets where an attempt is."""

    def progress(self, progress: RunProgress) -> None:
        """Take where the attempt is now."""

    def has_lab(self, lab: str, api: str | None, here: bool = False) -> None:
        """Take the id of its lab.

        api: the address of the lab's controller, once it is up; here: that is the queue's own.
        """


class Labs(Protocol):
    """Where a worker runs what needs a lab. fabric: key of the fabric that is up, "" without one."""

    @property
    def fabric(self) -> str:
        """Return the fabric of the lab that is up, "" if none is."""

    def run(self, claim: Mapping[str, Any], record: SubmittedRecord, watcher: Watcher) -> None:
        """Run what was claimed to its end."""

    def take_down(self) -> None:
        """End the labs that are the worker's own."""


def recorder_of(claim: Mapping[str, Any]) -> LabRecorder | None:
    """Return what records the packets of a claimed experiment; None: it was not asked for."""
    window = claim["record"]
    return None if window is None else LabRecorder(window["from_ms"], window["for_ms"])


def run_claimed(
    claim: Mapping[str, Any], deployment: Deployment, steps: Steps, record: SubmittedRecord
) -> None:
    """Run the spec that *deployment* has taken; its results are kept by the controller, and by no file here."""
    Experiment(
        deployment.spec,
        deployment,
        steps,
        plans=steps.plans[0],
        keep=lambda document, runs: Path(),
        record=record,
        recorder=recorder_of(claim),
    ).run()


class LabRuns:
    """A lab of its own, while there is one."""

    def __init__(self) -> None:
        self.fabric = ""
        self._deployment: Deployment | None = None

    def run(self, claim: Mapping[str, Any], record: SubmittedRecord, watcher: Watcher) -> None:
        """Run what was claimed, in the lab that is up if its fabric is the same, else in a new one."""
        spec = spec_from_dict(claim["spec"])
        steps = Steps([spec], watcher.progress)
        if self._deployment is not None and self.fabric == claim["fabric"]:
            self._deployment.take(spec)
        else:
            self.take_down()
            self._deployment = Deployment(spec, on_stage=steps.stage)
            watcher.has_lab(self._deployment.lab.lab_id, None)
            self._deployment.start()
            self.fabric = claim["fabric"]
        watcher.has_lab(self._deployment.lab.lab_id, self._deployment.client.url)
        run_claimed(claim, self._deployment, steps, record)

    def take_down(self) -> None:
        """End the lab, if there is one."""
        deployment, self._deployment, self.fabric = self._deployment, None, ""
        if deployment is not None:
            deployment.stop()
