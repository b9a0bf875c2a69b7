"""Path policies: which entropy value or path label a packet carries. One small file each, on `base.PathPolicy`."""

from __future__ import annotations

import numpy as np

from host_agent.paths.base import Flow, Load, PathPolicy, Report, Route
from host_agent.paths.flow_hash import FlowHash
from host_agent.paths.flowcell import Flowcell
from host_agent.paths.flowlet import Flowlet
from host_agent.paths.granted import Granted
from host_agent.paths.label_hash import LabelHash
from host_agent.paths.own import OwnPathPolicy
from host_agent.paths.plb import Plb
from host_agent.paths.reps import Reps
from host_agent.paths.round_robin import RoundRobin
from host_agent.paths.spray import Spray
from host_agent.paths.tr import Tr
from protocol.policy import PathPolicy as PathSettings

__all__ = ["Flow", "Load", "PathPolicy", "Report", "Route", "path_policy"]


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
