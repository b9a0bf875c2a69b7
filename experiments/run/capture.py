"""A window of a run on real switches, captured at the far end of every link (docs/packet-traces.md)."""

from __future__ import annotations

import math
import socket
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Self

from capstan_client.errors import CapstanError
from experiments.results.captured import CapturedFrame, CapturedLink, CapturedRun
from experiments.results.captured_trace import captured_trace
from experiments.results.packet_trace import MOST_HOPS, PacketTrace
from experiments.run.drain import DRAIN_LIMIT_S
from experiments.run.packet_rings import PacketRing
from experiments.spec.spec import Spec
from topologies.lab import Lab
from topologies.links import FRAME_BYTES
from workloads.plan import Plan

_SLOTS: Final = 2 * MOST_HOPS
"""Of all rings together, 77 MB: nodes do not see equally many packets."""
_POLL_S: Final = 0.05
_STILL_S: Final = 1.0
_LEAD_MS: Final = 20.0
"""Before the first short flow: starting the rings of all nodes takes some of it."""


class CaptureError(CapstanError, RuntimeError):
    """A run cannot be recorded, or nothing was; the text says why."""


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """Which run was recorded. modes: changes of leaves' modes, as its result has them."""

    spec: Spec
    scheme: str
    repeat: int
    plan: Plan
    modes: Sequence[Mapping[str, Any]]


@dataclass(slots=True)
class LabRecorder:
    """Records the window of a run from `from_ms` on, for `for_ms` milliseconds, MOST_HOPS hops at most.

    from_ms: None: from the plan's first short flow on. trace: of the last run that was recorded; a run that is done
    anew is recorded anew. problem: why there is none.
    """

    from_ms: float | None
    for_ms: float
    trace: PacketTrace | None = field(default=None, init=False)
    problem: CaptureError | None = field(default=None, init=False)
    _captures: dict[str, int] = field(default_factory=dict, init=False)
    _problems: dict[str, CaptureError] = field(default_factory=dict, init=False)
    _begin_ms: float = field(default=0.0, init=False)

    def of(self, lab: Lab, plan: Plan) -> Capture:
        """Return the capture of a run of this plan on this lab. Raises CaptureError."""
        self._begin_ms = first_short_ms(plan) if self.from_ms is None else self.from_ms
        return Capture(lab, self._begin_ms / 1e3, self.for_ms / 1e3)

    def notices(self) -> list[str]:
        """Return what people must know of the runs that were recorded, and of those that could not be."""
        notices = [
            f"run 1 of {label} was not recorded packet by packet: {problem}"
            for label, problem in self._problems.items()
        ]
        if self._captures:
            notices.append(
                f"run 1 of {', '.join(self._captures)} was recorded packet by packet from {self._begin_ms:g} ms on for "
                f"{self.for_ms:g} ms ({sum(self._captures.values())} captures), which took processor time"
            )
        return notices

    def read(self, capture: Capture, label: str) -> Taken | None:
        """Return what was captured of a run of `label` that is over, once its last packets have come.

        None where nothing was: `problem` says why.
        """
        self.trace = self.problem = None
        self._captures.pop(label, None)
        self._problems.pop(label, None)
        capture.settle()
        try:
            return capture.taken()
        except CaptureError as error:
            self._have_problem(label, error)
            return None

    def take(self, taken: Taken, recorded: RecordedRun) -> None:
        """Make the recording of a run that is over."""
        run = CapturedRun(
            spec=recorded.spec.name,
            scheme=recorded.scheme,
            repeat=recorded.repeat,
            plan=recorded.plan,
            hosts=recorded.spec.fabric.hosts(),
            links=taken.links,
            begin_ps=round(self._begin_ms * 10**9),
            begin_ns=taken.begin_ns,
            end_ns=taken.end_ns,
            monotonic_ns=taken.monotonic_ns,
            modes=recorded.modes,
            most_hops=MOST_HOPS,
        )
        self.trace = captured_trace(taken.frames, run, cut=taken.cut)
        if self.trace is None:
            nothing = CaptureError(
                f"no packet was under way from {self._begin_ms:g} ms on for {self.for_ms:g} ms",
                remedy="record another window",
            )
            self._have_problem(recorded.scheme, nothing)
            return
        self._captures[recorded.scheme] = len(taken.frames)

    def _have_problem(self, label: str, problem: CaptureError) -> None:
        self.problem = self._problems[label] = problem


def first_short_ms(plan: Plan) -> float:
    """Return from when on a plan's run has something to show, ms: its first short flow, else its first flow."""
    starts_s = [flow.start_s for flow in plan.flows if flow.traffic_class == "short"]
    first_s = min(starts_s or [flow.start_s for flow in plan.flows])
    return max(0.0, math.floor(first_s * 1e3) - _LEAD_MS)


@dataclass(frozen=True, slots=True)
class Taken:
    """What a capture has. Times are Unix time, ns; monotonic_ns: where the monotonic clock has 0.

    cut: a ring was full before the window was over; `end_ns` is then when it was.
    """

    links: Sequence[CapturedLink]
    frames: Sequence[CapturedFrame]
    begin_ns: int
    end_ns: int
    monotonic_ns: int
    cut: bool


