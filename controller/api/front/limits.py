"""What the HTTP process allows its clients, in figures; and all that the controller says to it when it starts it."""

from __future__ import annotations

import dataclasses
import json
import re
from dataclasses import dataclass, field
from typing import Final

from plain.reading import build

MIB = 1 << 20
BACKLOG: Final = 1024
"""Connections that wait to be accepted, as when a class opens the page at once, or while the process begins."""


@dataclass(frozen=True, slots=True)
class Limits:
    """One client must cost neither the others nor the controller more than this, whatever it sends or leaves unread."""

    connections: int = 1000
    """At a time. Beyond, the connection that has waited longest for a request makes room."""
    connections_per_address: int = 400
    """Of one IPv4 address or IPv6 /64 network; loopback may have all, since a proxy's clients all come from there."""
    head_s: float = 20.0
    """A request's head is whole so soon after its first byte; a new connection's, after it was accepted."""
    idle_s: float = 120.0
    """A connection without a request is kept for so long."""
    linger_s: float = 10.0
    """A refused client is read for so long, so that the refusal is not lost, and is then cut off."""
    window_s: float = 30.0
    """Over each such time, bodies and answers move at least `least_bytes_per_s`, or their connection ends."""
    least_bytes_per_s: float = 8192.0
    body_bytes: int = MIB
    """Of a request, unless its route says that it needs more (`LongBody`)."""
    all_body_bytes: int = 192 * MIB
    """Of all requests together that are not answered yet."""
    unsent_bytes: int = MIB // 4
    """Of answers that a client has not taken; above it, its next request waits, and so does the rest of its answer."""
    all_unsent_bytes: int = 256 * MIB
    """Of all clients together; beyond, the client that has taken nothing for longest is cut off."""
    large_answers: int = 16
    """Answers above `large_answer_bytes` that are on their way at a time."""
    large_answer_bytes: int = 4 * MIB
    """An answer up to this size is kept whole until its reader has it, and keeps no thread of the controller's."""
    look_every_s: float = 1.0
    """How often connections are held against these times."""


@dataclass(frozen=True, slots=True)
class LongBody:
    """A route whose requests may be longer. path: a regular expression for the whole path."""

    method: str
    path: str
    most_bytes: int


@dataclass(frozen=True, slots=True)
class Tokens:
    """Those of the API; ``operate`` None: none is needed, and requests must name the controller by its address."""

    operate: str | None = None
    read: str | None = None


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """PEM files: a certificate with those between it and its authority, and its key."""

    certificate: str
    key: str


@dataclass(frozen=True, slots=True)
class FrontSettings:
    """Of one HTTP process. workers: requests at a time. tokens: None to leave access to the application alone."""

    workers: int
    patience_s: float = 2.0
    """How long requests that are being answered may take once the process is to end."""
    limits: Limits = field(default_factory=Limits)
    long_bodies: tuple[LongBody, ...] = ()
    tokens: Tokens | None = None
    tls: TlsFiles | None = None
    """None: HTTP in clear."""

    def most_body_bytes(self, method: str, path: str) -> int:
        """Return how many bytes a request's body may have."""
        for route in self.long_bodies:
            if route.method == method and re.fullmatch(route.path, path):
                return route.most_bytes
        return self.limits.body_bytes

    def to_json(self) -> bytes:
        """Return the settings as the HTTP process reads them."""
        return json.dumps(dataclasses.asdict(self)).encode()

    @classmethod
    def from_json(cls, text: bytes) -> FrontSettings:
        """Return the limits in what `to_json` gave. Raise ValueError for anything else."""
        return build(cls, json.loads(text), "settings")
