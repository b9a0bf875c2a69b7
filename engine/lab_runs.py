"""Claimed experiments in labs of this machine; one that has the same fabric goes on in the same lab."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from engine.submitted_record import SubmittedRecord
from experiments.run.deployment import Deployment
from experiments.run.experiment import Experiment
from experiments.run.progress import OnProgress, Steps
from experiments.spec.spec import spec_from_dict


class LabRuns:
    """A lab, while there is one. fabric: what it is of, "" without one."""

    def __init__(self) -> None:
        self.fabric = ""
        self._deployment: Deployment | None = None

    def run(
        self,
        claim: Mapping[str, Any],
        record: SubmittedRecord,
        on_progress: OnProgress,
        on_lab: Callable[[str, str | None], None],
    ) -> None:
        """Run what was claimed to its end. on_lab: takes the lab's id, and its controller's address once it is up."""
        spec = spec_from_dict(claim["spec"])
        steps = Steps([spec], on_progress)
        if self._deployment is not None and self.fabric == claim["fabric"]:
            self._deployment.take(spec)
        else:
            self.take_down()
            self._deployment = Deployment(spec, on_stage=steps.stage)
            on_lab(self._deployment.lab.lab_id, None)
            self._deployment.start()
            self.fabric = claim["fabric"]
        on_lab(self._deployment.lab.lab_id, self._deployment.client.url)
        Experiment(spec, self._deployment, steps, steps.plans[0], lambda document, runs: Path(), record).run()

    def take_down(self) -> None:
        """End the lab, if there is one."""
        deployment, self._deployment, self.fabric = self._deployment, None, ""
        if deployment is not None:
            deployment.stop()
