"""What one switch holds by our own account, and the messages that turn it into what it should hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from controller.openflow import codec
from controller.openflow.inventory import Inventory
from controller.openflow.tables import PUNT_METER
from controller.openflow.wanted import Difference

Subject = tuple[str, object]
"""What a message is about, named when the switch refuses it: ("flow", Flow(...))."""
Step = tuple[bytes, Subject]
UNUSED_GROUP_S: Final = 5.0
"""How long a group stays after the last entry that led to it. Open vSwitch hashes a packet for a dp_hash group and then
looks the group up a second time, by its number: by then a bundle may have been committed, and on a busy machine the
datapath does both for a while after that. A packet whose group is gone is dropped."""


@dataclass(frozen=True, slots=True)
class UpdatePlan:
    """Messages of one update in order; ``inside`` belongs into one atomic bundle."""

    before: tuple[Step, ...]
    inside: tuple[Step, ...]
    after: tuple[Step, ...]


class Holdings:
    """Generations, groups and meters of a switch, from its inventory on."""

    def __init__(self, inventory: Inventory) -> None:
        self._generations = set(inventory.generations)
        self._generation = max(inventory.generations, default=0) or 1
        self._groups = set(inventory.groups)
        self._unused: dict[int, float] = {}
        """Groups that no entry leads to any more, with since when, in that order."""
        self._meters = set(inventory.meters)

    def counting_meters(self) -> list[int]:
        """Return the meters that are there to be read, ascending: not those of what goes to the controller."""
        return sorted(meter for meter in self._meters if meter < PUNT_METER)

    def plan(self, difference: Difference, whole: bool, now: float) -> UpdatePlan:
        """Return the messages that make *difference*; they count as sent.

        With *whole*, the difference is all that the switch should hold: its entries get a new generation, and the same
        bundle deletes those of all older ones. So traffic meets the old state or the new one, and nothing else. Groups
        that nothing leads to any more are left for `delete_unused`. Meters travel outside, for Open vSwitch takes none
        into bundles; one that is there is made what it should be, for another controller may have given it a rate.

        Raises EncodingError if OpenFlow cannot say it; nothing counts as sent then.
        """
        generation = self._generation
        if whole:
            used = self._generations | {generation}
            generation = next(number for number in _generations_after(generation) if number not in used)
        groups = {group.id for group in difference.add_groups}
        meters = {meter.id for meter in difference.add_meters}
        old_generations = self._generations if whole else set()
        old_groups = self._groups - groups if whole else set(difference.delete_groups)
        old_meters = self._meters - meters if whole else set(difference.delete_meters)
        deleted_flows = () if whole else difference.delete_flows
        plan = UpdatePlan(
            before=tuple(
                (
                    (codec.modify_meter if meter.id in self._meters else codec.add_meter)(meter),
                    ("meter", meter),
                )
                for meter in difference.add_meters
            ),
            inside=(
                *((codec.set_group(group), ("group", group)) for group in difference.add_groups),
                *((codec.add_flow(flow, generation), ("flow", flow)) for flow in difference.add_flows),
                *((codec.delete_flow(flow), ("deletion of flow", flow)) for flow in deleted_flows),
                *(
                    (codec.delete_generation(old), ("deletion of generation", old))
                    for old in sorted(old_generations)
                ),
            ),
            after=tuple((codec.delete_meter(old), ("deletion of meter", old)) for old in sorted(old_meters)),
        )
        self._generation = generation
        self._generations = (self._generations - old_generations) | (
            {generation} if difference.add_flows else set()
        )
        self._groups |= groups
        self._unused = {old: since for old, since in self._unused.items() if old not in groups}
        for old in sorted(old_groups):
            self._unused.setdefault(old, now)
        self._meters = (self._meters | meters) - old_meters
        return plan

    def unused_at(self) -> float | None:
        """Return when `delete_unused` has something to delete, seconds; None if every group is in use."""
        return next((since + UNUSED_GROUP_S for since in self._unused.values()), None)

    def delete_unused(self, now: float) -> list[bytes]:
        """Return the messages that delete groups which have been unused for `UNUSED_GROUP_S`; they count as sent."""
        old = [group for group, since in self._unused.items() if since + UNUSED_GROUP_S <= now]
        for group in old:
            del self._unused[group]
            self._groups.discard(group)
        return [codec.delete_group(group) for group in old]


def _generations_after(generation: int) -> Iterator[int]:
    """Yield all generations but 0 (which entries of others have), from the next one on."""
    for step in range(1, codec.GENERATIONS):
        yield (generation + step - 1) % (codec.GENERATIONS - 1) + 1
