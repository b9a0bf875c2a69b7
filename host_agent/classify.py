"""Traffic class of an inner packet: control, or short or long by what its flow has sent.

A flow is short while it has sent less than the policy's limit of payload. What opens, closes or only acknowledges is
control: never coded, never counted as traffic of short flows, or the ACKs of a long flow would keep the far leaf ON.
"""

from __future__ import annotations

from typing import Final

from host_agent.packets import ICMP, ICMPV6, IGMP, RST, SYN, TCP, Inner
from protocol.underlay import TrafficClass

_CONTROL_PROTOCOLS: Final = frozenset((ICMP, ICMPV6, IGMP))


def is_control(inner: Inner) -> bool:
    """SYN, RST, and TCP without payload (pure ACK, FIN); ICMP and IGMP. A FIN that carries payload is data."""
    if inner.protocol == TCP:
        return not inner.fragment and (inner.payload == 0 or inner.flags & (SYN | RST) != 0)
    return inner.protocol in _CONTROL_PROTOCOLS


def data_class(sent_bytes: int, limit_bytes: int) -> TrafficClass:
    """Class of a data packet whose flow has sent *sent_bytes* of payload before it."""
    return TrafficClass.SHORT if sent_bytes < limit_bytes else TrafficClass.LONG