class Capture:
    """Captures from `from_s` seconds after a run's start on, for `for_s`. Use as a context manager.

    The kernel copies headers into rings meanwhile; they are read when the run is over.
    """

    def __init__(self, lab: Lab, from_s: float, for_s: float) -> None:
        self._from_s, self._for_s = from_s, for_s
        self._rings: dict[str, PacketRing] = {}
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._window_ns: tuple[int, int] | None = None
        self._error: OSError | None = None
        self._links, names = _links(lab)
        slots = _SLOTS // len(names)
        self._rows: dict[tuple[str, int], int] = {}
        try:
            for node, interfaces in names.items():
                ring, indices = lab.inside(node, partial(_opened, slots, tuple(interfaces)))
                self._rings[node] = ring
                for interface, row in interfaces.items():
                    self._rows[node, indices[interface]] = row
        except OSError as error:
            self.close()
            raise CaptureError(
                f"packets of the lab cannot be captured: {error.strerror}",
                remedy="it takes CAP_NET_RAW and some 80 MB: run it without recording packets",
            ) from None
        self._monotonic_ns = time.time_ns() - time.monotonic_ns()

    def begin(self, epoch: float) -> None:
        """Capture the window of a run that starts at this monotonic time."""
        self._thread = threading.Thread(target=self._work, args=(epoch,), name="capstan-capture", daemon=True)
        self._thread.start()

    def settle(self) -> None:
        """Return when no packet was seen for a second, the window is over, or after 30 s of packets.

        The last flow is over when its bytes have come; its connection closes behind that, and agents count it.
        """
        deadline = time.monotonic() + DRAIN_LIMIT_S
        still_at = time.monotonic() + _STILL_S
        while (
            self._thread is not None
            and self._thread.is_alive()
            and time.monotonic() < min(still_at, deadline)
        ):
            time.sleep(_POLL_S)
            if any(ring.grew() for ring in self._rings.values()):
                still_at = time.monotonic() + _STILL_S

    def taken(self) -> Taken:
        """End the capture and return what it has, for a run that is over. Raises CaptureError."""
        self._end()
        if self._error is not None:
            raise CaptureError(f"packets of the lab cannot be captured: {self._error.strerror}")
        if self._window_ns is None:
            raise CaptureError(
                f"the run was over before {self._from_s * 1e3:g} ms", remedy="record an earlier window"
            )
        begin_ns, end_ns = self._window_ns
        frames: list[CapturedFrame] = []
        cut = False
        for node, ring in self._rings.items():
            last_ns = begin_ns
            for frame in ring.frames():
                last_ns = frame.at_ns
                row = self._rows.get((node, frame.interface))
                if row is not None:
                    frames.append(CapturedFrame(frame.at_ns, row, frame.head, frame.size))
            if ring.missed() and last_ns < end_ns:
                cut, end_ns = True, last_ns
        return Taken(self._links, frames, begin_ns, end_ns, self._monotonic_ns, cut)

    def close(self) -> None:
        """Give everything back."""
        self._end()
        for ring in self._rings.values():
            ring.close()
        self._rings.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _end(self) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _work(self, epoch: float) -> None:
        begin, end = epoch + self._from_s, epoch + self._from_s + self._for_s
        if self._over.wait(max(0.0, begin - time.monotonic())):
            return
        try:
            for ring in self._rings.values():
                ring.start()
            begun_ns = time.time_ns()
            self._over.wait(max(0.0, end - time.monotonic()))
            stopped_ns = time.time_ns()
            for ring in self._rings.values():
                ring.stop()
        except OSError as error:
            self._error = error
            return
        # what came while rings were started and stopped one after the other is left out
        self._window_ns = begun_ns, stopped_ns


def _links(lab: Lab) -> tuple[list[CapturedLink], dict[str, dict[str, int]]]:
    """Return all directions of links, and the rows of those that end at each node by its interface."""
    links: list[CapturedLink] = []
    rows: dict[str, dict[str, int]] = {}
    for link in lab.net.links:
        for near, far in ((link.intf1, link.intf2), (link.intf2, link.intf1)):
            rows.setdefault(far.node.name, {})[far.name] = len(links)
            shape, queues = lab.port(near.name)
            links.append(
                CapturedLink(
                    source=near.node.name,
                    destination=far.node.name,
                    bps=round((shape.rate_mbps or 0) * 1e6),
                    delay_ps=round(shape.delay_ms * 10**9) if lab.has_netem else 0,
                    room=queues * shape.full_packets(FRAME_BYTES),
                )
            )
    return links, rows


def _opened(slots: int, interfaces: Iterable[str]) -> tuple[PacketRing, dict[str, int]]:
    """Return a ring of the namespace that this thread is in, and the indices of its interfaces."""
    return PacketRing(slots), {name: socket.if_nametoindex(name) for name in interfaces}
