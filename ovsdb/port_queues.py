"""How many queues a port is to have: what the controller writes into a switch's database, and what comes back.

A port whose queueing discipline a program on the switch writes (the lab does) has a row of its own in table QoS, of
type ``linux-noop``, by which ovs-vswitchd leaves the port alone:

===============  ==========================  =================================================================
column           key                         value, and who writes it
===============  ==========================  =================================================================
`external_ids`   ``capstan-writer``          the writer's name: it offers to do this (the writer)
`other_config`   ``capstan-queues``          number of queues, 1..8 (the controller)
`other_config`   ``capstan-buffer-packets``  packets that each may hold; without it: the link's (the controller)
`other_config`   ``capstan-rate-bps``        at most so many bit/s, if the link's rate is higher (the controller)
`other_config`   ``capstan-delay-us``        microseconds that each packet is held beside the link's (the controller)
`external_ids`   ``capstan-applied``         what the port has now, or why it cannot: `Applied` (the writer)
===============  ==========================  =================================================================

Counters on request: the controller writes a number that it has not used before at ``capstan-asked`` of the
`external_ids` of table Open_vSwitch; the writer writes that number at ``capstan-answered``, and at ``capstan-counters``
a JSON object, from a port's name to a list of ``[packets waiting, bytes waiting, packets dropped, packets sent,
bytes sent]``, one a queue. ovs-vswitchd ignores all of these columns, so nothing here makes it work.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any, Final

from capstan_client.errors import CapstanError
from protocol.underlay import PRIORITIES

WRITER: Final = "capstan-writer"
QUEUES: Final = "capstan-queues"
BUFFER_PACKETS: Final = "capstan-buffer-packets"
RATE_BPS: Final = "capstan-rate-bps"
DELAY_US: Final = "capstan-delay-us"
ASKED_KEYS: Final = (QUEUES, BUFFER_PACKETS, RATE_BPS, DELAY_US)
"""What the controller writes at a port."""
APPLIED: Final = "capstan-applied"
ASKED: Final = "capstan-asked"
ANSWERED: Final = "capstan-answered"
COUNTERS: Final = "capstan-counters"
NO_WRITER_TYPE: Final = "linux-noop"
OVSDB_PORT: Final = 6640
"""IANA's port for OVSDB: where a switch's database is looked for on its management address."""


LONGEST_DELAY_US: Final = 10_000_000
MOST_RATE_BPS: Final = 10**13
"""Of a port: a rate above is taken for none. What is computed from rates stays within 64 bits."""
MOST_COUNT: Final = 1 << 64


class QueuesError(CapstanError, ValueError):
    """Queues that cannot be; the text says which field and what is allowed."""


@dataclass(frozen=True, slots=True)
class PortLimit:
    """What makes a port slower than its link. ``rate_bps``: at most; None: the link's. ``delay_us``: on top of its."""

    rate_bps: int | None = None
    delay_us: int = 0

    def __post_init__(self) -> None:
        if self.rate_bps is not None and not 1000 <= self.rate_bps <= 10**12:
            raise QueuesError(f"rate_bps: must be 1000 to 10^12 bit/s, not {self.rate_bps}")
        if not 0 <= self.delay_us <= LONGEST_DELAY_US:
            raise QueuesError(f"delay_us: must be 0 to {LONGEST_DELAY_US} us, not {self.delay_us}")


NO_LIMIT: Final = PortLimit()


def queues_problem(number: int, buffer_packets: int | None) -> tuple[str, str] | None:
    """Return the field and text of what cannot be; None if all can."""
    if not 1 <= number <= PRIORITIES:
        return "number", f"must be 1..{PRIORITIES} queues, not {number}"
    if buffer_packets is not None and not 1 <= buffer_packets <= 1_000_000:
        return "buffer_packets", f"must be 1 to 1000000 packets, not {buffer_packets}"
    return None


