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
REPLY_SHARE_BYTES: Final = 4 << 20
_BODY_AT: Final = HEADER.size + MULTIPART.size


@dataclass(slots=True)
class ReplyRoom:
    """Of all connections: bytes of replies that are not whole, and how many there may be."""

    most: int = 256 << 20
    taken: int = 0

    def take(self, count: int, own: int) -> None:
        """Count bytes of a connection that has *own* then. Raises PeerError if it has to do without.

        Above half of the room a connection has `REPLY_SHARE_BYTES`: what little others need is there.
        """
        self.taken += count
        if self.taken > self.most or (self.taken > self.most // 2 and own > REPLY_SHARE_BYTES):
            raise PeerError(
                f"switches that connect have more than {self.most >> 20} MiB together to say: it may try again"
            )


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply: its OFPMP_ kind, and the bodies of all its parts; of one that was asked for in parts, one of them.

    last: nothing of it follows.
    """

    kind: int
    body: bytes
    last: bool = True


@dataclass(slots=True)
class _PendingRequest:
    kind: int
    in_parts: bool
    body: bytearray = field(default_factory=bytearray)


class Replies:
    """The requests of one connection that wait for their reply. counters: of what is not taken. room: of all."""

    def __init__(self, counters: Counter[str], room: ReplyRoom) -> None:
        self._counters = counters
        self._room = room
        self._pending: dict[int, _PendingRequest] = {}
        self._taken_bytes = 0
        """Of replies since none was waited for: of those that are whole, the session may wait for others, too."""

    def __bool__(self) -> bool:
        return bool(self._pending)

    def __len__(self) -> int:
        return len(self._pending)

    def ask(self, xid: int, kind: int, *, in_parts: bool = False) -> None:
        """Expect a reply of *kind* with this transaction id; in_parts: `take` returns each part."""
        self._pending[xid] = _PendingRequest(kind, in_parts)

    def is_pending(self, xid: int) -> bool:
        """Return whether a reply with this transaction id is expected."""
        return xid in self._pending

    def waits_for(self, kind: int) -> bool:
        """Return whether a reply of *kind* is expected."""
        return any(request.kind == kind for request in self._pending.values())

    def refused(self, xid: int) -> None:
        """Expect no reply any more: the switch has answered with an error."""
        self._forget(xid)

    def take(self, xid: int, message: bytes) -> Reply | None:
        """Return the reply that *message* (an OFPT_MULTIPART_REPLY) makes whole, or is a part of, if it is.

        What was not asked for is counted and forgotten. Raises PeerError for a reply of another kind than was asked
        for, and for one that is too long.
        """
        need("multipart reply", message, _BODY_AT)
        kind, flags = MULTIPART.unpack_from(message, HEADER.size)
        request = self._pending.get(xid)
        if request is None:
            self._counters["unasked-replies"] += 1
            return None
        if kind != request.kind:
            raise PeerError(f"multipart reply of kind {kind} to a request of kind {request.kind}")
        self._taken_bytes += len(message) - _BODY_AT
        self._room.take(len(message) - _BODY_AT, self._taken_bytes)
        if self._taken_bytes > REPLY_LIMIT_BYTES:
            raise PeerError(f"multipart replies are longer than {REPLY_LIMIT_BYTES >> 20} MiB together")
        more = bool(flags & ofp.OFPMPF_REPLY_MORE)
        if request.in_parts and more:
            return Reply(kind, message[_BODY_AT:], last=False)
        request.body += message[_BODY_AT:]
        if more:
            return None
        self._forget(xid)
        return Reply(kind, bytes(request.body))

    def _forget(self, xid: int) -> None:
        self._pending.pop(xid, None)
        if not self._pending:
            self.close()

    def close(self) -> None:
        """Give back the room: nothing waits any more."""
        self._room.taken -= self._taken_bytes
        self._taken_bytes = 0
