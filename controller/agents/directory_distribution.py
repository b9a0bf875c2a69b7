"""Distributes the directory of members, and the keys of their datagrams. Runs in the channels' loop."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from controller.agents.datagram_keys import PairKeys
from controller.agents.members_file import write_members
from controller.agents.membership import Member
from controller.agents.session import AgentSession
from protocol.control import Directory
from protocol.frames import encode

LOG: Final = logging.getLogger("capstan.agents")
SETTLE_S: Final = 0.03
"""Agents that join within this time cause one new directory, not one each."""
AGAIN_S: Final = 5.0
"""After an error of ours."""


class DirectoryDistribution:
    """Sends what changes to all agents that have a channel, and keeps the members over restarts.

    Args:
        members: gives the members of now.
        sessions: the channels of now, by host.
        leaf_of: gives the leaf of an underlay address, "" while it is not known.
        keys: by which agents authenticate datagrams; None: they do not.
        members_file: where the members are kept.
    """

    def __init__(
        self,
        members: Callable[[], Sequence[Member]],
        sessions: Mapping[str, AgentSession],
        leaf_of: Callable[[str], str],
        keys: PairKeys | None,
        *,
        members_file: Path,
    ) -> None:
        self._members = members
        self._sessions = sessions
        self._leaf_of = leaf_of
        self._keys = keys
        self._members_file = members_file
        self._spreading: asyncio.TimerHandle | None = None
        self._members_changed = False
        self._renewal: asyncio.TimerHandle | None = None

    def open(self) -> None:
        """Send the keys of this period, and again when the next one begins."""
        if self._keys is not None:
            later = self._keys.ends_in(time.monotonic())
            # planned first: an error below costs one turn, not all later ones
            self._renewal = asyncio.get_running_loop().call_later(later, self.open)
            self._send_keys()

    def close(self) -> None:
        """Send what has changed, and nothing any more."""
        if self._spreading is not None:
            self._spreading.cancel()
            self._spread()  # who joined a moment ago is a member for the next controller, too
        if self._renewal is not None:
            self._renewal.cancel()

    def send(self, underlay_ip: str, session: AgentSession) -> None:
        """Send the agent at that address its keys and the directory."""
        self._put_keys(underlay_ip, session, self._all_sessions())
        session.put_newest("directory", self._frame())

    def changed(self) -> None:
        """Note that the members have changed: all agents get keys and the directory soon."""
        self._members_changed = True
        self.moved()

    def moved(self) -> None:
        """Note that a member is at another leaf: all agents get the directory soon."""
        if self._spreading is None:
            self._spreading = asyncio.get_running_loop().call_later(SETTLE_S, self._spread)

    def _spread(self) -> None:
        self._spreading = None
        try:
            self._spread_now()
        except Exception:
            LOG.exception("the directory has not gone to all agents; it goes again in %g s", AGAIN_S)
            self._spreading = asyncio.get_running_loop().call_later(AGAIN_S, self._spread)

    def _spread_now(self) -> None:
        frame = self._frame()
        if self._members_changed:
            self._send_keys()  # an agent needs them before the directory that names who else has them
        for session in self._sessions.values():
            session.put_newest("directory", frame)
        if self._members_changed:
            self._members_changed = False
            write_members(self._members_file, self._members())

    def _frame(self) -> bytes:
        peers = [member.peer() for member in self._members()]
        located = [replace(peer, leaf=self._leaf_of(peer.underlay_ip)) for peer in peers]
        return encode(Directory(located, self._keys is not None))

    def _send_keys(self) -> None:
        sessions = self._all_sessions()
        for member in self._members():
            session = self._sessions.get(member.host)
            if session is not None:
                self._put_keys(member.underlay_ip, session, sessions)

    def _put_keys(self, underlay_ip: str, session: AgentSession, sessions: Mapping[str, int]) -> None:
        if self._keys is not None:
            keys = self._keys.of_host(underlay_ip, sessions, time.monotonic(), sessions)
            session.put_newest("datagram-keys", encode(keys))

    def _all_sessions(self) -> dict[str, int]:
        """Return the session of each member's agent, by its underlay address."""
        return {member.underlay_ip: member.session for member in self._members()}
