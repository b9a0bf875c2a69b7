"""Whether a deployment's fabric is complete: what its controller still misses, and waiting until that is nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final

from capstan_client.controller import ControllerClient, Health
from capstan_client.errors import ControllerError
from experiments.run.parts import DeploymentError, ProcessPart
from experiments.run.traffic import log_tail
from topologies.fabric_spec import FabricSpec
from topologies.registry import MANAGEMENT_RANGE

READY_S: Final = 60.0
FOUND_AGAIN_S: Final = 5.0
"""What a fault has just given back is found again by then."""
LOOK_EVERY_S: Final = 0.05
MOST_LOG_LINES: Final = 40


def missing(fabric: FabricSpec, health: Health) -> list[str]:
    """Return what the controller has not found of *fabric* yet, and what it waits for, in words; empty: nothing."""
    layout = fabric.layout()
    links = [name for name in layout.link_names() if not name.startswith("h") and name not in fabric.down]
    expected = {
        "switches": (health.switches, len(layout.switches)),
        "links between switches": (health.links, len(links)),
        "agents": (health.agents, len(layout.hosts)),
        "hosts": (health.hosts, len(layout.hosts)),
    }
    incomplete = [f"{known} of {total} {kind}" for kind, (known, total) in expected.items() if known != total]
    waits = [] if health.ready else [f"the controller waits for {reason}" for reason in health.reasons]
    return incomplete + waits


def _no_way(health: Health) -> str:
    """Return what to look at where not one switch has come to the controller; else nothing."""
    if health.switches:
        return ""
    return (
        "; no switch has reached the controller: does a firewall of this machine drop TCP that comes in from "
        f"{MANAGEMENT_RANGE} (`nft list ruleset`)?"
    )


class Readiness:
    """Of one deployment.

    parts: its processes; an error shows the ends of their logs. client: returns its controller's client. check: called
    between two questions; what it raises ends the wait.
    """

    def __init__(
        self,
        fabric: FabricSpec,
        parts: Sequence[ProcessPart],
        *,
        client: Callable[[], ControllerClient],
        check: Callable[[], None],
    ) -> None:
        self._fabric = fabric
        self._parts = parts
        self._client = client
        self._check = check

    def wait(self) -> None:
        """Return once nothing is missing. Raises DeploymentError after READY_S seconds."""
        deadline = time.monotonic() + READY_S
        while True:
            self._check()
            health = self._client().health()
            absent = missing(self._fabric, health)
            if not absent:
                return
            if time.monotonic() > deadline:
                why = "; ".join(absent) + _no_way(health)
                raise DeploymentError(f"the fabric is not ready after {READY_S:g} s: {why}{self.log_ends()}")
            time.sleep(LOOK_EVERY_S)

    def check_health(self) -> Health:
        """Return the controller's health once nothing is missing, or at once while a fault holds something down.

        Raises DeploymentError for what is missing after FOUND_AGAIN_S seconds without such a fault.
        """
        deadline = time.monotonic() + FOUND_AGAIN_S
        while True:
            self._check()
            health = self._client().health()
            absent = missing(self._fabric, health)
            if not absent or self.held_down():
                return health
            if time.monotonic() > deadline:
                raise DeploymentError(f"the fabric is not whole: {'; '.join(absent)}{self.log_ends()}")
            time.sleep(0.1)

    def held_down(self) -> bool:
        """Return whether a fault holds a part of the fabric down: a slow link is there."""
        return any(fault["kind"] != "slow-link" for fault in self._client().faults())

    def log_ends(self) -> str:
        """Return the ends of the logs of the controller and of agents that it does not know."""
        try:
            known = {agent["host"] for agent in self._client().agents() if agent["connected"]}
        except ControllerError:
            known = set()
        text = ""
        for part in self._parts:
            if part.name == "controller" or part.name.removeprefix("agent ") not in known:
                text += f"\n{part.name}{log_tail(part.log)}"
                if text.count("\n") > MOST_LOG_LINES:
                    break
        return text
