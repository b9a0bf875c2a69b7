"""A worker's client of the controller that experiments were submitted to."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, Literal

from capstan_client.controller import ANSWER_TIMEOUT_S, ControllerClient
from capstan_client.errors import ControllerError
from engine.executors import PATIENCE_S
from engine.worker_report import WorkerReportBody

Takes = Literal["all", "labs", "simulations"]
"""What a worker takes."""
_NOT_NOW: Final = (None, 429, 500, 502, 503, 504)
"""Statuses after which asking again may help; None: no answer."""


class WorkerClient(ControllerClient):
    """Asks again for a while where a controller does not answer, or cannot. patience_s: how long."""

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        patience_s: float = PATIENCE_S,
        sleep: Callable[[float], None] = time.sleep,
        authority: Path | None = None,
    ) -> None:
        super().__init__(url, token, authority)
        self._patience_s = patience_s
        self._sleep = sleep

    def claim(self, worker: str, fabric: str, takes: Takes = "all") -> dict[str, Any] | None:
        """Return what is to be run next; None: nothing. fabric: what the worker's lab is of, "" without one."""
        body = {"worker": worker, "fabric": fabric, "takes": takes, "question": secrets.randbits(53)}
        claimed: dict[str, Any] | None = self._ask("POST", "/engine/claims", body)["claim"]
        return claimed

    def queued(self) -> list[int]:
        """Return the numbers of what waits, the next first. Asks once only."""
        return [int(number) for number in super()._ask("GET", "/engine", None, timeout_s=5.0)["queued"]]

    def report(self, experiment: int, report: WorkerReportBody) -> bool:
        """Report where an attempt is. Return whether to go on. Asks once only: the next report comes soon."""
        answer = super()._ask("PUT", f"/experiments/{experiment}/progress", asdict(report), timeout_s=5.0)
        return bool(answer["go_on"])

    def equip(
        self, experiment: int, attempt: int, versions: Mapping[str, Any], machine: Mapping[str, Any]
    ) -> None:
        """Take what an attempt is run with."""
        body = {"attempt": attempt, "versions": dict(versions), "machine": dict(machine)}
        self._ask("PUT", f"/experiments/{experiment}/equipment", body)

    def end(
        self,
        experiment: int,
        attempt: int,
        state: str,
        *,
        summary: Mapping[str, Any] | None = None,
        error: str = "",
    ) -> None:
        """Note that an attempt is over."""
        body = {
            "attempt": attempt,
            "state": state,
            "summary": None if summary is None else dict(summary),
            "error": error,
        }
        try:
            self._ask("POST", f"/experiments/{experiment}/end", body, timeout_s=60.0)
        except ControllerError as refused:
            if refused.status != 409:  # it knows already: an answer was lost, or another worker is at it
                raise

    def flows_of(self, experiment: int, run: int) -> Sequence[dict[str, Any]]:
        """Return all flow records of a run."""
        flows: list[dict[str, Any]] = []
        after = 0
        while True:
            page = self._ask(
                "GET",
                f"/experiments/{experiment}/flows",
                query={"run": run, "after": after, "limit": 10_000},
            )
            flows += page["flows"]
            if page["next"] is None:
                return flows
            after = page["next"]

    def _ask(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        timeout_s: float = ANSWER_TIMEOUT_S,
        query: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        deadline = time.monotonic() + self._patience_s
        wait_s = 0.1
        while True:
            try:
                return super()._ask(method, path, body, timeout_s=timeout_s, query=query)
            except ControllerError as error:
                if error.status not in _NOT_NOW or time.monotonic() + wait_s > deadline:
                    raise
            self._sleep(wait_s)
            wait_s = min(2 * wait_s, 2.0)
