"""What a switch refuses, typed: which switch, what we had sent, and the switch's own words for why not."""

from __future__ import annotations

from dataclasses import dataclass

from capstan_client.errors import CapstanError
from controller.openflow.wanted import FlowRule, Group, Match, Meter


@dataclass(frozen=True, slots=True)
class SwitchError:
    """An OFPT_ERROR that switch *dpid* sent at *at* (seconds, the shell's clock) about *what* we had sent.

    ``type`` and ``code`` are OpenFlow's names, such as OFPET_BAD_MATCH and OFPBMC_BAD_PREREQ.
    """

    dpid: int
    what: str
    type: str
    code: str
    at: float

    def __str__(self) -> str:
        return f"switch {self.dpid:#x} refused {self.what}: {self.type} {self.code}"


class OpenFlowError(CapstanError, RuntimeError):
    """An update that was waited for is not on its switches. ``errors`` say what they refused, if they did."""

    def __init__(self, text: str, errors: tuple[SwitchError, ...] = ()) -> None:
        super().__init__(text)
        self.errors = errors


class PeerError(CapstanError, RuntimeError):
    """The other end of a connection does not behave as an OpenFlow 1.5 switch: close it."""


def describe(thing: object) -> str:
    """Return what of the wanted state a message was about, short enough for a log line."""
    match thing:
        case FlowRule():
            fields = ((name, getattr(thing.match, name)) for name in Match.__slots__)
            match = ",".join(f"{name}={value}" for name, value in fields if value is not None) or "any"
            return f"{match} in table {thing.table} at priority {thing.priority}, actions {thing.actions}"
        case Group():
            return f"{thing.id} ({thing.method}, {len(thing.buckets)} buckets)"
        case Meter():
            return str(thing.id)
        case _:
            return str(thing)
