"""What is submitted to the controller of a lab that is held: run on its fabric, or in a lab beside it.

An experiment with the same fabric and transport runs on the fabric that is up; after it the scheme from before is in
force again. Any other gets a lab, with a controller of its own, for as long as it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from typing import Any, Final, Self

from capstan_client.errors import ControllerError
from controller.agents.token import WORKER_SECRET_FILE
from engine.lab_runs import LabRuns, Watcher, run_claimed
from engine.submission import fabric_key
from engine.submitted_record import SubmittedRecord
from engine.worker import Attempt, Worker, machine_slot
from engine.worker_client import WorkerClient
from experiments.run.deployment import Deployment
from experiments.run.progress import Steps
from experiments.spec.spec import spec_from_dict

NAME: Final = "lab"
PATIENCE_S: Final = 10.0
"""For a controller that is started again. Whether it is gone for good is for the process that holds the lab to find."""


class HeldLab:
    """The fabric that is up, and a lab beside it while one is needed: `engine.lab_runs.Labs`."""

    def __init__(self, deployment: Deployment) -> None:
        self._deployment = deployment
        self._held = fabric_key(deployment.spec)
        self._beside = LabRuns()
        self._slot = ExitStack()

    @property
    def fabric(self) -> str:
        """Return the fabric of the lab that is up: the one beside it if there is one, else the held one."""
        return self._beside.fabric or self._held

    def run(self, claim: Mapping[str, Any], record: SubmittedRecord, watcher: Watcher) -> None:
        """Run what was claimed to its end. Raises what `Experiment.run` and `Deployment.start` do."""
        if claim["fabric"] == self._held:
            self.take_down()
            self._run_here(claim, record, watcher)
            return
        if not self._beside.fabric:
            self._slot.enter_context(machine_slot(1))
        self._beside.run(claim, record, watcher)

    def take_down(self) -> None:
        """End the lab beside the fabric that is held, which stays."""
        self._beside.take_down()
        self._slot.close()

    def _run_here(self, claim: Mapping[str, Any], record: SubmittedRecord, watcher: Watcher) -> None:
        deployment, held = self._deployment, self._deployment.spec
        before = deployment.client.scheme()
        spec = spec_from_dict(claim["spec"])
        steps = Steps([spec], watcher.progress)
        deployment.take(spec)
        watcher.has_lab(deployment.lab.lab_id, deployment.client.url, here=True)
        try:
            run_claimed(claim, deployment, steps, record)
        finally:
            deployment.take(held)
            with suppress(ControllerError):  # the process that holds the lab asks next whether it answers
                self._restore(before)

    def _restore(self, before: Mapping[str, Any]) -> None:
        """Put a scheme in force again, as the API showed it."""
        client, packet_time_s = self._deployment.client, before["packet_time_us"] / 1e6
        if before["base"] in client.scheme_names():
            client.set_scheme(before["base"], packet_time_s=packet_time_s, overrides=before["overrides"])
        else:
            client.set_scheme(before["scheme"], packet_time_s=packet_time_s)


class HeldQueue:
    """The queue of a held lab's controller, and its one worker: this process. Use as a context manager.

    cores: for simulations, which have all of them. on_attempt: gets each attempt when it begins and when it is over.
    """

    def __init__(
        self, deployment: Deployment, cores: int, on_attempt: Callable[[Attempt], None] = lambda attempt: None
    ) -> None:
        own = deployment.client
        self._client = WorkerClient(own.url, own.token, patience_s=PATIENCE_S)
        secret = ""
        with suppress(FileNotFoundError):  # a controller without experiments makes none
            secret = (deployment.controller_data / WORKER_SECRET_FILE).read_text(encoding="utf-8").strip()
        self._worker = Worker(
            self._client,
            NAME,
            takes="all",
            cores=cores,
            labs=HeldLab(deployment),
            on_attempt=on_attempt,
            secret=secret,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def work_off(self) -> int:
        """Run what is queued until nothing is left; return how many attempts it made. Raises ControllerError."""
        return self._worker.run()

    def waiting(self) -> bool:
        """Return whether anything is queued; False while the controller does not answer."""
        try:
            return bool(self._client.queued())
        except ControllerError:
            return False
