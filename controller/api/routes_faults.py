"""Routes about faults made on purpose: in labs only."""

from __future__ import annotations

from typing import Any

from flask import Blueprint

from controller.api import answers
from controller.api.bodies import LARGEST, FaultBody, body
from controller.api.describing import Description, describe
from controller.api.problems import ProblemError
from controller.faults import FaultConflictError, FaultError
from controller.live.topics import fault_object
from controller.running import RunningController


def fault_routes(running: RunningController, lab: bool) -> Blueprint:
    """The blueprint."""
    routes = Blueprint("faults", __name__, url_prefix="/api/v1/faults")

    def only_in_labs() -> None:
        if not lab:
            raise ProblemError(403, "faults are made in labs only: this controller does not run for one")

    @routes.get("")
    @describe(Description("Faults in force.", answers.FaultsView))
    def listing() -> Any:
        return {"faults": [fault_object(one) for one in running.faults.all()], "possible": lab}

    @routes.post("")
    @describe(
        Description(
            "Take a link or a switch down (labs only).",
            answers.FaultView,
            FaultBody,
            status=201,
            problems=(403, 404, 409, 503),
        )
    )
    def begin() -> tuple[Any, int]:
        only_in_labs()
        wanted = body(FaultBody)
        try:
            return fault_object(running.faults.begin(wanted.kind, wanted.target)), 201
        except FaultError as error:
            raise ProblemError(404, str(error), "body.target") from None
        except FaultConflictError as error:
            raise ProblemError(409, str(error), "body.target") from None

    @routes.delete(f"/<int(max={LARGEST}):fault>")
    @describe(Description("End a fault (labs only).", answers.EndedFault, problems=(403, 404, 503)))
    def end(fault: int) -> answers.EndedFault:
        only_in_labs()
        try:
            return {"ended": running.faults.end(fault).id}
        except FaultError as error:
            raise ProblemError(404, str(error)) from None

    return routes
