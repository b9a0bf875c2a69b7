"""Routes about faults made on purpose: in labs only."""

from __future__ import annotations

from typing import Any, Final

from controller.api import answers_live
from controller.api.bodies import FaultBody
from controller.api.describing import Description
from controller.api.problems import ProblemError
from controller.api.request_values import body
from controller.api.routing import delete, get, post
from controller.lifecycle import RunningController
from controller.live.topics import fault_object
from controller.plane.faults import FaultConflictError, FaultError


class FaultRoutes:
    """Faults in force; where *lab* is true they may be begun and ended."""

    def __init__(self, running: RunningController, lab: bool) -> None:
        self._running: Final = running
        self._lab: Final = lab

    def _check_lab(self) -> None:
        if not self._lab:
            raise ProblemError(403, "faults are made in labs only: this controller does not run for one")

    @get("", Description("Faults in force.", answers_live.FaultsView))
    def listing(self) -> Any:
        return {
            "faults": [fault_object(fault) for fault in self._running.faults.all()],
            "possible": self._lab,
        }

    @post(
        "",
        Description(
            "Take a link, a switch or an agent down, or make a link slower (labs only).",
            answers_live.FaultView,
            FaultBody,
            status=201,
            problems=(403, 404, 409, 503),
        ),
    )
    def begin(self) -> tuple[Any, int]:
        self._check_lab()
        wanted = body(FaultBody)
        _check_slowness(wanted)
        try:
            begun = self._running.faults.begin(wanted.kind, wanted.target, wanted.rate_mbps, wanted.delay_ms)
            return fault_object(begun), 201
        except FaultError as error:
            raise ProblemError(404, str(error), "body.target") from None
        except FaultConflictError as error:
            raise ProblemError(409, str(error), "body.target") from None
        except TimeoutError:  # an OSError, too
            raise
        except OSError as error:
            raise _not_kept(error) from None

    @delete(
        "/<number:fault>",
        Description("End a fault (labs only).", answers_live.EndedFault, problems=(403, 404, 503)),
    )
    def end(self, fault: int) -> answers_live.EndedFault:
        self._check_lab()
        try:
            return {"ended": self._running.faults.end(fault).id}
        except FaultError as error:
            raise ProblemError(404, str(error)) from None
        except TimeoutError:  # an OSError, too
            raise
        except OSError as error:
            raise _not_kept(error) from None


def _not_kept(error: OSError) -> ProblemError:
    return ProblemError(
        503,
        f"what faults there are cannot be kept over a restart, so nothing has changed: {error.strerror or error}; make "
        "room in the data directory, and ask again",
    )


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
