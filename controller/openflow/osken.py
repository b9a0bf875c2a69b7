"""os-ken's messages of OpenFlow 1.5, without the rest of os-ken.

Importing them as they are loads the messages of all versions, parsers of packets up to BGP, and a library for options:
two thirds of what os-ken takes, a sixth of the processor time in which a controller starts. None of it makes a message
that we send, and os-ken parses nothing here (`controller.openflow.lengths` says why).
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import os_ken

_PACKAGES: Final = {"os_ken.ofproto": "ofproto", "os_ken.lib.packet": "lib/packet"}
"""Packages whose `__init__` loads what is not needed; their modules can be had without it."""
_PACKETS: Final = "os_ken.lib.packet.packet"


class _Packet:
    """What os-ken's packets are instances of, as far as messages ask: none that we hand over is one."""


@contextmanager
def _stand_ins() -> Iterator[None]:
    """Make those packages empty ones within the block; harmless where os-ken was imported as a whole before."""
    if any(name in sys.modules for name in (*_PACKAGES, _PACKETS)):
        yield
        return
    home = Path(os_ken.__path__[0])
    try:
        for name, place in _PACKAGES.items():
            package = ModuleType(name)
            package.__path__ = [str(home / place)]
            sys.modules[name] = package
        packets: Any = ModuleType(_PACKETS)
        packets.Packet = _Packet
        sys.modules[_PACKETS] = packets
        yield
    finally:
        for name in (*_PACKAGES, _PACKETS):
            sys.modules.pop(name, None)


with _stand_ins():
    ofp: Final[Any] = importlib.import_module("os_ken.ofproto.ofproto_v1_5")
    parser: Final[Any] = importlib.import_module("os_ken.ofproto.ofproto_v1_5_parser")


@dataclass(frozen=True, slots=True)
class Protocol:
    """What a message asks for its version, in place of a connection."""

    ofproto: Any = ofp
    ofproto_parser: Any = parser
