"""The controller that a simulated run's flows ask: the code of the real one, beside a channel in simulated time."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import capstan_native

from controller.capton.admission import AdmissionControl, Answers
from controller.capton.rules import scheduler_of
from controller.capton.topology_view import SnapshotReader
from controller.schemes.scheme import Admission
from experiments.results.admissions import Admissions
from protocol.admission import AdmissionPolicy, Finished, Grant, Request
from protocol.latency import Latencies
from simulation.fabrics import SettingsError
from simulation.seen_fabric import seen_fabric
from topologies.fabric_spec import FabricSpec

CONTROL_ROUND_TRIP_US: Final = 100.0
"""From a request to its grant at the host: CAPTON's paper, Section V-C, for CAPTON and HyLine (85.2 us there and back,
at most 10 us for the scheduler)."""


def in_agents_time(policy: AdmissionPolicy, clock: float) -> AdmissionPolicy:
    """Return a policy in seconds of agents' clocks, `clock` of which are a second.

    Only the times of the control channel are seconds: what a sender may run ahead is one of packets.
    """
    return replace(
        policy,
        retry_s=policy.retry_s * clock,
        refresh_s=policy.refresh_s * clock,
        fail_safe_s=policy.fail_safe_s * clock,
    )


def one_way_ps(policy: AdmissionPolicy, round_trip_us: float | None) -> int:
    """Return how long a message takes. round_trip_us: None: CAPTON's paper's.

    Raises:
        SettingsError: requests would be repeated before they can be answered, for ever.
    """
    answer_us = CONTROL_ROUND_TRIP_US if round_trip_us is None else round_trip_us
    if answer_us >= policy.retry_s * 1e6:
        raise SettingsError(
            f"simulation.control_round_trip_us: an answer takes {answer_us:g} us, but agents ask again after "
            f"{policy.retry_s * 1e6:g} us: give less, or a longer admission.retry_s"
        )
    return round(answer_us * 1e6 / 2)


class SimulatedController:
    """Answers the agents of one run. rule: in seconds; clock: how many of agents' clocks a second is."""

    def __init__(self, rule: Admission, fabric: FabricSpec, clock: float) -> None:
        seen = seen_fabric(fabric, clock)
        reader = SnapshotReader(seen.snapshot, seen.rates)
        topology = reader.topology()
        ageing = rule.ageing_bytes_per_s and max(1, round(rule.ageing_bytes_per_s / clock))
        ours = replace(rule, finish_timeout_s=rule.finish_timeout_s * clock, ageing_bytes_per_s=ageing)
        scheduler = scheduler_of(ours, topology, reader.single_paths() if rule.paths == "one" else {})
        self.control: Final = AdmissionControl(scheduler, topology.addresses)
        self._clock: Final = clock
        self._names: Final = [host.name for host in fabric.hosts()]
        self._numbers: Final = {name: number for number, name in enumerate(self._names)}

    def serve(self, simulation: capstan_native.Simulation) -> None:
        """Read what has arrived by now, do what is due, and send what follows."""
        now = simulation.agents_now()
        for host, sequence, flow, request in simulation.take_asked():
            message = Finished(sequence, flow) if request is None else Request(sequence, flow, *request)
            self._send(simulation, self.control.receive(self._names[host], message, now))
        due = self.control.get_timer()
        if due is not None and due <= now:
            self._send(simulation, self.control.handle_timer(now))
        simulation.wake_at(self.control.get_timer())

    def admitted(self, simulation: capstan_native.Simulation) -> Admissions:
        """Return what agents have counted. What TCP retransmitted is in the flows alone."""
        totals, latencies = simulation.admission_totals(), Latencies()
        for latency_s in simulation.take_latencies():
            latencies.add(latency_s / self._clock)
        return Admissions(
            totals["flows_scheduled"],
            totals["flows_unscheduled_by_fail_safe"],
            len(latencies),
            latencies.quantile_us(0.5),
            latencies.quantile_us(0.99),
        )

    def _send(self, simulation: capstan_native.Simulation, answers: Answers) -> None:
        for host, message in answers:
            rate_bps, stamp = (message.rate_bps, message.stamp) if isinstance(message, Grant) else (0, 0)
            decision = (message.sequence, message.flow, message.answers, rate_bps, stamp)
            simulation.decide(self._numbers[host], decision)
