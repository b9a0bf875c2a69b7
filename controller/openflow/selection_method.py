"""The group property that sets how a select group of Open vSwitch selects.

OpenFlow leaves the choice among a select group's buckets to the switch. Netronome's extension (experimenter
0x0000154d, type 1; Open vSwitch's `Documentation/topics/ovs-extensions`, `struct
ntr_group_prop_selection_method`) names the method, and needs OpenFlow 1.5: below, it is dropped silently.

os-ken's own ``OFPGroupPropExperimenter`` counts the padding into ``length`` and so cannot carry fields
(the switch answers OFPBMC_BAD_LEN); hence a class of our own, which is all that its ``OFPGroupMod`` needs.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final, Literal

EXPERIMENTER: Final = 0x0000154D
_SELECTION_METHOD: Final = 1
_OFPGPT_EXPERIMENTER: Final = 0xFFFF
_HEAD: Final = struct.Struct("!HHII4x16sQ")

HashField = Literal["ipv4_src", "ipv4_dst", "udp_dst"]
_OXM: Final[dict[HashField, tuple[int, int]]] = {"ipv4_src": (11, 4), "ipv4_dst": (12, 4), "udp_dst": (16, 2)}
"""OXM field number (class OPENFLOW_BASIC) and size in bytes."""
_OPENFLOW_BASIC: Final = 0x8000


@dataclass(frozen=True, slots=True)
class SelectionMethod:
    """``method`` over ``fields`` (whole fields; none for dp_hash), started from ``basis`` (64 bits)."""

    method: Literal["dp_hash", "hash"]
    basis: int
    fields: tuple[HashField, ...] = ()

    def serialize(self) -> bytes:
        """Return the property as on the wire: ``length`` is that without the padding to 8 bytes."""
        fields = b"".join(_whole_field(name) for name in self.fields)
        length = _HEAD.size + len(fields)
        head = _HEAD.pack(
            _OFPGPT_EXPERIMENTER,
            length,
            EXPERIMENTER,
            _SELECTION_METHOD,
            self.method.encode(),
            self.basis,
        )
        return head + fields + bytes(-length % 8)


def _whole_field(name: HashField) -> bytes:
    number, size = _OXM[name]
    return struct.pack("!HBB", _OPENFLOW_BASIC, number << 1, size) + b"\xff" * size
