"""What agents and switches agree on in the outer headers of a tunnelled packet.

==================  =========================================  ==============================================
outer field         meaning                                    read by
==================  =========================================  ==============================================
UDP source port     entropy value (EV) of this packet          switches: `dp_hash` spray groups
UDP source port     path label: ``LABEL_FIRST`` + path stamp   switches, for classes with ``group: label``
UDP source port     path stamp, written by the topmost switch  the receiving agent
UDP destination     ``BASE_PORT`` + flow key                   switches: ECMP groups; leaf puts BASE_PORT back
DSCP                ``class << 3 | priority``                  classification, queues (`queue_of_dscp`)
==================  =========================================  ==============================================

EVs, path labels and path stamps come from disjoint ranges of port numbers, so a receiver knows whether a packet crossed
the top tier (it carries a stamp) or stayed below one leaf (it still carries its EV or label). A label names the path by
the switch that turns it downwards, as DRB's bounce switch does; one whose path is dead is sprayed.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

BASE_PORT: Final = 47000
"""UDP destination port of every datagram as the receiving agent sees it."""
FLOW_KEYS: Final = 64
"""Number of UDP destination ports, from BASE_PORT on, over which flows are hashed for ECMP."""

EV_FIRST: Final = 16384
EV_LAST: Final = 65535
"""Entropy values are drawn from EV_FIRST..EV_LAST, both included."""
STAMP_FIRST: Final = 1
STAMP_LAST: Final = 4095
"""Path stamps are STAMP_FIRST..STAMP_LAST, both included."""

LABEL_FIRST: Final = 8192
LABEL_LAST: Final = LABEL_FIRST + STAMP_LAST
"""The path with stamp s is named by source port LABEL_FIRST + s."""

PRIORITIES: Final = 8
"""Priority levels per traffic class; 0 is the highest."""


class TrafficClass(IntEnum):
    """Class of an inner packet, as its outer DSCP shows switches."""

    NONE = 0  # traffic of hosts without an agent
    SHORT = 1  # payload of a flow that has sent less than the policy's limit
    LONG = 2
    CONTROL = 3  # SYN, FIN, RST, pure ACK, and agents' own feedback: never coded, never counted as short


def dscp(traffic_class: TrafficClass, priority: int = 0) -> int:
    """Return the 6-bit DSCP that carries *traffic_class* and *priority* (0 highest .. 7)."""
    if not 0 <= priority < PRIORITIES:
        raise ValueError(f"priority must be 0..{PRIORITIES - 1}, not {priority}")
    return traffic_class * PRIORITIES + priority


def class_of_dscp(value: int) -> TrafficClass:
    """Return the traffic class carried by a 6-bit DSCP; anything that agents do not send is NONE."""
    index = value // PRIORITIES
    return TrafficClass(index) if 0 <= index <= TrafficClass.CONTROL else TrafficClass.NONE


def queue_of(priority: int, queues: int) -> int:
    """Return the queue (0 is served first) of *priority* at a port with *queues* of them; the last takes the rest."""
    return min(priority, queues - 1)


def queue_of_dscp(value: int, queues: int) -> int:
    """Return the queue of an IPv4 packet with this 6-bit DSCP at a port with *queues* of them.

    What agents did not send has the last one: a host without an agent must not outrun short flows. (Frames that are not
    IPv4, as LLDP and ARP, have queue 0: a link is not to be lost because it is full.)
    """
    if class_of_dscp(value) is TrafficClass.NONE:
        return queues - 1
    return queue_of(value % PRIORITIES, queues)


def is_stamp(source_port: int) -> bool:
    """Return whether a received datagram's UDP source port is a path stamp (else: an EV that met no top tier)."""
    return STAMP_FIRST <= source_port <= STAMP_LAST


def is_stamp_name(text: str) -> bool:
    """Return whether a text is a path stamp, as messages and documents write it."""
    return text.isascii() and text.isdigit() and len(text) <= 4 and is_stamp(int(text))


def is_path_name(text: str) -> bool:
    """Return whether a text is a path stamp or "0", which counts what met no top tier."""
    return text == "0" or is_stamp_name(text)


def label_of(stamp: int) -> int:
    """Return the UDP source port that names the path with *stamp*. Raises ValueError for what is no stamp."""
    if not is_stamp(stamp):
        raise ValueError(f"path stamp must be {STAMP_FIRST}..{STAMP_LAST}, not {stamp}")
    return LABEL_FIRST + stamp
