"""A path policy of the user's own (`entropy: file`) in simulated agents: one object a host, asked for every packet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from controller.schemes.scheme import Scheme

MakePathPolicy = Callable[[np.random.Generator, float], Any]
"""Makes a host's `host_agent.paths.PathPolicy`: all its randomness, and a packet time in seconds of agents' clocks."""
NEEDED: Final = "`entropy: file` needs your path policy: ./capstan simulate SPEC --path-policy FILE"


def asks_for_own_paths(scheme: Scheme) -> bool:
    """Return whether a class of the scheme goes by the path policy of a file."""
    return "file" in (scheme.short.entropy, scheme.long.entropy, scheme.control.entropy)


def own_path_policies(
    make: MakePathPolicy, hosts: int, seed: tuple[int, int], packet_time_s: float
) -> list[Any]:
    """Return a policy for each host. seed: of the spec, and the repeat: the same give the same.

    Raises:
        PathFileError: the file's policy cannot be made.
    """
    return [make(np.random.default_rng([*seed, host]), packet_time_s) for host in range(hosts)]
