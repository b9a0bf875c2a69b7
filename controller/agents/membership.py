"""Which agents belong to the fabric: pure, on plain data.

An agent whose channel broke stays a member for a while, because its data plane goes on without the channel; so
does, after a restart of the controller, every agent that was a member before. Otherwise the first agent that
finds a new controller would learn that it is alone, and all traffic would stop.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from capstan_client.errors import CapstanError
from plain.reading import PlainError, build
from protocol.control import Hello, Peer

GRACE_S: Final = 15.0
"""How long, in seconds, a member without a channel stays one."""
MOST_MEMBERS: Final = 8192
MOST_OVERLAY: Final = 64
"""Overlay addresses of one agent: each is in the directory that all agents get."""
VERSION_CHARS: Final = 100
HOST: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
"""A host's name."""
_MAC: Final = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")


class MembershipError(CapstanError, ValueError):
    """An agent that cannot be taken in; the text is for the agent's log."""


@dataclass(frozen=True, slots=True)
class Member:
    """One agent: where it is and the number of its start (``session``). Addresses in their canonical form."""

    host: str
    underlay_ip: str
    underlay_mac: str
    overlay: tuple[str, ...]
    session: int
    version: str

    @classmethod
    def from_hello(cls, hello: Hello) -> Member:
        """Return the member that a hello describes. Raise MembershipError for a name or address that cannot
        be.
        """
        if not HOST.fullmatch(hello.host):
            raise MembershipError(f"host name {hello.host!r} must be letters, digits, '.', '_' and '-'")
        mac = hello.underlay_mac.lower()
        if not _MAC.fullmatch(mac):
            raise MembershipError(f"underlay_mac {hello.underlay_mac!r} is not an Ethernet address")
        if not 0 <= hello.session < 1 << 32:
            raise MembershipError(f"session {hello.session} is not a 32-bit number")
        try:
            underlay = str(ipaddress.IPv4Address(hello.underlay_ip))
            overlay = tuple(
                str(ipaddress.ip_address(address)) for address in hello.overlay[: MOST_OVERLAY + 1]
            )
        except ValueError as error:
            raise MembershipError(str(error)) from None
        for address in overlay:
            if "%" in address:  # agents go by an address's bytes, so that it may be another host's
                raise MembershipError(f"overlay address {address!r} has a scope, which packets have not")
        if not 1 <= len(overlay) <= MOST_OVERLAY:
            raise MembershipError(
                f"an agent needs 1 to {MOST_OVERLAY} overlay addresses, not {len(hello.overlay)}"
            )
        if len(hello.version) > VERSION_CHARS:
            raise MembershipError(
                f"a version has {VERSION_CHARS} characters at most, not {len(hello.version)}"
            )
        if not hello.version.isprintable():  # a terminal that shows it would obey it
            raise MembershipError(f"version {hello.version!r} has characters that are no text")
        return cls(hello.host, underlay, mac, overlay, hello.session, hello.version)

    def peer(self) -> Peer:
        """Return what other agents learn of it."""
        return Peer(self.host, self.underlay_ip, list(self.overlay), self.session)

    @property
    def addresses(self) -> frozenset[str]:
        """Return its underlay address and its overlay addresses."""
        return frozenset((self.underlay_ip, *self.overlay))


def members_from_plain(data: object) -> tuple[Member, ...]:
    """Return the inverse of `members_to_plain`. Raises PlainError."""
    if not isinstance(data, list):
        raise PlainError("members", f"expected a list, got {data!r}")
    return tuple(build(Member, item, f"members[{index}]") for index, item in enumerate(data))


def members_to_plain(members: Iterable[Member]) -> list[dict[str, Any]]:
    """Return members as plain data, for the file that survives a restart."""
    return [asdict(member) for member in members]


class Membership:
    """Members by host name. ``remembered``: members of the controller before this one, without a channel yet."""

    def __init__(self, remembered: Sequence[Member], now: float, grace_s: float = GRACE_S) -> None:
        self._grace_s = grace_s
        self._members = {member.host: member for member in remembered}
        self._away = dict.fromkeys(self._members, now)
        self._owners: dict[str, str] | None = None
        """None: members have changed since."""

    def join(self, member: Member, now: float) -> tuple[Member, ...]:
        """Add *member*, in place of one of the same host; return the other members that this removed.

        Raises:
            MembershipError: an address of it belongs to another host that has a channel, or there are `MOST_MEMBERS`.
        """
        if member.host not in self._members and len(self._members) >= MOST_MEMBERS:
            raise MembershipError(f"{MOST_MEMBERS} hosts have agents already, which is the most there may be")
        displaced = [
            other
            for other in self._members.values()
            if other.host != member.host and other.addresses & member.addresses
        ]
        for other in displaced:
            if other.host not in self._away:
                shared = ", ".join(sorted(other.addresses & member.addresses))
                raise MembershipError(f"address {shared} belongs to host {other.host!r}, which is here")
        for other in displaced:
            self._remove(other.host)
        self._members[member.host] = member
        self._owners = None
        self._away.pop(member.host, None)
        return tuple(displaced)

    def disconnect(self, host: str, now: float) -> None:
        """Note that the channel of *host* broke."""
        if host in self._members:
            self._away.setdefault(host, now)

    def expire(self, now: float) -> tuple[Member, ...]:
        """Remove and return those that were without a channel for too long."""
        gone = [host for host, since in self._away.items() if now - since >= self._grace_s]
        return tuple(self._remove(host) for host in gone)

    def deadline(self) -> float | None:
        """Return when `expire` next removes a member, seconds; None: all members have a channel."""
        return min(self._away.values()) + self._grace_s if self._away else None

    def members(self) -> tuple[Member, ...]:
        """Return all members, by the names of their hosts."""
        return tuple(self._members[host] for host in sorted(self._members))

    def owners(self) -> Mapping[str, str]:
        """Return the host of each overlay address; the same mapping until members change."""
        if self._owners is None:
            self._owners = {
                address: member.host for member in self._members.values() for address in member.overlay
            }
        return self._owners

    def has_underlay(self, underlay_ip: str) -> bool:
        """Return whether an underlay address is a member's."""
        return any(member.underlay_ip == underlay_ip for member in self._members.values())

    def _remove(self, host: str) -> Member:
        self._away.pop(host, None)
        self._owners = None
        return self._members.pop(host)
