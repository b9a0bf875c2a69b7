"""A controller of a small fabric that answers as docs/api.md says, for lab 7: no process, no socket, no clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from capstan_client.errors import ControllerError
from protocol.version import VERSION

LEAVES: Final = ("l1", "l2")
SPINES: Final = ("s1", "s2", "s3", "s4")
HOSTS: Final = {"h1": "l1", "h2": "l1", "h3": "l2", "h4": "l2"}
RATE_KBPS: Final = 5000.0
ACCESS_KBPS: Final = 15000.0
SLOW_KBPS: Final = 500.0
PACKET_TIME_US: Final = 2400.0
SAMPLE_S: Final = 0.25
BEGAN_AT: Final = 1_760_000_000.0
"""Of the rehearsal and its faults, Unix seconds."""
FIRST_SLOW: Final = 1001
"""Number of the fault that makes the first link slow, where it is."""


@dataclass(slots=True)
class Rehearsal:
    """A controller of two leaves and four spines whose links and load a check sets; it keeps what it is asked.

    Its methods are those of `capstan_client.controller.ControllerClient`, which has more.

    slow: links at a tenth of their rate, by faults; rates: kbit/s of links that have another than the rest; share: load
    of each fabric link that is up and not in idle, 0..1, on its way from l1 to l2 (the other direction has a twentieth
    of it); refusals: how many requests are refused with 503 before the next is done; changes: requests that changed
    something, in order, as ``link-down l1-s1``, ``end l1-s1``, ``scheme caps``; mistakes: what a controller refuses for
    good.
    """

    slow: set[str] = field(default_factory=set)
    rates: dict[str, float] = field(default_factory=dict)
    idle: frozenset[str] = frozenset()
    share: float = 0.1
    refusals: int = 0
    in_force: str = "ecmp"
    packet_time_us: float = PACKET_TIME_US
    changes: list[str] = field(default_factory=list)
    mistakes: list[str] = field(default_factory=list)
    _faults: dict[int, str] = field(default_factory=dict)
    _version: int = 1
    _samples: int = 0

    def faults(self) -> list[dict[str, Any]]:
        """Return faults in force, as ``GET /faults``: what makes links slow, as in a lab, then links that are down."""
        return [
            {
                "id": number,
                "kind": kind,
                "target": target,
                "rate_mbps": rate_mbps,
                "delay_ms": None,
                "began_at": BEGAN_AT,
            }
            for kind, rate_mbps, targets in (
                ("slow-link", SLOW_KBPS / 1000, self._slowing()),
                ("link-down", None, self._faults),
            )
            for number, target in targets.items()
        ]

    def begin_fault(
        self, kind: str, target: str, rate_mbps: float | None = None, delay_ms: float | None = None
    ) -> dict[str, Any]:
        """Take a link down, and return the fault. Raises ControllerError."""
        self._answer_or_refuse()
        if kind != "link-down":
            raise self._mistake(f"{kind} {target}: link-down is wanted", 422)
        if target not in all_links():
            raise self._mistake(f"there is no link {target}", 404)
        if target in self._faults.values():
            raise self._mistake(f"{target} is down already", 409)
        return self.take_down(target)

    def take_down(self, target: str) -> dict[str, Any]:
        """Take a link down, and return the fault."""
        number = max(self._faults, default=0) + 1
        self._faults[number] = target
        self.changes.append(f"link-down {target}")
        return self.faults()[-1]

    def end_fault(self, number: int) -> None:
        """End a fault. Raises ControllerError."""
        self._answer_or_refuse()
        target = self._slowing().get(number) or self._faults.pop(number, None)
        if target is None:
            raise self._mistake(f"there is no fault {number} (any more)", 404)
        if number >= FIRST_SLOW:
            self.slow.discard(target)
        self.changes.append(f"end {target}")

    def scheme(self) -> dict[str, Any]:
        """Return the scheme in force, as ``GET /scheme``, without what its classes and the policy of agents say."""
        return {
            "scheme": {"name": self.in_force},
            "base": self.in_force,
            "overrides": {},
            "packet_time_us": self.packet_time_us,
            "version": self._version,
            "policy": {},
        }

    def set_scheme(
        self,
        scheme: str | Mapping[str, Any],
        packet_time_s: float,
        *,
        overrides: Mapping[str, Any] | None = None,
        timeout_s: float = 10.0,
        forget_flows: bool = False,
    ) -> dict[str, Any]:
        """Put a scheme in force, and return it. Raises ControllerError."""
        self._answer_or_refuse()
        name = scheme if isinstance(scheme, str) else str(scheme.get("name"))
        self.in_force = name
        self._version += 1
        self.packet_time_us = packet_time_s * 1e6
        self.changes.append(f"scheme {name}")
        return self.scheme() | {"applied_ms": 1.0}

    def restart(self, in_force: str) -> None:
        """Have all links up, and another scheme in force: what a client finds that was away."""
        self._faults.clear()
        self.in_force = in_force

    def hello(self, resumed: bool) -> dict[str, Any]:
        """Return the event that a stream begins with."""
        return {
            "topic": "hello",
            "id": f"1-{self._samples}",
            "cursor": self._samples,
            "version": VERSION,
            "at": self._now(),
            "topics": ["links"],
            "resumed": resumed,
        }

    def sample(self) -> dict[str, Any]:
        """Return the next event of topic ``links``, a quarter of a second after the last."""
        self._samples += 1
        links = [self._fabric_link(name) for name in fabric_links()]
        links += [
            _link(f"{host}-{leaf}", "access", True, rate_kbps=ACCESS_KBPS, share=self.share / 2)
            for host, leaf in HOSTS.items()
        ]
        return {"topic": "links", "at": self._now(), "interval_s": SAMPLE_S, "links": links}

    def _slowing(self) -> dict[int, str]:
        """Return slow links by the numbers of the faults that make them so."""
        return {FIRST_SLOW + place: name for place, name in enumerate(fabric_links()) if name in self.slow}

    def connected(self) -> bool:
        """Return whether a spine is left whose links to all leaves are up."""
        return any(all(f"{leaf}-{spine}" not in self._faults.values() for leaf in LEAVES) for spine in SPINES)

    def _fabric_link(self, name: str) -> dict[str, Any]:
        up = name not in self._faults.values()
        share = self.share if up and name not in self.idle else 0.0
        rate = SLOW_KBPS if name in self.slow else self.rates.get(name, RATE_KBPS)
        # What comes from l1 goes up to spines there, and down from them to l2.
        return _link(name, "fabric", up, rate_kbps=rate, share=share, downwards=name.startswith("l2-"))

    def _now(self) -> float:
        return BEGAN_AT + self._samples * SAMPLE_S

    def _answer_or_refuse(self) -> None:
        if self.refusals:
            self.refusals -= 1
            raise ControllerError("the controller is not available now", 503)

    def _mistake(self, why: str, status: int) -> ControllerError:
        self.mistakes.append(why)
        return ControllerError(why, status)


def fabric_links() -> list[str]:
    """Return the names of links between leaves and spines."""
    return [f"{leaf}-{spine}" for leaf in LEAVES for spine in SPINES]


def all_links() -> list[str]:
    """Return the names of all links."""
    return fabric_links() + [f"{host}-{leaf}" for host, leaf in HOSTS.items()]


def _link(
    name: str, kind: str, up: bool, *, rate_kbps: float, share: float, downwards: bool = False
) -> dict[str, Any]:
    busy, idle = _direction(rate_kbps, share), _direction(rate_kbps, share / 20)
    ab, ba = (idle, busy) if downwards else (busy, idle)
    return {"name": name, "kind": kind, "up": up, "rate_kbps": rate_kbps, "ab": ab, "ba": ba}


def _direction(rate_kbps: float, share: float) -> dict[str, Any]:
    bits_per_s = round(rate_kbps * 1000 * share, 1)
    queue = {"queue": 0, "waiting_packets": 0, "bits_per_s": bits_per_s, "dropped_per_s": 0.0}
    return {
        "bits_per_s": bits_per_s,
        "packets_per_s": round(bits_per_s / 12000, 2),
        "share": round(share, 4),
        "queued_packets": 0,
        "dropped_per_s": 0.0,
        "queues": [queue],
    }
