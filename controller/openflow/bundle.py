"""Atomic bundles (OpenFlow 1.5, section 6.9): all of a change or nothing of it, in the order given.

Open vSwitch takes flow and group messages into bundles, but no meters: a message that it refuses to *add* does
not fail the bundle, whose commit then succeeds without it. So a commit must look at every error, and
meters travel outside.
"""

from __future__ import annotations

import struct
from typing import Final

from controller.openflow.codec import VERSION, with_xid
from controller.openflow.osken import ofp

_FLAGS: Final = ofp.OFPBF_ATOMIC | ofp.OFPBF_ORDERED
_CONTROL: Final = struct.Struct("!BBHIIHH")
_ADD: Final = struct.Struct("!BBHII2xH")


def open_bundle(bundle: int) -> bytes:
    """Return what begins a bundle, to be followed by its parts."""
    return _control(bundle, ofp.OFPBCT_OPEN_REQUEST)


def commit_bundle(bundle: int) -> bytes:
    """Return the message that commits a bundle, which need not be closed before: all of it takes effect at once."""
    return _control(bundle, ofp.OFPBCT_COMMIT_REQUEST)


def add_to_bundle(bundle: int, message: bytes) -> bytes:
    """Return *message* (transaction id 0) as a part of *bundle*; see `with_part_xid`."""
    return (
        _ADD.pack(VERSION, ofp.OFPT_BUNDLE_ADD_MESSAGE, _ADD.size + len(message), 0, bundle, _FLAGS) + message
    )


def with_part_xid(part: bytes, xid: int) -> bytes:
    """Return a part of a bundle with its transaction id, which its inner message must share."""
    return with_xid(part[: _ADD.size], xid) + with_xid(part[_ADD.size :], xid)


def _control(bundle: int, kind: int) -> bytes:
    return _CONTROL.pack(VERSION, ofp.OFPT_BUNDLE_CONTROL, _CONTROL.size, 0, bundle, kind, _FLAGS)
