"""What a link is, and the one writer of a port's queueing discipline.

A shaped port carries this tree (handles as Open vSwitch's own ``linux-htb`` uses them, so that a port's
queue *q* is always class ``1:<q+1>``, whichever program sends to it)::

    root htb 1:  ->  class 1:fffe (the link's rate)  ->  class 1:1 (queue 0)  ->  pfifo or bfifo (the link's buffer)
                                                     ->  class 1:2 (queue 1)  ->  pfifo ...

Queues are strict: HTB serves the lowest `prio` first. What decides a packet's queue is the DSCP (`u32` filters), or
the socket buffer's priority 1:<q+1> that the kernel datapath's `set_queue` writes.
Rate, buffer, delay and queues of a port all come from here: two writers would wipe each other's tree.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, Final

from capstan_client.errors import CapstanError
from ovsdb.port_queues import ONE_QUEUE, PortLimit, PortQueues
from protocol.underlay import PRIORITIES, queue_of

with contextlib.suppress(ImportError):  # Mininet's own python3 (`mn --custom`) has the standard library only
    from msgspec import Meta

FRAME_BYTES: Final = 1514
"""An Ethernet frame of 1500 B payload, without checksum: what HTB counts a full packet as."""
UNSHAPED_DELAY_PACKETS: Final = 100_000
"""Packets that a delay without a rate may hold: more than any sender here has in flight."""
OWN_RATE_BIT: Final = 1000
"""What a queue of several may send even while higher ones have packets: HTB takes no 0."""
OWN_BURST: Final = FRAME_BYTES + 86
FILTER_PREFERENCE: Final = 1
MOST_MBPS: Final = 10**7
MOST_BUFFER_PACKETS: Final = 1_000_000
MOST_BUFFER_BYTES: Final = 10**12
_BUFFERS: Final = frozenset({"buffer_packets", "buffer_bytes"})


class LinkError(CapstanError, ValueError):
    """A link's description is wrong; the text names the field and says what is allowed."""


@dataclass(frozen=True)
class Link:
    """One link, the same in both directions."""

    rate_mbps: Annotated[
        Annotated[float, Meta(gt=0, le=MOST_MBPS)] | None,
        Meta(description="Mbit/s (10^6 bit) on layer 2; null: unshaped; rate_gbps in its place: in Gbit/s"),
    ] = None
    buffer_packets: Annotated[
        int,
        Meta(
            ge=1,
            le=MOST_BUFFER_PACKETS,
            description="packets that the port's queue holds before it drops the newest",
        ),
    ] = 256
    delay_ms: Annotated[
        float, Meta(ge=0, le=10**6, description="one-way delay in ms, where the kernel has netem")
    ] = 0.0
    buffer_bytes: Annotated[
        Annotated[int, Meta(ge=1, le=MOST_BUFFER_BYTES)] | None,
        Meta(description="bytes of packets that the port's queue holds, in place of buffer_packets"),
    ] = None

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], base: Link | None = None) -> Link:
        """Return a link from plain data; what *data* does not say is taken from *base*. Raises LinkError."""
        from plain.reading import (
            PlainError,
            build,
        )  # here: Mininet's own python3 has the standard library only

        if not isinstance(data, Mapping):
            raise LinkError(f"must be a mapping like {{rate_mbps: 10}}, not {data!r}")
        given = dict(data)
        if "rate_gbps" in given:
            if "rate_mbps" in given:
                raise LinkError("rate_gbps cannot be together with rate_mbps: give one of them")
            given["rate_mbps"] = _in_mbps(given.pop("rate_gbps"))
        if "buffer_packets" in given and given.get("buffer_bytes") is not None:
            raise LinkError("buffer_bytes cannot be together with buffer_packets: give one of them")
        known = (base or cls()).to_dict()
        if given.keys() & _BUFFERS:
            known = {name: value for name, value in known.items() if name not in _BUFFERS}
        try:
            return build(cls, {**known, **given}, "")
        except PlainError as error:
            raise LinkError(f"{error.where.removeprefix('.')} {error.what}".strip()) from None

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that from_dict() takes back: of the two buffers the one in force."""
        other = "buffer_bytes" if self.buffer_bytes is None else "buffer_packets"
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name != other}

    @property
    def limits(self) -> tuple[int | None, int | None]:
        """Return what a queue of its port holds: packets, or else bytes."""
        return (self.buffer_packets, None) if self.buffer_bytes is None else (None, self.buffer_bytes)

    def full_packets(self, frame_bytes: int) -> int:
        """Return how many packets of *frame_bytes* a queue of its port holds."""
        return self.buffer_packets if self.buffer_bytes is None else self.buffer_bytes // frame_bytes

    @property
    def lab_problem(self) -> str | None:
        """Return what of it no lab has, and what to do; None: nothing."""
        if self.buffer_bytes is None or not self.delay_ms:
            return None
        return (
            "buffer_bytes beside delay_ms is for simulations only, since netem counts packets: give buffer_packets, or "
            "use ./capstan simulate"
        )

    def limited(self, limit: PortLimit) -> Link:
        """Return this link where *limit* makes a port of it slower."""
        rates = [self.rate_mbps] if self.rate_mbps is not None else []
        rates += [limit.rate_bps / 1e6] if limit.rate_bps is not None else []
        return replace(
            self, rate_mbps=min(rates, default=None), delay_ms=self.delay_ms + limit.delay_us / 1e3
        )

    def mininet_options(self) -> dict[str, Any]:
        """Return this link as options of Mininet's own TCLink (``mn --link tc``)."""
        options: dict[str, Any] = {"max_queue_size": max(1, self.full_packets(FRAME_BYTES))}
        if self.rate_mbps is not None:
            options["bw"] = self.rate_mbps
        if self.delay_ms:
            options["delay"] = f"{self.delay_ms:g}ms"
        return options

    def __str__(self) -> str:
        rate = "unshaped" if self.rate_mbps is None else f"{self.rate_mbps:g} Mbit/s"
        delay = f", {self.delay_ms:g} ms" if self.delay_ms else ""
        return f"{rate}, buffer {self.buffer_words}{delay}"

    @property
    def buffer_words(self) -> str:
        """Return what a queue of its port holds, with the unit."""
        return f"{self.buffer_packets} packets" if self.buffer_bytes is None else f"{self.buffer_bytes} B"


