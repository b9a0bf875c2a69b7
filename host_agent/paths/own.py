"""A path policy of the operator's own, in a Python file outside of the package (`entropy: file`, docs/paths.md).

The file is named where an agent is started, by those who may run programs on that host; no message names one.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from capstan_client.errors import CapstanError
from host_agent.paths.base import Flow, Load, PathPolicy, Report, Route
from host_agent.randomness import RandomSource
from plain.python_file import FAILURES, failure_text, load
from protocol.underlay import EV_FIRST, EV_LAST

OwnPathPolicy = Callable[[RandomSource, float], PathPolicy]
"""Makes the policy: all its randomness, and the time of 1500 B on the slowest fabric link in seconds."""


class PathFileError(CapstanError, ValueError):
    """A file that holds no path policy, or one that does what no policy may; the text says where and what to do."""


def read_path_policy(file: Path) -> OwnPathPolicy:
    """Return the one subclass of `PathPolicy` that *file* defines. Made with (rng, packet_time_s); rng:
    numpy's Generator.

    Raises:
        PathFileError: there is none, several, or the file does not run.
    """
    if not file.is_file():
        raise PathFileError(f"path policy {file}: there is no such file")
    with _naming_the_line(file):
        module = load(file, "capstan_own_path_policy")
    if module is None:
        raise PathFileError(f"path policy {file}: its name must end in .py")
    policies = [
        member
        for member in vars(module).values()
        if isinstance(member, type)
        and issubclass(member, PathPolicy)
        and member.__module__ == module.__name__
    ]
    if len(policies) != 1:
        names = ", ".join(policy.__name__ for policy in policies) or "none"
        raise PathFileError(f"path policy {file}: must define one subclass of PathPolicy, there is {names}")
    kind = policies[0]
    from numpy.random import (
        default_rng,
    )  # half of what an agent's start takes, and only such a file's policy needs it

    def make(rng: RandomSource, packet_time_s: float) -> PathPolicy:
        generator = default_rng(int(rng.integers(1 << 63)))
        try:
            policy = kind(generator, packet_time_s)  # type: ignore[call-arg]
        except FAILURES as error:
            raise PathFileError(
                f"{_place(file, error)} (it is made as {kind.__name__}(rng, packet_time_s))"
            ) from error
        return Watched(file, policy)

    return make


class Watched(PathPolicy):
    """Passes all calls on; where the file's policy raises, or names no path, the error names its file and line."""

    def __init__(self, file: Path, policy: PathPolicy) -> None:
        self._file = file
        self._policy = policy
        self.learns = policy.learns  # type: ignore[misc]

    def entropy(self, flow: Flow, route: Route, size: int, now: float) -> int:
        """Return the policy's source port. Raise PathFileError if it is none, or the file's code fails."""
        try:
            port = self._policy.entropy(flow, route, size, now)
        except FAILURES as error:
            raise PathFileError(_place(self._file, error)) from error
        try:
            number = operator.index(port)
        except TypeError:
            number = None
        if number is None or not (EV_FIRST <= number <= EV_LAST or number in route.labels):
            raise PathFileError(
                f"path policy {self._file}: entropy() gave {port!r}, which is neither one of route.labels nor an "
                f"entropy value, {EV_FIRST} to {EV_LAST}"
            )
        return number

    def reported(self, report: Report, now: float) -> None:
        """Hand a report on."""
        with _naming_the_line(self._file):
            self._policy.reported(report, now)

    def lost(self, flow: int, leaf: str, entropy: int, now: float) -> None:
        """Hand a loss on."""
        with _naming_the_line(self._file):
            self._policy.lost(flow, leaf, entropy, now)

    def forget(self, flow: int) -> None:
        """Hand on that a flow is over."""
        with _naming_the_line(self._file):
            self._policy.forget(flow)

    def load(self, now: float) -> Load | None:
        """Return what the policy says of its load."""
        with _naming_the_line(self._file):
            return self._policy.load(now)

    def set_load(self, load: Load, now: float) -> None:
        """Hand the load of others on."""
        with _naming_the_line(self._file):
            self._policy.set_load(load, now)


@contextmanager
def _naming_the_line(file: Path) -> Iterator[None]:
    """Turn what the file's code raises within into a PathFileError."""
    try:
        yield
    except FAILURES as error:
        raise PathFileError(_place(file, error)) from error


def _place(file: Path, error: BaseException) -> str:
    return f"path policy {failure_text(file, error)}"
