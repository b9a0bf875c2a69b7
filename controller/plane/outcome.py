"""Effects while the control plane puts them together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from controller.fabric.switch_data import PacketOut
from controller.openflow.wanted import Difference
from controller.plane.effects import Effects, Event, SwitchTurnedAway


@dataclass(slots=True)
class Outcome:
    """What a call of the control plane has caused so far; ``punts``: switches whose LLDP and ARP entries go first."""

    punts: set[int] = field(default_factory=set)
    packet_outs: list[PacketOut] = field(default_factory=list)
    read_meters: tuple[int, ...] = ()
    events: list[Event] = field(default_factory=list)
    turned_away: dict[int, str] = field(default_factory=dict)

    def turn_away(self, dpid: int, reason: str, now: float) -> None:
        """Have the connection of a switch closed, for a reason that an event says, too."""
        self.turned_away[dpid] = reason
        self.events.append(SwitchTurnedAway(now, dpid, reason))

    def effects(self, updates: Mapping[int, Difference], resync: frozenset[int]) -> Effects:
        """Return all of it, with the updates of switches."""
        return Effects(
            updates, resync, tuple(self.packet_outs), self.read_meters, tuple(self.events), self.turned_away
        )