def _in_mbps(rate_gbps: object) -> float | None:
    """Return a rate in Mbit/s, to the bit/s. Raises LinkError unless it is a number that a link can have, or None."""
    if rate_gbps is None:
        return None
    if isinstance(rate_gbps, bool) or not isinstance(rate_gbps, int | float):
        raise LinkError(f"rate_gbps must be a number of Gbit/s, not {rate_gbps!r}")
    if not 0 < rate_gbps <= MOST_MBPS / 1000:
        raise LinkError(f"rate_gbps must be above 0 Gbit/s and at most {MOST_MBPS / 1000:g} Gbit/s")
    return round(rate_gbps * 1000, 6)


def link_of(value: Link | Mapping[str, Any] | float | None) -> Link:
    """Return a Link from what people write: a Link, a mapping, a rate in Mbit/s, or None (unshaped)."""
    if isinstance(value, Link):
        return value
    if isinstance(value, Mapping):
        return Link.from_dict(value)
    return Link(rate_mbps=value)


def shape_commands(interface: str, link: Link, netem: bool, queues: PortQueues = ONE_QUEUE) -> list[str]:
    """Return ``tc -batch`` lines that give a port without a qdisc of its own the shape of *link*.

    netem: whether this kernel has it; without it a delay is left out (the caller says so). A port without a rate sends
    at once: it has no queues, however many are asked for.
    """
    delay = link.delay_ms if netem else 0.0
    if link.rate_mbps is None:
        if not delay:
            return []
        return [
            f"qdisc add dev {interface} root handle 1: netem delay {delay:g}ms limit {UNSHAPED_DELAY_PACKETS}"
        ]
    return [
        f"qdisc add dev {interface} root handle 1: htb default 1",
        f"class add dev {interface} parent 1: classid 1:fffe htb {_rate_words(link.rate_mbps)}",
        *(
            line
            for q in range(queues.number)
            for line in _queue_lines(interface, q, link, delay_ms=delay, queues=queues)
        ),
        *classify_commands(interface, queues.number),
    ]


def reshape_commands(
    interface: str,
    old: Link,
    new: Link,
    *,
    netem: bool,
    queues: tuple[PortQueues, PortQueues] = (ONE_QUEUE, ONE_QUEUE),
) -> list[str]:
    """Return ``tc -batch`` lines that take a port from *old* to *new* (queues: likewise).

    A change of rate or number keeps what is queued, but for what waits in a queue that goes.
    """
    before, after = queues
    if (old, before) == (new, after):
        return []
    old_delay, new_delay = (link.delay_ms if netem else 0.0 for link in (old, new))
    same_tree = old.rate_mbps is not None and new.rate_mbps is not None and bool(old_delay) == bool(new_delay)
    if not same_tree:
        remove = [f"qdisc del dev {interface} root"] if shape_commands(interface, old, netem) else []
        return remove + shape_commands(interface, new, netem, after)
    assert old.rate_mbps is not None
    assert new.rate_mbps is not None
    lines = []
    if before.number > 1 and before.number != after.number:
        lines.append(f"filter del dev {interface} parent 1: pref {FILTER_PREFERENCE}")
    for gone in range(after.number, before.number):
        lines.append(f"class del dev {interface} classid 1:{gone + 1:x}")
    if old.rate_mbps != new.rate_mbps:
        lines.append(
            f"class change dev {interface} parent 1: classid 1:fffe htb {_rate_words(new.rate_mbps)}"
        )
    for q in range(min(before.number, after.number)):
        words = _class_words(q, new.rate_mbps, after.number)
        if words != _class_words(q, old.rate_mbps, before.number):
            lines.append(f"class change dev {interface} parent 1:fffe classid 1:{q + 1:x} htb {words}")
    queue = _queue_words(new, new_delay, after)
    if queue != _queue_words(old, old_delay, before):
        same_kind = queue.split()[0] == _queue_words(old, old_delay, before).split()[0]
        for q in range(min(before.number, after.number)):
            place = f"dev {interface} parent 1:{q + 1:x} handle {_handle(q)}"
            lines += (
                [f"qdisc change {place} {queue}"]
                if same_kind
                else [f"qdisc del {place}", f"qdisc add {place} {queue}"]
            )
    for q in range(before.number, after.number):
        lines += _queue_lines(interface, q, new, delay_ms=new_delay, queues=after)
    if before.number != after.number:
        lines += classify_commands(interface, after.number)
    return lines


