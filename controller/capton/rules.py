"""The scheduler that a scheme's admission rule asks for. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from controller.capton.admission import FlowScheduler
from controller.capton.fabric import VirtualFabric
from controller.capton.scheduler import Parameters, Scheduler
from controller.capton.single_path import Pair, SinglePath, SinglePathScheduler
from controller.capton.topology_view import TopologyView
from controller.schemes.scheme import Admission

Paths = Mapping[Pair, tuple[SinglePath, ...]]
"""By pair of leaves."""


def scheduler_of(rule: Admission, seen: TopologyView, paths: Paths) -> FlowScheduler:
    """Return the scheduler of a rule for a fabric. paths: for rules that give each flow one of them.

    Raises:
        ValueError: a fabric that cannot be scheduled.
    """
    parameters = Parameters(rule.least_share, rule.ageing_bytes_per_s, rule.finish_timeout_s)
    if rule.paths == "one":
        return SinglePathScheduler(seen.hosts, paths, parameters)
    return Scheduler(VirtualFabric(seen.hosts, seen.groups), parameters)
