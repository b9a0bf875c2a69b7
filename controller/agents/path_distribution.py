"""Distributes live paths to agents, and their reports of paths to their neighbours. Runs in the channels' loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Final

from controller.agents.path_loads import PathLoads
from controller.agents.places import Places
from controller.agents.session import AgentSession
from protocol.control import PathLoad, Paths
from protocol.frames import encode

SHARE_S: Final = 0.05
"""Reports of paths within this time are shared at once."""
REST: Final = 4.0
"""Sharing takes at most one part in so many and one of the loop's time, however many paths agents name."""


class PathDistribution:
    """located: the agents that have a channel: host, underlay address, channel."""

    def __init__(self, located: Callable[[], Iterable[tuple[str, str, AgentSession]]]) -> None:
        self.places: Final = Places()
        self._located = located
        self._loads = PathLoads()
        self._sharing: asyncio.TimerHandle | None = None
        self._took_s = 0.0

    def close(self) -> None:
        """Share nothing any more."""
        if self._sharing is not None:
            self._sharing.cancel()

    def set_leaf(self, underlay_ip: str, leaf: str) -> bool:
        """Set the leaf of a host, and send it that leaf's paths. Return True if the leaf changed."""
        changed = self.places.set_leaf(underlay_ip, leaf)
        if changed:
            for _, address, session in self._located():
                if address == underlay_ip:
                    self.send_paths(underlay_ip, session)
        return changed

    def set_paths(self, leaf: str, paths: Paths) -> None:
        """Set the paths of a leaf, and send them to its agents if they have changed."""
        if self.places.set_paths(leaf, paths):
            for _, address, session in self._located():
                if self.places.leaf_of(address) == leaf:
                    self.send_paths(address, session)

    def send_paths(self, underlay_ip: str, session: AgentSession) -> None:
        """Send an agent the paths of its leaf, if they are known."""
        frame = self.places.paths_frame(underlay_ip)
        if frame is not None:
            session.put_newest("paths", frame)

    def came(self, host: str) -> None:
        """Note that an agent has a new channel: it receives everything again."""
        self._loads.forget(host)

    def gone(self, host: str) -> None:
        """Drop the load of an agent whose channel has ended."""
        self._loads.forget(host)
        self._plan()

    def load(self, host: str, load: PathLoad) -> None:
        """Store the load that an agent reports on its leaf's paths."""
        self._loads.put(host, load)
        self._plan()

    def clear_loads(self) -> None:
        """Forget all reports: under another policy every host reports anew."""
        self._loads.clear()

    def _plan(self) -> None:
        if self._sharing is None:
            wait_s = max(SHARE_S, REST * self._took_s)
            self._sharing = asyncio.get_running_loop().call_later(wait_s, self._share)

    def _share(self) -> None:
        self._sharing = None
        began = time.monotonic()
        try:
            located = {host: (address, session) for host, address, session in self._located()}
            leaves = {host: self.places.leaf_of(address) for host, (address, _) in located.items()}
            for host, load in self._loads.changes(leaves):
                located[host][1].put_newest("path-load", encode(load))
        finally:
            self._took_s = time.monotonic() - began
