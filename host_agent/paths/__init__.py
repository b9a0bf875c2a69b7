"""Path policies: which entropy value a packet carries. One small file each, on `base.PathPolicy`."""

from __future__ import annotations

import numpy as np

from host_agent.paths.base import PathPolicy
from host_agent.paths.flow_hash import FlowHash
from host_agent.paths.spray import Spray
from protocol.policy import PathKind

__all__ = ["FlowHash", "PathPolicy", "Spray", "path_policy"]


def path_policy(kind: PathKind, rng: np.random.Generator) -> PathPolicy:
    """The path policy of that name in a policy document."""
    return Spray(rng) if kind == "spray" else FlowHash()
