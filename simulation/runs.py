"""A run from settings and flows to its result."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import capstan_native
import numpy as np
from numpy.typing import NDArray

from simulation.drops import drops_by_hop
from simulation.fabrics import PS_PER_S, SettingsError
from simulation.settings import Settings
from simulation.trace import LATEST_START_NS, Trace

_EVENTS_A_STEP: Final = 2_000_000
"""Between looks at Ctrl-C and reports of progress: half a second."""
PS_PER_NS: Final = 1000


@dataclass(frozen=True, slots=True)
class Totals:
    """Counts of a whole run; processor_s: time of the simulator alone."""

    events: int
    data_packets_sent: int
    data_packets_dropped: int
    acknowledgements_dropped: int
    packets_dropped: int
    timeouts: int
    duplicates: int
    most_packets: int
    most_flows: int
    simulated_s: float
    processor_s: float


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """What came of each flow, in the trace's order, and of the fabric.

    completed_ps: from a flow's start until its last acknowledgement is at the sender; delivered_ps: until its last byte
    is at the receiver. drops: packets by hop.
    """

    completed_ps: NDArray[np.int64]
    delivered_ps: NDArray[np.int64]
    sent: NDArray[np.int64]
    resent: NDArray[np.int64]
    timeouts: NDArray[np.int64]
    totals: Totals
    links: list[capstan_native.SimulatedLink]
    drops: Mapping[str, int]


def run(settings: Settings, trace: Trace, progress: Callable[[int], None] = lambda finished: None) -> Result:
    """Simulate all flows to their ends; return the result. progress: called with the number of finished flows.

    Raises:
        SettingsError: settings or flows that cannot be, or that carry nothing; the text says which and why.
    """
    late = np.flatnonzero(trace.starts_ns > LATEST_START_NS)
    if len(late):
        raise SettingsError(
            f"flow {late[0]} starts at {trace.starts_ns[late[0]]} ns: give at most {LATEST_START_NS} ns"
        )
    starts_ps = trace.starts_ns * PS_PER_NS
    try:
        simulation = capstan_native.Simulation(
            settings.to_native(),
            settings.transport.to_native(),
            starts_ps.tolist(),
            trace.sources.tolist(),
            trace.destinations.tolist(),
            trace.sizes.tolist(),
            trace.levels.tolist(),
        )
        begin = time.process_time()
        while not simulation.run(_EVENTS_A_STEP):
            progress(simulation.finished())
        processor_s = time.process_time() - begin
    except (ValueError, OverflowError) as error:
        raise SettingsError(str(error)) from None
    flows = simulation.flows()
    totals, links = simulation.totals(), simulation.links()
    return Result(
        np.array(flows["completed_ps"], dtype=np.int64) - starts_ps,
        np.array(flows["delivered_ps"], dtype=np.int64) - starts_ps,
        np.array(flows["sent"], dtype=np.int64),
        np.array(flows["resent"], dtype=np.int64),
        np.array(flows["timeouts"], dtype=np.int64),
        Totals(**totals, simulated_s=simulation.now_ps() / PS_PER_S, processor_s=processor_s),
        links,
        drops_by_hop(links, totals),
    )
