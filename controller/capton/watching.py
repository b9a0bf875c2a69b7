"""Keeps the admission service up to date with the fabric: a thread that looks whenever something may have changed."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Final

from controller.agents.listeners import ChannelError
from controller.agents.server import AgentServer
from controller.capton.fail_safe import FailSafes
from controller.capton.service import AdmissionService
from controller.capton.topology_view import SnapshotReader
from controller.plane.snapshot import FabricSnapshot
from controller.process.control_thread import ControlThread

LOG: Final = logging.getLogger("capstan.capton")
LOOK_S: Final = 1.0
"""Rates of ports change without an event."""


class FabricWatch:
    """Between `start` and `stop`. snapshot, rates: the fabric, and bit/s of ports, as they are when asked.

    on_event: gets an event when agents report flows that went unscheduled.
    """

    def __init__(
        self,
        admission: AdmissionService,
        agents: AgentServer,
        on_event: Callable[[object], None],
        snapshot: Callable[[], FabricSnapshot],
        *,
        rates: Callable[[], Mapping[tuple[int, int], int]],
    ) -> None:
        self._admission = admission
        self._agents = agents
        self._on_event = on_event
        self._fail_safes = FailSafes()
        self._snapshot = snapshot
        self._rates = rates
        self._woken = threading.Event()
        self._ending = False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to watch, in a thread of its own."""
        self._thread = ControlThread(self._run, "capstan-capton")
        self._thread.start()

    def stop(self) -> None:
        """Stop looking. Harmless when not started."""
        self._ending = True
        self._woken.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def wake(self) -> None:
        """Look at the fabric now: it may have changed. Returns at once."""
        self._woken.set()

    def look(self) -> None:
        """Read the fabric, and hand it to the admission service."""
        rule = self._admission.rule
        reader = SnapshotReader(self._snapshot(), self._rates())
        paths = reader.single_paths() if rule is not None and rule.paths == "one" else {}
        self._admission.set_topology(reader.topology(), paths)

    def _run(self) -> None:
        while not self._ending:
            self._woken.wait(LOOK_S if self._admission.rule is not None else None)
            self._woken.clear()
            if self._ending or self._admission.rule is None:
                continue
            try:
                self.look()
                reports = {agent.host: (agent.session, agent.counters) for agent in self._agents.agents()}
                for event in self._fail_safes.changes(reports, time.monotonic()):
                    self._on_event(event)
            except (TimeoutError, ChannelError) as error:
                LOG.warning("the fabric could not be looked at: %s", error)