def classify_commands(interface: str, number: int) -> list[str]:
    """Return ``tc -batch`` lines that bring IPv4 packets to *number* queues by DSCP
    (`protocol.underlay.queue_of_dscp`).

    All else stays in queue 0, the tree's default. One queue needs none.
    """
    if number == 1:
        return []
    add = f"filter add dev {interface} parent 1: protocol ip pref {FILTER_PREFERENCE} u32"
    last = f"flowid 1:{number:x}"
    lines = [  # what agents do not send: DSCP 0-7 and from 32 on
        f"{add} match ip tos 0x00 0xe0 {last}",
        f"{add} match ip tos 0x80 0x80 {last}",
    ]
    for priority in range(PRIORITIES):
        value, mask = priority << 2, (PRIORITIES - 1) << 2
        lines.append(
            f"{add} match ip tos {value:#04x} {mask:#04x} flowid 1:{queue_of(priority, number) + 1:x}"
        )
    return lines


def _queue_lines(interface: str, q: int, link: Link, *, delay_ms: float, queues: PortQueues) -> list[str]:
    assert link.rate_mbps is not None
    words = _class_words(q, link.rate_mbps, queues.number)
    return [
        f"class add dev {interface} parent 1:fffe classid 1:{q + 1:x} htb {words}",
        f"qdisc add dev {interface} parent 1:{q + 1:x} handle {_handle(q)} {_queue_words(link, delay_ms, queues)}",
    ]


def _handle(q: int) -> str:
    return f"{0x11 + q:x}:"


def _class_words(q: int, rate_mbps: float, number: int) -> str:
    """Return the class of queue *q* of *number*.

    Each of several has next to no rate of its own and takes, in the order of their priority, what the link gives:
    strict, but for one packet of each in `OWN_BURST / OWN_RATE_BIT`, 13 s. With a rate of its own the first would not
    wait for the packet of a lower queue that is being sent, as it does on a wire.
    """
    if number == 1:
        return _rate_words(rate_mbps)
    ceil, burst = _bits(rate_mbps), burst_bytes(rate_mbps)
    return f"prio {q} rate {OWN_RATE_BIT}bit ceil {ceil}bit burst {OWN_BURST} cburst {burst} quantum {FRAME_BYTES}"


def _rate_words(rate_mbps: float) -> str:
    rate, burst = _bits(rate_mbps), burst_bytes(rate_mbps)
    return f"rate {rate}bit ceil {rate}bit burst {burst} cburst {burst} quantum {FRAME_BYTES}"


def _bits(rate_mbps: float) -> int:
    return round(rate_mbps * 1e6)


def burst_bytes(rate_mbps: float) -> int:
    """Return what a port sends at once after a pause, in bytes.

    A quarter of a millisecond: one packet at the rates of an emulated fabric (so that shaping makes no bursts), yet
    enough for the timer's grain near 1 Gbit/s. tc's own default is one packet always.
    """
    return max(OWN_BURST, round(_bits(rate_mbps) / 8 * 250e-6))


def _queue_words(link: Link, delay_ms: float, queues: PortQueues) -> str:
    if link.buffer_bytes is not None and queues.buffer_packets is None:
        if delay_ms:
            raise LinkError(f"a link's {link.lab_problem}")
        return f"bfifo limit {link.buffer_bytes}"
    packets = queues.buffer_packets or link.buffer_packets
    if not delay_ms:
        return f"pfifo limit {packets}"
    # netem counts the packets on the wire together with those that wait: give the wire's share on top.
    on_wire = math.ceil((link.rate_mbps or 0) * 1e6 / 8 * delay_ms / 1e3 / FRAME_BYTES)
    return f"netem delay {delay_ms:g}ms limit {packets + on_wire}"
