"""The record of an attempt at the controller that it was claimed from; the worker reports its end."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from engine.finished_runs import finished_run
from engine.worker_client import WorkerClient
from experiments.results.document import Run, json_text, machine
from experiments.results.notices import equipment, unlike
from experiments.results.outcome import OutcomeError
from experiments.spec.spec import Spec
from workloads.plan import Plan

_KEPT_RUNS: Final = "kept_runs"
"""Beside an attempt's versions: how many runs it goes on from, by Capstan's version, for the attempts after it."""
_KEPT_WITH: Final = "kept_with"
"""Likewise, by what else these runs were made with."""


class SubmittedRecord:
    """What a claimed experiment reports while it goes on. summary: its document, once there is one."""

    def __init__(self, client: WorkerClient, claim: Mapping[str, Any]) -> None:
        self.summary: dict[str, Any] = {}
        self._client = client
        self._number = int(claim["experiment"])
        self._attempt = int(claim["attempt"])
        self._simulated = bool(claim["simulated"])
        self._has = {run["run"] for run in claim["kept"]}
        self._notices: list[str] = []

    def begin(self, spec: Spec, versions: Mapping[str, str]) -> int:
        """Record by what it runs; return its number, which it has since it was submitted."""
        kept: dict[str, int] = {}
        kept_with: list[dict[str, Any]] = []
        ours = machine()
        if self._has:
            experiment = self._client.results(self._number)["experiment"]
            before = experiment["versions"]
            kept = dict(before.get(_KEPT_RUNS, {}))
            if (last := before.get("capstan")) is not None:
                kept[last] = kept.get(last, 0) + max(0, len(self._has) - sum(kept.values()))
            others = [
                f"{runs} runs were kept from an earlier attempt by Capstan {version}"
                for version, runs in kept.items()
                if runs and version != versions.get("capstan")
            ]
            if others:
                self._notices.append(
                    f"{', '.join(others)}; the others are by {versions.get('capstan')}: submit it anew for runs of one "
                    "version"
                )
            kept_with = self._kept_with(experiment)
            own = self._equipment({"versions": versions, "machine": ours})
            self._notices += [
                f"{group['runs']} runs were kept from an earlier attempt with {words}: "
                "submit it anew for runs that are alike in this"
                for group in kept_with
                if (words := unlike(group["with"], own))
            ]
        by: dict[str, Any] = dict(versions)
        if kept:
            by[_KEPT_RUNS] = kept
        if kept_with:
            by[_KEPT_WITH] = kept_with
        self._client.equip(self._number, self._attempt, by, ours)
        return self._number

    def finished_runs(self, plans: Sequence[Plan]) -> Iterable[Run]:
        """Yield the runs of earlier attempts, with their flows and mode changes.

        Raises ControllerError; OutcomeError for a run that another version kept.
        """
        if not self._has:
            return
        for run in self._client.results(self._number)["runs"]:
            flows = self._client.flows_of(self._number, run["id"])
            modes = self._client.modes_of_run(self._number, run["id"])
            try:
                finished = finished_run(run, flows, modes, plans[run["repeat"]])
            except (LookupError, TypeError, ValueError) as error:
                raise OutcomeError(
                    f"run {run['id']} of an earlier attempt cannot be gone on from: {error!r}",
                    remedy="its records are gone, or another version kept it: submit the experiment anew",
                ) from None
            yield finished

    def add(self, run: Run, body: Mapping[str, Any]) -> int:
        """Record a finished run, for this attempt only. Return its number."""
        modes = [{name: change[name] for name in ("at_s", "leaf", "mode", "cause")} for change in run.modes]
        own = {"modes": modes, "attempt": self._attempt}
        return int(self._client.add_run(self._number, {**body, **own})["id"])

    def finish(self, document: Mapping[str, Any]) -> None:
        """Keep the result document for the end of the attempt."""
        notices = [*document["notices"], *self._notices]
        self.summary = json.loads(json_text({**document, "notices": notices}))

    def fail(self, error: BaseException) -> None:
        """Do nothing: the worker says how the attempt ended."""
        pass

    def _kept_with(self, experiment: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return how many runs of earlier attempts were made with what; *experiment*: as the last one has left it."""
        versions = experiment["versions"]
        groups = [dict(group) for group in versions.get(_KEPT_WITH, ())]
        rest = len(self._has) - sum(group["runs"] for group in groups)
        if versions and rest > 0:
            last = self._equipment(experiment)
            same = next((group for group in groups if group["with"] == last), None)
            if same is None:
                groups.append({"runs": rest, "with": last})
            else:
                same["runs"] += rest
        return groups

    def _equipment(self, experiment: Mapping[str, Any]) -> dict[str, Any]:
        """Return what figures depend on beside Capstan's version."""
        parts = equipment({**experiment, "simulated": self._simulated})
        return {
            name: value for name, value in parts.items() if name not in ("capstan", _KEPT_RUNS, _KEPT_WITH)
        }
