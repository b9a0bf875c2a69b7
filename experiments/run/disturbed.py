"""Runs during which a part of the lab ended by itself: they measure something else, are repeated, or carry a mark."""

from __future__ import annotations

from typing import Final

from capstan_client.errors import CapstanError
from experiments.run.deployment import Deployment
from experiments.run.supervision import Restart

MOST_REPEATS: Final = 2
"""How often a disturbed run is done again; then it counts, with its mark."""


class DisturbedError(CapstanError, RuntimeError):
    """A part of the lab ended during a run: it is to be done again."""


class Watch:
    """What happens to the parts of a lab during one run, from now on."""

    def __init__(self, deployment: Deployment, last: bool) -> None:
        """Begin to watch. last: whether the run counts, disturbed or not."""
        self._deployment = deployment
        self._last = last
        self._deaths = deployment.deaths
        self._known = len(deployment.restarts)

    @property
    def disturbed(self) -> bool:
        """Return whether a part has ended."""
        return self._deployment.deaths > self._deaths

    @property
    def restarts(self) -> tuple[Restart, ...]:
        """Return the parts that ended and are back."""
        return self._deployment.restarts[self._known :]

    @property
    def controller_lost(self) -> bool:
        """Return whether events are lost: those of another controller have cursors that begin anew."""
        return any(restart.part == "controller" for restart in self.restarts)

    def check(self) -> None:
        """Raise DisturbedError if a part has ended and the run may be repeated.

        Raises DeploymentError if the lab is to end.
        """
        self._deployment.check()
        if self.disturbed and not self._last:
            raise DisturbedError("a part of the lab ended during the run")

    def settle(self) -> None:
        """Raise DisturbedError likewise, once all that ended is back, and found by the controller."""
        self._deployment.wait_complete()
        self.check()
        if self.disturbed:
            self._deployment.wait_whole()
