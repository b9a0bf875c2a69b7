"""Where an experiment and its runs are recorded: the controller of its own lab, or one that it was submitted to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

from capstan_client.controller import ControllerClient
from capstan_client.errors import CapstanError, ControllerError
from experiments.results.document import Run, machine
from experiments.spec.serialized import spec_to_dict
from experiments.spec.spec import Spec
from workloads.plan import Plan


class CancelledError(CapstanError, RuntimeError):
    """An experiment that ends before its last run, on purpose; the text says what for."""


class Record(Protocol):
    """What an experiment reports while it goes on; raises ControllerError where that cannot be."""

    def begin(self, spec: Spec, versions: Mapping[str, str]) -> int:
        """Record that it begins; return its number."""

    def finished_runs(self, plans: Sequence[Plan]) -> Iterable[Run]:
        """Return runs that are there already, from an earlier attempt; plans: by repeat."""

    def add(self, run: Run, body: Mapping[str, Any]) -> int:
        """Record a finished run. Return its number."""

    def finish(self, document: Mapping[str, Any]) -> None:
        """Record that all is done, with this result."""

    def fail(self, error: BaseException) -> None:
        """Record that there will be no result; the receiver may be gone, too."""


class OwnRecord:
    """With the controller of the experiment's own lab."""

    def __init__(self, client: ControllerClient) -> None:
        self._client = client
        self._number = 0

    def begin(self, spec: Spec, versions: Mapping[str, str]) -> int:
        """Register it as one that begins now; return its number."""
        self._number = self._client.create_experiment(
            spec.name, spec.seed, spec_to_dict(spec), versions=versions, machine=machine()
        )
        return self._number

    def finished_runs(self, plans: Sequence[Plan]) -> Iterable[Run]:
        """Return nothing: there was no earlier attempt."""
        return ()

    def add(self, run: Run, body: Mapping[str, Any]) -> int:
        """Record a finished run with its flows; return its number."""
        return int(self._client.add_run(self._number, body)["id"])

    def finish(self, document: Mapping[str, Any]) -> None:
        """Record what lists of experiments show of the result."""
        summary = {key: document[key] for key in ("schemes", "cpu_limited", "disturbed", "baseline")}
        self._client.finish_experiment(self._number, summary)

    def fail(self, error: BaseException) -> None:
        """Record why there is no result, unless the controller is gone, too."""
        with suppress(ControllerError):
            words = str(error) or type(error).__name__
            self._client.fail_experiment(self._number, words, cancelled=isinstance(error, CancelledError))
