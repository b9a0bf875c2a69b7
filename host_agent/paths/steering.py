"""What the controller says of paths: which policies this agent can follow, and what agents of a leaf share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeVar

from host_agent.paths.base import Load
from host_agent.paths.own import OwnPathPolicy
from protocol.control import PathLoad
from protocol.policy import Policy, PolicyError
from protocol.underlay import is_stamp

T = TypeVar("T")
_MOST_FLOWS: Final = 1 << 31
"""Short flows on a path of which other agents speak: more cannot be."""


def check(policy: Policy, own: OwnPathPolicy | None) -> bool:
    """Return True if *policy* has a class whose path policy is the operator's own file.

    Raises:
        PolicyError: it has, and this agent was not started with one.
    """
    classes = [name for name in ("short", "long", "control") if getattr(policy, name).path.kind == "file"]
    if classes and own is None:
        raise PolicyError(
            f"policy.{classes[0]}.path.kind: is 'file': this agent was started without --path-policy FILE"
        )
    return bool(classes)


def path_load(load: Load) -> PathLoad:
    """Return *load* as the controller's channel carries it."""
    delays = {leaf: _by_text(known) for leaf, known in load.delays_s.items()}
    return PathLoad(_by_text(load.short_flows), delays)


def load_of(load: PathLoad) -> Load:
    """Return what the other agents of our leaf have together; stamps that are none are left out."""
    counts = _by_stamp(load.short_flows)
    flows = {stamp: max(0, min(count, _MOST_FLOWS)) for stamp, count in counts.items()}
    return Load(flows, {leaf: _by_stamp(known) for leaf, known in load.delays_s.items()})


def _by_text(values: Mapping[int, T]) -> dict[str, T]:
    return {str(stamp): value for stamp, value in values.items()}


def _by_stamp(values: Mapping[str, T]) -> dict[int, T]:
    """Return stamps as numbers; what is none is left out."""
    return {
        int(stamp): value for stamp, value in values.items() if stamp.isdecimal() and is_stamp(int(stamp))
    }
