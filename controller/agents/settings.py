"""Where agents connect, and what they have to know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from controller.agents.datagram_keys import PairKeys
from controller.agents.listeners import TcpListener
from controller.agents.membership import GRACE_S
from controller.agents.session import Timing


@dataclass(frozen=True)
class ChannelSettings:
    """``members_file`` keeps who was a member over restarts. ``host_tokens``: each host's own, not one for all."""

    socket_path: Path | None
    members_file: Path
    tcp: TcpListener | None = None
    grace_s: float = GRACE_S
    timing: Timing = field(default_factory=Timing)
    host_tokens: Mapping[str, str] | None = None
    datagram_keys: PairKeys | None = None
    """By which agents authenticate datagrams; None: they do not."""
