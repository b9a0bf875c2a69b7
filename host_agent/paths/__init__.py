"""Path policies: which entropy value or path label a packet carries. Compiled, a small file each in
native/agent/src/paths; one of the operator's own in Python (`own`)."""

from __future__ import annotations

import numpy as np
from capstan_native import (
    CompiledPathPolicy,
    Flowcell,
    FlowHash,
    Flowlet,
    Granted,
    LabelHash,
    Plb,
    Reps,
    RoundRobin,
    Spray,
    Tr,
    digit_reversed,
)

from host_agent.paths.base import Flow, Load, PathPolicy, Report, Route
from host_agent.paths.own import OwnPathPolicy
from protocol.policy import PathSettings

__all__ = [
    "Flow",
    "FlowHash",
    "Flowcell",
    "Flowlet",
    "Granted",
    "LabelHash",
    "Load",
    "PathPolicy",
    "Plb",
    "Report",
    "Reps",
    "RoundRobin",
    "Route",
    "Spray",
    "Tr",
    "digit_reversed",
    "path_policy",
]

PathPolicy.register(CompiledPathPolicy)


def path_policy(
    settings: PathSettings,
    packet_time_s: float,
    rng: np.random.Generator,
    own: OwnPathPolicy | None = None,
) -> PathPolicy:
    """The path policy that a policy document asks for. packet_time_s: of 1500 B on the slowest fabric link.

    own: of the file that the agent was started with; `Steering.check` sees to it that there is one.
    """
    match settings.kind:
        case "spray":
            return Spray(rng)
        case "flow-hash":
            return FlowHash()
        case "label-hash":
            return LabelHash()
        case "round-robin":
            return RoundRobin(rng)
        case "granted":
            return Granted()
        case "flowcell":
            return Flowcell(settings.flowcell_bytes)
        case "flowlet":
            return Flowlet(rng, settings.gap_s)
        case "file":
            assert own is not None
            return own(rng, packet_time_s)
        case "tr":
            return Tr(packet_time_s)
        case "reps":
            return Reps(rng, settings.congested_s, settings.explore_packets, settings.freeze_s)
        case "plb":
            return Plb(
                rng,
                settings.congested_s,
                settings.congested_share,
                settings.rounds,
                settings.idle_rounds,
                settings.suspend_s,
            )
