"""What agents are told of paths, and what they tell each other of them, over their channels. In the channels' loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

from controller.agents.path_loads import PathLoads
from controller.agents.places import Places
from controller.agents.session import Session
from protocol.control import PathLoad, Paths, encode

SHARE_S: Final = 0.05
"""What agents say of paths within this time is shared at once."""


class PathTelling:
    """located: the agents that have a channel: host, underlay address, channel."""

    def __init__(self, located: Callable[[], Iterable[tuple[str, str, Session]]]) -> None:
        self.places: Final = Places()
        self._located = located
        self._loads = PathLoads()
        self._sharing: asyncio.TimerHandle | None = None

    def close(self) -> None:
        """Share nothing any more."""
        if self._sharing is not None:
            self._sharing.cancel()

    def set_leaf(self, underlay_ip: str, leaf: str) -> bool:
        """At which leaf a host is. Whether that is news."""
        changed = self.places.set_leaf(underlay_ip, leaf)
        if changed:
            for _, address, session in self._located():
                if address == underlay_ip:
                    self.tell(underlay_ip, session)
        return changed

    def set_paths(self, leaf: str, paths: Paths) -> None:
        """Which paths the agents at a leaf have."""
        if self.places.set_paths(leaf, paths):
            for _, address, session in self._located():
                if self.places.leaf_of(address) == leaf:
                    self.tell(address, session)

    def tell(self, underlay_ip: str, session: Session) -> None:
        """Tell one agent the paths of its leaf, if they are known."""
        frame = self.places.paths_frame(underlay_ip)
        if frame is not None:
            session.put_newest("paths", frame)

    def came(self, host: str) -> None:
        """An agent has a new channel: it is told everything again."""
        self._loads.forget(host)

    def gone(self, host: str) -> None:
        """An agent's channel has ended: what it had is no longer there for the others."""
        self._loads.forget(host)
        self._plan()

    def load(self, host: str, load: PathLoad) -> None:
        """What an agent has on its leaf's paths."""
        self._loads.put(host, load)
        self._plan()

    def clear_loads(self) -> None:
        """Another policy: nobody has anything until told so."""
        self._loads.clear()

    def _plan(self) -> None:
        if self._sharing is None:
            self._sharing = asyncio.get_running_loop().call_later(SHARE_S, self._share)

    def _share(self) -> None:
        self._sharing = None
        located = {host: (address, session) for host, address, session in self._located()}
        leaves = {host: self.places.leaf_of(address) for host, (address, _) in located.items()}
        for host, load in self._loads.news(leaves).items():
            located[host][1].put_newest("path-load", encode(load))
