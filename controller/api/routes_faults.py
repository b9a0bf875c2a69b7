"""Routes about faults made on purpose: in labs only."""

from __future__ import annotations

from typing import Any

from flask import Blueprint

from controller.api import answers_live
from controller.api.bodies import FaultBody, body
from controller.api.describing import Description, describe
from controller.api.problems import ProblemError
from controller.lifecycle import RunningController
from controller.live.topics import fault_object
from controller.plane.faults import FaultConflictError, FaultError


def fault_routes(running: RunningController, lab: bool) -> Blueprint:
    """The blueprint."""
    routes = Blueprint("faults", __name__, url_prefix="/api/v1/faults")

    def only_in_labs() -> None:
        if not lab:
            raise ProblemError(403, "faults are made in labs only: this controller does not run for one")

    @routes.get("")
    @describe(Description("Faults in force.", answers_live.FaultsView))
    def listing() -> Any:
        return {"faults": [fault_object(one) for one in running.faults.all()], "possible": lab}

    @routes.post("")
    @describe(
        Description(
            "Take a link, a switch or an agent down, or make a link slower (labs only).",
            answers_live.FaultView,
            FaultBody,
            status=201,
            problems=(403, 404, 409, 503),
        )
    )
    def begin() -> tuple[Any, int]:
        only_in_labs()
        wanted = body(FaultBody)
        _check_slowness(wanted)
        try:
            begun = running.faults.begin(wanted.kind, wanted.target, wanted.rate_mbps, wanted.delay_ms)
            return fault_object(begun), 201
        except FaultError as error:
            raise ProblemError(404, str(error), "body.target") from None
        except FaultConflictError as error:
            raise ProblemError(409, str(error), "body.target") from None

    @routes.delete("/<number:fault>")
    @describe(Description("End a fault (labs only).", answers_live.EndedFault, problems=(403, 404, 503)))
    def end(fault: int) -> answers_live.EndedFault:
        only_in_labs()
        try:
            return {"ended": running.faults.end(fault).id}
        except FaultError as error:
            raise ProblemError(404, str(error)) from None

    return routes


def _check_slowness(wanted: FaultBody) -> None:
    slow = wanted.kind == "slow-link"
    for field in ("rate_mbps", "delay_ms"):
        if not slow and getattr(wanted, field) is not None:
            raise ProblemError(
                422, f"body.{field}: is for slow-link only, not {wanted.kind}", f"body.{field}"
            )
    if slow and wanted.rate_mbps is None and not wanted.delay_ms:
        raise ProblemError(
            422, "body.rate_mbps: say a rate, or a delay_ms above 0, or both", "body.rate_mbps"
        )
