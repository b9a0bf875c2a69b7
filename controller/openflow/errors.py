"""What a switch refuses, typed: which switch, what we had sent, and the switch's own words for why not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from capstan_client.errors import CapstanError
from controller.openflow.osken import ofp
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


def error_names(type_: int, code: int) -> tuple[str, str]:
    """Return OpenFlow's names of an error's type and code; numbers where it has none."""
    type_name = _TYPES.get(type_, f"type {type_}")
    prefix = _CODE_PREFIXES.get(type_name)
    if prefix is not None:
        for name in dir(ofp):
            if name.startswith(prefix) and getattr(ofp, name) == code:
                return type_name, name
    return type_name, f"code {code}"


_TYPES: Final[dict[int, str]] = {getattr(ofp, name): name for name in dir(ofp) if name.startswith("OFPET_")}
_CODE_PREFIXES: Final = {
    "OFPET_HELLO_FAILED": "OFPHFC_",
    "OFPET_BAD_REQUEST": "OFPBRC_",
    "OFPET_BAD_ACTION": "OFPBAC_",
    "OFPET_BAD_INSTRUCTION": "OFPBIC_",
    "OFPET_BAD_MATCH": "OFPBMC_",
    "OFPET_FLOW_MOD_FAILED": "OFPFMFC_",
    "OFPET_GROUP_MOD_FAILED": "OFPGMFC_",
    "OFPET_PORT_MOD_FAILED": "OFPPMFC_",
    "OFPET_TABLE_MOD_FAILED": "OFPTMFC_",
    "OFPET_QUEUE_OP_FAILED": "OFPQOFC_",
    "OFPET_SWITCH_CONFIG_FAILED": "OFPSCFC_",
    "OFPET_ROLE_REQUEST_FAILED": "OFPRRFC_",
    "OFPET_METER_MOD_FAILED": "OFPMMFC_",
    "OFPET_TABLE_FEATURES_FAILED": "OFPTFFC_",
    "OFPET_BAD_PROPERTY": "OFPBPC_",
    "OFPET_ASYNC_CONFIG_FAILED": "OFPACFC_",
    "OFPET_FLOW_MONITOR_FAILED": "OFPMOFC_",
    "OFPET_BUNDLE_FAILED": "OFPBFC_",
}
