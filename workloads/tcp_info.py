"""What the kernel knows about a TCP connection (``struct tcp_info``, linux/tcp.h)."""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass
from typing import Final

_LAYOUT: Final = struct.Struct("=8B 24I 4Q 6I 4Q 2I 2Q 3I")
"""Up to and with tcpi_rcv_ooopack (Linux 5.4). Without padding: the 64-bit members happen to be aligned."""
# fmt: off
_NAMES: Final = (
    "state", "ca_state", "retransmits", "probes", "backoff", "options", "wscale", "flags", "rto", "ato",
    "snd_mss", "rcv_mss", "unacked", "sacked", "lost", "retrans", "fackets", "last_data_sent",
    "last_ack_sent", "last_data_recv", "last_ack_recv", "pmtu", "rcv_ssthresh", "rtt", "rttvar",
    "snd_ssthresh", "snd_cwnd", "advmss", "reordering", "rcv_rtt", "rcv_space", "total_retrans",
    "pacing_rate", "max_pacing_rate", "bytes_acked", "bytes_received", "segs_out", "segs_in",
    "notsent_bytes", "min_rtt", "data_segs_in", "data_segs_out", "delivery_rate", "busy_time",
    "rwnd_limited", "sndbuf_limited", "delivered", "delivered_ce", "bytes_sent", "bytes_retrans",
    "dsack_dups", "reord_seen", "rcv_ooopack",
)
# fmt: on

_NO_SAMPLE: Final = 0xFFFF_FFFF
"""What the kernel's least round-trip time is before there is one."""


@dataclass(frozen=True, slots=True)
class TcpInfo:
    """The members that flow records need; times in milliseconds, counts in segments unless named bytes."""

    retransmissions: int
    bytes_retransmitted: int
    bytes_acked: int
    reordering_events: int
    duplicates_reported: int
    """Segments that the receiver got twice, as it said by D-SACK: spurious retransmissions."""
    out_of_order: int
    """Segments that arrived at this end behind a gap."""
    rtt_ms: float
    min_rtt_ms: float
    """0: no segment was acknowledged yet."""


def tcp_info(connection: socket.socket) -> TcpInfo:
    """Return TCP_INFO; on kernels older than 5.4 the members that they lack are 0."""
    raw = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _LAYOUT.size)
    values = dict(zip(_NAMES, _LAYOUT.unpack(raw.ljust(_LAYOUT.size, b"\0")), strict=True))
    return TcpInfo(
        retransmissions=values["total_retrans"],
        bytes_retransmitted=values["bytes_retrans"],
        bytes_acked=values["bytes_acked"],
        reordering_events=values["reord_seen"],
        duplicates_reported=values["dsack_dups"],
        out_of_order=values["rcv_ooopack"],
        rtt_ms=values["rtt"] / 1e3,
        min_rtt_ms=0.0 if values["min_rtt"] == _NO_SAMPLE else values["min_rtt"] / 1e3,
    )
