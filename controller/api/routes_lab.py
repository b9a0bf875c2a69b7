"""Routes about the lab around a controller: what its supervisor reports. In labs only."""

from __future__ import annotations

from flask import Blueprint

from controller.api import answers_live
from controller.api.bodies import RestartBody, body
from controller.api.describing import Description, describe
from controller.api.problems import ProblemError
from controller.lifecycle import RunningController
from controller.live.event_log import PartRestarted


def lab_routes(running: RunningController, lab: bool) -> Blueprint:
    """The blueprint."""
    routes = Blueprint("lab", __name__, url_prefix="/api/v1/lab")

    @routes.post("/restarts")
    @describe(
        Description(
            "Say that a part of the lab ended and was started again: it becomes an event (labs only).",
            answers_live.RestartView,
            RestartBody,
            status=201,
            problems=(403,),
        )
    )
    def restarted() -> tuple[answers_live.RestartView, int]:
        if not lab:
            raise ProblemError(403, "parts are restarted in labs only: this controller does not run for one")
        said = body(RestartBody)
        running.events.add(PartRestarted(said.part, said.how, said.after_s))
        return {"part": said.part, "how": said.how, "after_s": said.after_s}, 201

    return routes
