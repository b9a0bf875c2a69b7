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
from capstan_client.progress import Progress

if TYPE_CHECKING:
    from capstan_client.client import Capstan
    from capstan_client.experiment import Experiment

__all__ = ["Capstan", "CapstanError", "ControllerError", "Experiment", "Progress"]


def __getattr__(name: str) -> Any:
    """Import what needs httpx when it is first used: programs that import the errors alone start without it."""
    if name == "Capstan":
        from capstan_client.client import Capstan

        return Capstan
    if name == "Experiment":
        from capstan_client.experiment import Experiment

        return Experiment
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