@dataclass(frozen=True, slots=True)
class PortQueues:
    """Strict-priority queues of a port. ``number``: 1..8; 0 is served first.

    buffer_packets: packets that each queue holds before it drops the newest; None: as many as the link's buffer.
    """

    number: int = 1
    buffer_packets: int | None = None
    limit: PortLimit = NO_LIMIT

    def __post_init__(self) -> None:
        wrong = queues_problem(self.number, self.buffer_packets)
        if wrong is not None:
            raise QueuesError(f"{wrong[0]}: {wrong[1]}")

    def to_config(self) -> dict[str, str]:
        """Return the keys and values for `other_config`; `from_config` is its inverse."""
        config = {QUEUES: str(self.number)}
        if self.buffer_packets is not None:
            config[BUFFER_PACKETS] = str(self.buffer_packets)
        if self.limit.rate_bps is not None:
            config[RATE_BPS] = str(self.limit.rate_bps)
        if self.limit.delay_us:
            config[DELAY_US] = str(self.limit.delay_us)
        return config

    @classmethod
    def from_config(cls, config: Mapping[str, str]) -> PortQueues:
        """Return the queues that a configuration describes. Raise QueuesError for what the controller does
        not write.
        """
        try:
            buffer_packets = int(config[BUFFER_PACKETS]) if BUFFER_PACKETS in config else None
            rate_bps = int(config[RATE_BPS]) if RATE_BPS in config else None
            limit = PortLimit(rate_bps, int(config.get(DELAY_US, "0")))
            return cls(int(config.get(QUEUES, "1")), buffer_packets, limit)
        except ValueError as error:
            raise QueuesError(str(error)) from None


ONE_QUEUE: Final = PortQueues()


@dataclass(frozen=True, slots=True)
class Applied:
    """What a port has. ``buffer_packets``: of each queue. ``problem``: why it has not what was asked for, or "".

    limit: what makes it slower than its link, as asked for.
    ``rate_bps`` 0: the port sends at once what it gets (a link without a rate, in a lab), so nothing ever waits there.
    """

    number: int
    buffer_packets: int
    rate_bps: int
    problem: str = ""
    limit: PortLimit = NO_LIMIT

    def to_text(self) -> str:
        """Return text for ``capstan-applied``."""
        limit = [self.limit.rate_bps, self.limit.delay_us]
        return json.dumps([self.number, self.buffer_packets, self.rate_bps, self.problem, *limit])

    @classmethod
    def from_text(cls, text: str) -> Applied | None:
        """Return None for what no writer of ours wrote."""
        try:
            number, buffer_packets, rate_bps, problem, most_bps, delay_us = json.loads(text)
            limit = PortLimit(None if most_bps is None else int(most_bps), int(delay_us))
            return cls(
                _count(number, PRIORITIES),
                _count(buffer_packets, MOST_COUNT),
                _count(rate_bps, MOST_RATE_BPS),
                str(problem),
                limit,
            )
        except _UNREADABLE:
            return None


@dataclass(frozen=True, slots=True)
class QueueCounters:
    """One queue, since it was made."""

    waiting_packets: int
    waiting_bytes: int
    dropped_packets: int
    sent_packets: int
    sent_bytes: int


def counters_to_text(ports: Mapping[str, Sequence[QueueCounters]]) -> str:
    """Return text for ``capstan-counters``; `counters_from_text` is its inverse."""
    rows = {name: [astuple(queue) for queue in queues] for name, queues in ports.items()}
    return json.dumps(rows, separators=(",", ":"))


def counters_from_text(text: str) -> dict[str, tuple[QueueCounters, ...]]:
    """Return by port and queue; nothing for what no writer of ours wrote."""
    try:
        return {
            str(name): tuple(QueueCounters(*(_count(value, MOST_COUNT) for value in row)) for row in rows)
            for name, rows in json.loads(text).items()
        }
    except _UNREADABLE:
        return {}


_UNREADABLE: Final = (ValueError, TypeError, AttributeError, OverflowError, RecursionError)
"""What reading any text as JSON, and as numbers, raises."""


def _count(value: Any, most: int) -> int:
    """Return a whole number from 0 to *most*. Raises one of `_UNREADABLE`."""
    number = int(value)
    if not 0 <= number <= most:
        raise ValueError(f"{number} is not from 0 to {most}")
    return number
