"""Routes of a simulated run that goes on: its fabric, and what the links carry."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from typing import Final

from controller.api.describing import Description
from controller.api.problems import ProblemError
from controller.api.routing import get
from controller.store.experiments import ExperimentStore
from engine import answers
from engine.dispatcher import Engine
from engine.simulated_fabric import SimulatedFabricView, links_view, simulated_fabric_view
from experiments.spec.spec import spec_from_dict
from simulation.link_samples import LinkSample

ONE: Final = "/experiments/<number:experiment>"
MOST_FABRICS: Final = 4
"""That are kept: each is asked for every second while it is watched, and to read a large spec takes seconds."""


class SimulatedRunRoutes:
    """Runs that are simulated now."""

    def __init__(self, engine: Engine, store: ExperimentStore) -> None:
        self._engine: Final = engine
        self._store: Final = store
        self._fabrics: Final = OrderedDict[int, SimulatedFabricView]()
        self._lock: Final = threading.Lock()

    @get(
        ONE + "/links",
        Description(
            "The fabric of an experiment, or of a sweep's first point, that is simulated now, and what links carry.",
            answers.SimulatedLinksView,
            problems=(404, 409),
        ),
    )
    def links(self, experiment: int) -> answers.SimulatedLinksView:
        head = self._store.experiment(experiment, runs=False)
        number, newest = self._newest(experiment, head["kind"] == "sweep")
        if newest is None:
            return {"run": None}
        sample, came_at = newest
        fabric = self._fabric(number)
        loads = links_view(fabric, sample, time.time() - (time.monotonic() - came_at))
        if loads is None:
            raise ProblemError(409, f"the worker of experiment {number} has sent counts of other links")
        return {
            "run": {
                "experiment": number,
                "scheme": sample.label,
                "repeat": sample.repeat,
                "at_s": sample.at_s,
                "fabric": {**fabric.view, "scheme": sample.label},
                "loads": loads,
            }
        }

    def _newest(self, experiment: int, sweep: bool) -> tuple[int, tuple[LinkSample, float] | None]:
        """Return whose run is sampled, the experiment's or a point's, with its newest sample and when that came."""
        for job in self._engine.queue.active():
            number = job.experiment
            if number == experiment or (sweep and self._engine.queue.parent(number) == experiment):
                newest = self._engine.reports.links(number)
                if newest is not None:
                    return number, newest
        return experiment, None

    def _fabric(self, number: int) -> SimulatedFabricView:
        with self._lock:  # so that a spec is read once, however many ask
            made = self._fabrics.get(number)
            if made is None:
                spec = spec_from_dict(self._store.experiment(number, runs=False)["spec"])
                made = self._fabrics[number] = simulated_fabric_view(spec)
                if len(self._fabrics) > MOST_FABRICS:
                    self._fabrics.popitem(last=False)
        return made
