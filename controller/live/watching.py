"""What watches the running fabric: the stream, and the samplers that feed it while a client reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from controller.agents.server import AgentServer
from controller.live.event_log import EventLog
from controller.live.flow_sampling import FlowSampler
from controller.live.link_sampling import EVERY_S, LinkSampler, Queues, Switches
from controller.live.stream import EventStream
from controller.plane.naming import FabricNames
from controller.plane.snapshot import FabricSnapshot
from protocol.version import VERSION


class LiveView:
    """All of it, from `start` to `stop`. *rates*: kbit/s by link, where ports do not know."""

    def __init__(
        self,
        log: EventLog,
        switches: Switches,
        agents: AgentServer,
        snapshot: Callable[[], FabricSnapshot],
        *,
        rates: Callable[[FabricNames], Mapping[str, float]],
        queues: Queues,
        links_every_s: float = EVERY_S,
    ) -> None:
        self._snapshot = snapshot
        self.stream = EventStream(log, self.names, VERSION, self._wake)
        log.added.subscribe(self.stream.note)
        self.links = LinkSampler(
            switches,
            self.names,
            rates,
            queues,
            watched=lambda: self.stream.watched("links"),
            publish=lambda sample: self.stream.sample("links", sample),
            every_s=links_every_s,
        )
        self.flows = FlowSampler(
            agents,
            lambda: self.stream.watched("flows"),
            lambda sample: self.stream.sample("flows", sample),
        )

    def names(self) -> FabricNames:
        """Return the names of the fabric as it is now."""
        return FabricNames(self._snapshot())

    def _wake(self) -> None:
        self.links.wake()
        self.flows.wake()

    def start(self) -> None:
        """Start the stream and its samplers."""
        self.stream.start()
        self.links.start()
        self.flows.start()

    def stop_sampling(self) -> None:
        """Ask switches and agents for nothing more; events still go out. Harmless if it does not run."""
        self.stream.keep_names()
        self.flows.stop()
        self.links.stop()

    def stop(self) -> None:
        """End the stream, after `stop_sampling` and after all that adds events. Harmless if it does not run."""
        self.stream.stop()
