"""Client of a Capstan controller's REST API: submit experiments, follow them, read results, operate the fabric.

from capstan_client import Capstan

capstan = Capstan("http://127.0.0.1:8080")
experiment = capstan.submit(preset="small", sweep={"workload.flows.count": [10, 20]})
experiment.wait()
print(experiment.table())
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from capstan_client.errors import CapstanError, ControllerError

if TYPE_CHECKING:
    from capstan_client.client import Capstan
    from capstan_client.experiment import Experiment, Progress

__all__ = ["Capstan", "CapstanError", "ControllerError", "Experiment", "Progress"]


def __getattr__(name: str) -> Any:
    """Import what needs httpx when it is first used: programs that import the errors alone start without it."""
    if name == "Capstan":
        from capstan_client.client import Capstan

        return Capstan
    if name in ("Experiment", "Progress"):
        from capstan_client import experiment

        return getattr(experiment, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
