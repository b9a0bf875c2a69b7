"""Samples of the flows that are active: agents report them while a client watches."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final

from controller.agents.listeners import ChannelError
from controller.agents.server import AgentServer
from controller.live.flows import LiveFlows
from controller.live.sampling import Sample, Sampler
from protocol.control import ActiveFlows
from protocol.limits import ACTIVE_MOST

EVERY_S: Final = 0.5
WAITING: Final = 4
"""Reports of a host: as many as come in the time of four samples."""
NAMES_EVERY_S: Final = 2.0
MOST_LOOKED_AT: Final = 5000
"""Flows for one page of the list: a host that is not there would have all 110 000 looked at, for 0.3 s each time."""


class Answers:
    """Agents' reports that were not looked at yet: the `WAITING` newest of each host, from any thread."""

    def __init__(self) -> None:
        self._newest: dict[str, deque[tuple[str, ActiveFlows, float]]] = {}
        self._lock = threading.Lock()

    def put(self, host: str, flows: ActiveFlows, time_s: float) -> None:
        """Keep a report, where there is no room in place of the host's oldest. time_s: Unix seconds."""
        with self._lock:
            self._newest.setdefault(host, deque(maxlen=WAITING)).append((host, flows, time_s))

    def take(self) -> list[tuple[str, ActiveFlows, float]]:
        """Return what is there, and keep nothing."""
        with self._lock:
            newest, self._newest = self._newest, {}
        return [answer for answers in newest.values() for answer in answers]


class FlowSampler(Sampler):
    """Has agents report their active flows while a client watches, and publishes what they say together."""

    def __init__(
        self, agents: AgentServer, watched: Callable[[], bool], publish: Callable[[Sample], None]
    ) -> None:
        super().__init__("flows", EVERY_S, watched, publish)
        self._agents = agents
        self._answers = Answers()
        self._flows = LiveFlows()
        self._lock = threading.Lock()
        self._reported = False
        self._names: Mapping[str, str] = {}
        self._names_at = float("-inf")
        agents.active_flows.subscribe(lambda host, flows: self._answers.put(host, flows, time.time()))

    def flow(self, number: int) -> tuple[dict[str, Any], list[dict[str, Any]]] | None:
        """Return a flow and its timeline, empty for one of long ago; None if there is none of this number (any
        more)."""
        with self._lock:
            flow = self._flows.get(number)
            if flow is not None:
                return flow.view(), list(flow.steps)
            past = self._flows.past(number)
            return None if past is None else (past, [])

    def listing(
        self,
        before: int | None,
        limit: int,
        *,
        state: str | None,
        traffic_class: str | None,
        host: str | None,
    ) -> tuple[list[dict[str, Any]], int | None]:
        """Return flows with a number below *before*, the newest first, and where to go on (None: at the end).

        Of many that the filter leaves out `MOST_LOOKED_AT` are looked at, so that there may be fewer than *limit*.
        """
        rows: list[dict[str, Any]] = []
        last = None
        with self._lock:  # agents' reports wait for it
            for looked, (number, flow) in enumerate(
                self._flows.looked_at(before, state, traffic_class, host)
            ):
                if len(rows) == limit or looked == MOST_LOOKED_AT:
                    return rows, last
                last = number
                if flow is not None:
                    rows.append(flow)
        return rows, None

    def _begin(self) -> None:
        self._reported = False
        self._agents.watch_flows(EVERY_S, ACTIVE_MOST)

    def _end(self) -> None:
        self._agents.watch_flows(0.0, 0)

    def _take(self) -> Sample | None:
        if time.monotonic() - self._names_at > NAMES_EVERY_S:
            self._names_at = time.monotonic()
            self._names = {
                address: agent.host for agent in self._agents.agents() for address in agent.overlay
            }
        with self._lock:
            for answer in self._answers.take():
                self._reported = True
                self._flows.take(*answer, self._names)
            return self._flows.step(time.time()) if self._reported else None

    def stop(self) -> None:
        """End, and have agents report no more."""
        super().stop()
        try:
            self._agents.watch_flows(0.0, 0)
        except ChannelError:
            return
