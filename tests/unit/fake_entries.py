"""The entries of a fake switch's tables, found by what they look at: packets meet them a million times."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

from controller.openflow.wanted import Difference, FlowRule, Masked, Match, SwitchState

if TYPE_CHECKING:
    from tests.unit.fake_tables import Packet


class FakeTablesError(AssertionError):
    """Entries that a real switch would refuse, or whose effect would be undefined."""


_Shape = tuple[tuple[str, int], ...]
"""What an entry looks at: fields and masks (-1: the whole field)."""
_Values = tuple[int | str, ...]
_Reader = Callable[["Packet", int, int], _Values]
"""From a packet, the port where it came in and its metadata to the values of one shape's fields."""
_Table = dict[_Shape, tuple[_Reader, dict[_Values, list[FlowRule]]]]
"""Entries by what they look at, with what reads it, then by the values that they want there."""


class EntryIndex:
    """The index of one state at a time: of the one that is asked for, or followed to."""

    def __init__(self) -> None:
        self._state: SwitchState | None = None
        self._tables: dict[int, _Table] = {}

    def lookup(
        self, state: SwitchState, table: int, packet: Packet, in_port: int, metadata: int
    ) -> FlowRule | None:
        """Return the entry of a table that *packet* hits; None: none matches.

        Raises FakeTablesError where two entries of one priority match.
        """
        if self._state is not state:
            self._begin(state)
        matching: list[FlowRule] = []
        for values_of, by_values in self._tables.get(table, {}).values():
            flows = by_values.get(values_of(packet, in_port, metadata))
            if flows is not None:
                matching += flows
        if len(matching) < 2:
            return matching[0] if matching else None
        hit = max(matching, key=lambda flow: flow.priority)
        for other in matching:
            if other is not hit and other.priority == hit.priority:
                raise FakeTablesError(f"entries overlap: {hit} and {other}")
        return hit

    def follow(self, before: SwitchState, state: SwitchState, change: Difference, whole: bool) -> None:
        """Show *state*, which *change* has led to, if the index shows the state *before*; else wait until asked."""
        if self._state is not before:
            return
        tables = {} if whole else self._tables
        gone = [] if whole else [flow.key for flow in (*change.add_flows, *change.delete_flows)]
        for old in filter(None, map(before.flows.get, dict.fromkeys(gone))):
            shape, values = _conditions(old.match)
            tables[old.table][shape][1][values].remove(old)
        for key in dict.fromkeys(flow.key for flow in change.add_flows):
            if key in state.flows:
                _add(tables, state.flows[key])
        self._state, self._tables = state, tables

    def _begin(self, state: SwitchState) -> None:
        tables: dict[int, _Table] = {}
        for flow in state.flows.values():
            _add(tables, flow)
        self._state, self._tables = state, tables


@functools.lru_cache(maxsize=100_000)
def _conditions(match: Match) -> tuple[_Shape, tuple[int | str, ...]]:
    """Return what *match* looks at, and the values that it wants there."""
    shape: list[tuple[str, int]] = []
    values: list[int | str] = []
    for name in ("metadata", "udp_dst", "udp_src"):
        masked: Masked | None = getattr(match, name)
        if masked is not None:
            shape.append((name, masked[1]))
            values.append(masked[0])
    for name in (
        "ipv4_dst",
        "ip_dscp",
        "in_port",
        "eth_type",
        "eth_src",
        "eth_dst",
        "ip_proto",
        "ipv4_src",
        "arp_op",
        "arp_tpa",
    ):
        value = getattr(match, name)
        if value is not None:
            shape.append((name, -1))
            values.append(value)
    return tuple(shape), tuple(values)


@functools.cache
def _reader(shape: _Shape) -> _Reader:
    """Return what reads the values that entries of this shape look at, compiled: packets meet it a million times."""
    parts = []
    for name, mask in shape:
        value = name if name in ("metadata", "in_port") else f"packet.{name}"
        parts.append(f"{value}, " if mask == -1 else f"{value} & {mask}, ")
    reader: _Reader = eval(f"lambda packet, in_port, metadata: ({''.join(parts)})")
    return reader


def _add(tables: dict[int, _Table], flow: FlowRule) -> None:
    shape, values = _conditions(flow.match)
    table = tables.setdefault(flow.table, {})
    if shape not in table:
        table[shape] = (_reader(shape), {})
    table[shape][1].setdefault(values, []).append(flow)
