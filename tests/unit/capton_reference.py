"""CAPTON's pseudocode (Figure 6) in exact arithmetic, written for the tests: slow, and with nothing kept but flows."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from controller.capton.fabric import HostPlace, Rates, VirtualLink


@dataclass
class Waiting:
    source: str
    destination: str
    remaining_bits: Fraction
    requested: Fraction
    turn: int
    rate: int = 0
    ends: Fraction | None = None


class ReferenceScheduler:
    """Everything anew at each event; times in seconds, as fractions of whole nanoseconds."""

    def __init__(
        self,
        hosts: list[HostPlace],
        groups: dict[str, Rates],
        least_share: Fraction = Fraction(1),
        ageing: int = 0,
        timeout: Fraction = Fraction(0),
    ) -> None:
        self.places = {host.name: host for host in hosts}
        self.capacities = {
            VirtualLink(name, way): rate
            for name, rates in {**{host.name: host.access for host in hosts}, **groups}.items()
            for way, rate in (("up", rates.up), ("down", rates.down))
        }
        self.least_share, self.ageing, self.timeout = least_share, ageing, timeout
        self.flows: dict[int, Waiting] = {}
        self.now = Fraction(0)
        self.turns = 0

    def links(self, flow: Waiting) -> list[VirtualLink]:
        """Return the access links, and those of every tier that the two ends do not share."""
        path = [VirtualLink(flow.source, "up"), VirtualLink(flow.destination, "down")]
        above = zip(self.places[flow.source].groups, self.places[flow.destination].groups, strict=True)
        for from_group, to_group in above:
            if from_group == to_group:
                break
            path += [VirtualLink(from_group, "up"), VirtualLink(to_group, "down")]
        return path

    def request(self, name: int, source: str, destination: str, size: int, now: Fraction) -> dict[int, int]:
        self.advance(now)
        if name in self.flows:
            self.flows[name].remaining_bits, self.flows[name].ends = Fraction(size * 8), None
        else:
            self.flows[name] = Waiting(source, destination, Fraction(size * 8), self.now, self.turns)
            self.turns += 1
        return self.grant()

    def finished(self, name: int, now: Fraction) -> dict[int, int]:
        self.advance(now)
        self.flows.pop(name, None)
        return self.grant()

    def capacity(self, link: VirtualLink, rate: int, now: Fraction) -> dict[int, int]:
        self.advance(now)
        self.capacities[link] = rate
        return self.grant()

    def expire(self, now: Fraction) -> dict[int, int]:
        self.advance(now)
        over = [
            name
            for name, flow in self.flows.items()
            if flow.ends is not None and flow.ends + self.timeout <= self.now
        ]
        for name in over:
            del self.flows[name]
        return dict.fromkeys(over, 0) | self.grant()

    def next_event(self) -> Fraction | None:
        ends = [flow.ends for flow in self.flows.values() if flow.ends is not None]
        return min(ends) + self.timeout if ends else None

    def advance(self, now: Fraction) -> None:
        """Subtract from the remaining sizes what the granted rates have carried since the last event."""
        for flow in self.flows.values():
            flow.remaining_bits = max(Fraction(0), flow.remaining_bits - flow.rate * (now - self.now))
        self.now = now

    def order(self) -> list[tuple[int, Waiting]]:
        return sorted(
            self.flows.items(),
            key=lambda item: (item[1].remaining_bits + 8 * self.ageing * item[1].requested, item[1].turn),
        )

    def grant(self) -> dict[int, int]:
        """Grant rates in increasing order of what is left, and return those that changed.

        A flow gets the line rate, or what all links still hold of it if that is ``least_share`` of it at least; else 0.
        """
        left = dict(self.capacities)
        changed = {}
        for name, flow in self.order():
            links = self.links(flow)
            line = min(self.capacities[link] for link in links)
            rate = min(line, *(left[link] for link in links))
            if rate < self.least_share * line:
                rate = 0
            for link in links:
                left[link] -= rate
            if rate != flow.rate:
                changed[name] = flow.rate = rate
                flow.ends = None
            if rate and flow.ends is None:
                nanoseconds = -((-flow.remaining_bits * 10**9) // rate)
                flow.ends = self.now + Fraction(int(nanoseconds), 10**9)
        return changed
