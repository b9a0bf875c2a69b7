"""A scheme as the simulator takes it: the agents' policy document, the groups of leaves, and the queues of ports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from controller.schemes import loader
from controller.schemes.overrides import with_overrides
from controller.schemes.policy import policy_for
from controller.schemes.scheme import ClassScheme, Scheme
from experiments.spec.spec import SchemeChoice, Spec
from plain.overrides import merge
from protocol.policy import Policy, PolicyError
from simulation.admission import in_agents_time, one_way_ps
from simulation.fabrics import SettingsError

LEAST_PACKET_TIME_S: Final = 0.0006
"""Agents have times that no packet time shortens (5 ms for feedback), for hosts' clocks are no better. Where packets
are faster than this, agents' clocks go faster by as much, so that those times mean what they mean in a lab."""


@dataclass(frozen=True, slots=True)
class SimulatedScheme:
    """policy: in seconds of agents' clocks, `clock` of which are a second. groups: of plain, short, long and control
    traffic, while short flows are present at a leaf and while not. queues, room: of every port, None: as the link's.
    control_delay_ps, control_loss: of a message to or from the controller that flows ask."""

    scheme: Scheme
    policy: Policy
    clock: float
    groups: tuple[tuple[str, str], ...]
    queues: int
    room: int | None
    control_delay_ps: int = 0
    control_loss: float = 0.0

    def central(self) -> dict[str, Any]:
        """Return what a controller decides while flows run, as `capstan_native.Simulation` takes it."""
        scheme, mode, partition = self.scheme, self.scheme.mode, self.scheme.partition
        rule = None if mode is None else (mode.sampling_packet_times, mode.quiet_intervals, mode.longest_hold)
        split = None
        if partition is not None:
            times = (
                partition.deadline_packet_times,
                partition.burst_packets,
                partition.sampling_packet_times,
            )
            split = (*times, partition.samples)
        shares = any(of_class.entropy == "tr" for of_class in (scheme.short, scheme.long, scheme.control))
        return {
            "mode": rule,
            "partition": split,
            "shares": shares,
            "control_delay_ps": self.control_delay_ps,
            "control_loss": self.control_loss,
        }


def simulated_scheme(spec: Spec, choice: SchemeChoice) -> SimulatedScheme:
    """Return a spec's scheme with its overrides.

    Raises:
        SettingsError: what a simulation has none of yet, or times that no agent takes.
        SchemeError, PlainError: as when the scheme is read.
    """
    overrides: Mapping[str, Any] = merge(spec.policy, choice.overrides)
    scheme = with_overrides(loader.load(choice.name), overrides)
    if spec.keep_learnt and scheme.priority is not None and scheme.priority.prediction:
        raise SettingsError(
            f"scheme {choice.label}: `keep_learnt` (what one run has learnt is the next one's) is not simulated yet",
            remedy="./capstan run has it",
        )
    clock = max(1.0, LEAST_PACKET_TIME_S / spec.packet_time_s)
    try:
        policy = policy_for(scheme, spec.packet_time_s * clock, version=1)
    except PolicyError as error:
        raise SettingsError(
            f"scheme {choice.label}: with a packet time of {spec.packet_time_s * 1e3:.4g} ms, {error}",
            remedy="give faster links",
        ) from None
    queues, asking = scheme.queues, policy.admission
    delay_ps = 0
    if asking is not None:
        try:
            delay_ps = one_way_ps(asking, spec.simulation.control_round_trip_us)
        except SettingsError as error:
            raise SettingsError(f"scheme {choice.label}: {error}") from None
        asking = in_agents_time(asking, clock)
    return SimulatedScheme(
        scheme,
        replace(policy, short_limit_bytes=scheme.limit_bytes, admission=asking),
        clock,
        (("hash", "hash"), *(_groups(of_class) for of_class in (scheme.short, scheme.long, scheme.control))),
        1 if queues is None else queues.number,
        None if queues is None else queues.buffer_packets,
        delay_ps,
        0.0 if asking is None else spec.simulation.control_loss or 0.0,
    )


def _groups(of_class: ClassScheme) -> tuple[str, str]:
    return of_class.group_in("on"), of_class.group_in("off")
