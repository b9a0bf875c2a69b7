"""Compiled path policies as tests make them."""

from __future__ import annotations

from typing import Any

import numpy as np

from host_agent.paths import CompiledPathPolicy
from protocol.policy import PathKind, PathSettings

PACKET_TIME_S = 0.001


def compiled(
    kind: PathKind, seed: int = 1, packet_time_s: float = PACKET_TIME_S, **parameters: Any
) -> CompiledPathPolicy:
    """Return a policy of that kind, with these parameters of `PathSettings` and the defaults of all others."""
    return CompiledPathPolicy(PathSettings(kind, **parameters), packet_time_s, np.random.default_rng(seed))
