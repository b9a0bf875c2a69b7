"""All path policies of an agent, as the controller's documents say; what they choose from and learn is compiled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeVar

import capstan_native
import numpy as np
from capstan_native import Departures
from capstan_native import FlowRef as OwnFlow

from host_agent.paths import path_policy
from host_agent.paths.base import Load, PathPolicy
from host_agent.paths.own import OwnPathPolicy
from protocol.control import PathLoad
from protocol.policy import DEFAULT_POLICY, Policy, PolicyError
from protocol.policy import PathPolicy as PathSettings
from protocol.underlay import is_stamp

__all__ = ["Departures", "OwnFlow", "Steering"]

T = TypeVar("T")
_NONE: Final = PathSettings("flow-hash")
_MOST_FLOWS: Final = 1 << 31
"""Short flows on a path of which other agents speak: more cannot be."""


class Steering(capstan_native.Steering):
    """``policies``: by traffic class; the same object where two classes have the same."""

    def __init__(self, rng: np.random.Generator, own: OwnPathPolicy | None = None) -> None:
        self._rng = rng
        self._own = own
        self.policies: tuple[PathPolicy, ...] = ()
        self.set_policy(DEFAULT_POLICY)

    def check(self, policy: Policy) -> None:
        """Raises PolicyError for a document that asks for what this agent was not started with."""
        kinds = {name: getattr(policy, name).path.kind for name in ("short", "long", "control")}
        missing = [name for name, kind in kinds.items() if kind == "file" and self._own is None]
        if missing:
            raise PolicyError(
                f"policy.{missing[0]}.path.kind: is 'file': this agent was started without --path-policy FILE"
            )

    def set_policy(self, policy: Policy) -> None:
        """Begin anew, with the policies of this document, which `check` let pass."""
        classes = (_NONE, policy.short.path, policy.long.path, policy.control.path)
        distinct = list(dict.fromkeys(classes))
        made = [path_policy(one, policy.packet_time_s, self._rng, self._own) for one in distinct]
        serves = [distinct.index(one) for one in classes]
        self.set_policies(made, serves)
        self.policies = tuple(made[place] for place in serves)

    def path_load(self, now: float) -> PathLoad | None:
        """What the other agents of our leaf are to know of us; None: no policy shares anything."""
        load = self.load(now)
        if load is None:
            return None
        delays = {leaf: _by_text(known) for leaf, known in load.delays_s.items()}
        return PathLoad(_by_text(load.short_flows), delays)

    def set_path_load(self, load: PathLoad, now: float) -> None:
        """What the other agents of our leaf have together, from now on."""
        counts = _by_stamp(load.short_flows)
        flows = {stamp: max(0, min(count, _MOST_FLOWS)) for stamp, count in counts.items()}
        delays = {leaf: _by_stamp(known) for leaf, known in load.delays_s.items()}
        self.set_load(Load(flows, delays), now)


def _by_text(values: Mapping[int, T]) -> dict[str, T]:
    return {str(stamp): value for stamp, value in values.items()}


def _by_stamp(values: Mapping[str, T]) -> dict[int, T]:
    """Stamps as numbers; what is none is left out."""
    return {
        int(stamp): value for stamp, value in values.items() if stamp.isdecimal() and is_stamp(int(stamp))
    }
