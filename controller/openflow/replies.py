"""Multipart replies that were asked for, put together part by part, and nothing that was not."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from controller.openflow.errors import PeerError
from controller.openflow.lengths import need
from controller.openflow.osken import ofp
from controller.openflow.reading import HEADER, MULTIPART

REPLY_LIMIT_BYTES: Final = 32 << 20
"""All replies together that one connection waits for; what is longer ends it. Ten
times a leaf's flow descriptions in a fabric of 30 000 hosts."""
_BODY_AT: Final = HEADER.size + MULTIPART.size


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole reply: its OFPMP_ kind, and the bodies of all its parts."""

    kind: int
    body: bytes


@dataclass(slots=True)
class _Asked:
    kind: int
    body: bytearray = field(default_factory=bytearray)


class Replies:
    """The requests of one connection that wait for their reply. counters: of what is not taken."""

    def __init__(self, counters: Counter[str]) -> None:
        self._counters = counters
        self._asked: dict[int, _Asked] = {}
        self._taken_bytes = 0
        """Of replies since none was waited for: of those that are whole, the session may wait for others, too."""

    def __bool__(self) -> bool:
        return bool(self._asked)

    def ask(self, xid: int, kind: int) -> None:
        """Expect a reply of *kind* with this transaction id."""
        self._asked[xid] = _Asked(kind)

    def is_asked(self, xid: int) -> bool:
        """Return whether a reply with this transaction id is expected."""
        return xid in self._asked

    def waits_for(self, kind: int) -> bool:
        """Return whether a reply of *kind* is expected."""
        return any(asked.kind == kind for asked in self._asked.values())

    def refused(self, xid: int) -> None:
        """Expect no reply any more: the switch has answered with an error."""
        self._forget(xid)

    def take(self, xid: int, message: bytes) -> Reply | None:
        """Return the reply that *message* (an OFPT_MULTIPART_REPLY) makes whole, if it does.

        What was not asked for is counted and forgotten. Raises PeerError for a reply of another kind than was asked
        for, and for one that is too long.
        """
        need("multipart reply", message, _BODY_AT)
        kind, flags = MULTIPART.unpack_from(message, HEADER.size)
        asked = self._asked.get(xid)
        if asked is None:
            self._counters["unasked-replies"] += 1
            return None
        if kind != asked.kind:
            raise PeerError(f"multipart reply of kind {kind} to a request of kind {asked.kind}")
        self._taken_bytes += len(message) - _BODY_AT
        if self._taken_bytes > REPLY_LIMIT_BYTES:
            raise PeerError(f"multipart replies are longer than {REPLY_LIMIT_BYTES >> 20} MiB together")
        asked.body += message[_BODY_AT:]
        if flags & ofp.OFPMPF_REPLY_MORE:
            return None
        self._forget(xid)
        return Reply(kind, bytes(asked.body))

    def _forget(self, xid: int) -> None:
        self._asked.pop(xid, None)
        if not self._asked:
            self._taken_bytes = 0
