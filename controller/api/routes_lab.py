"""Routes about the lab around a controller: what its supervisor reports. In labs only."""

from __future__ import annotations

from typing import Final

from controller.api import answers_live
from controller.api.bodies import RestartBody
from controller.api.describing import Description
from controller.api.problems import ProblemError
from controller.api.request_values import body
from controller.api.routing import post
from controller.lifecycle import RunningController
from controller.live.event_log import PartRestarted


class LabRoutes:
    """What a lab's supervisor reports; refused unless *lab* is true."""

    def __init__(self, running: RunningController, lab: bool) -> None:
        self._running: Final = running
        self._lab: Final = lab

    @post(
        "/restarts",
        Description(
            "Say that a part of the lab ended and was started again: it becomes an event (labs only).",
            answers_live.RestartView,
            RestartBody,
            status=201,
            problems=(403,),
        ),
    )
    def restarted(self) -> tuple[answers_live.RestartView, int]:
        if not self._lab:
            raise ProblemError(403, "parts are restarted in labs only: this controller does not run for one")
        restart = body(RestartBody)
        self._running.events.add(PartRestarted(restart.part, restart.how, restart.after_s))
        return {"part": restart.part, "how": restart.how, "after_s": restart.after_s}, 201
