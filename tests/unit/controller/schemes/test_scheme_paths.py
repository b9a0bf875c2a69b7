"""Path policies in scheme files and policy documents: strict reading, and packet times turned into seconds."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
import pytest

from controller.schemes.loader import all_schemes, scheme_from_dict, scheme_to_dict
from controller.schemes.overrides import with_overrides
from controller.schemes.policy import policy_for
from host_agent.paths import CompiledPathPolicy
from plain.reading import PlainError
from protocol.policy import PATH_PARAMETERS, PathKind, Policy, PolicyError, ReleasePolicy


def scheme(**short: Any) -> dict[str, Any]:
    plain = {"group": "label", "entropy": "round-robin"}
    return {
        "name": "mine",
        "title": "Mine",
        "summary": "",
        "short": plain | short,
        "long": plain,
        "control": plain,
    }


@pytest.mark.parametrize("kind", get_args(PathKind))
def test_every_kind_can_be_named_in_a_scheme_and_made_by_an_agent(kind: PathKind) -> None:
    given = scheme(entropy=kind)
    if kind == "granted":  # by a controller that does
        given |= {"admission": {"paths": "one"}, "long": {"group": "label", "entropy": kind}}
    policy = policy_for(scheme_from_dict(given), 0.004, 1)
    assert policy.short.path.kind == kind
    if kind != "file":
        assert CompiledPathPolicy(policy.short.path, policy.packet_time_s, np.random.default_rng(1))
    assert Policy.from_dict(policy.to_dict()) == policy


def test_times_are_packet_times_of_the_slowest_link() -> None:
    given = scheme(entropy="flowlet", path={"gap_packet_times": 10})
    assert policy_for(scheme_from_dict(given), 0.004, 1).short.path.gap_s == pytest.approx(0.04)
    fast = policy_for(scheme_from_dict(scheme(entropy="flowlet")), 12e-6, 1)
    assert fast.short.path.gap_s == pytest.approx(500e-6, rel=0.01), "the paper's, at 1 Gbit/s"
    given = scheme(entropy="plb", path={"suspend_s": 7, "congested_packet_times": 5})
    path = policy_for(scheme_from_dict(given), 0.004, 1).short.path
    assert (path.suspend_s, path.congested_s) == (7, pytest.approx(0.02))


@pytest.mark.parametrize(
    ("short", "field", "word"),
    [
        ({"entropy": "flowlets"}, "entropy", "flowlet"),
        ({"path": {"gap_packet_times": 3}}, "path.gap_packet_times", "no parameters"),
        ({"entropy": "flowlet", "path": {"flowcell_bytes": 3}}, "path.flowcell_bytes", "gap_packet_times"),
        ({"entropy": "flowlet", "path": {"gap": 3}}, "path", "gap_packet_times"),
        ({"entropy": "flowlet", "path": {"gap_packet_times": 0}}, "path.gap_packet_times", "above 0"),
        ({"entropy": "flowcell", "path": {"flowcell_bytes": -1}}, "path.flowcell_bytes", "must be 1.."),
        ({"entropy": "flowcell", "path": {"flowcell_bytes": 1.5}}, "path.flowcell_bytes", "expected int"),
        ({"entropy": "plb", "path": {"rounds": 2, "idle_rounds": 3}}, "path.idle_rounds", "rounds (2)"),
        ({"entropy": "plb", "path": {"congested_share": 1.5}}, "path.congested_share", "at most 1"),
        ({"group": "labels"}, "group", "label"),
    ],
)
def test_what_cannot_be_is_refused_by_name(short: dict[str, Any], field: str, word: str) -> None:
    with pytest.raises(PlainError) as caught:
        scheme_from_dict(scheme(**short))
    assert caught.value.where.endswith(f"short.{field}")
    assert word in caught.value.what


@pytest.mark.parametrize(
    ("field", "value"), [("gap_s", 0.0), ("explore_packets", 0), ("flowcell_bytes", 0), ("rounds", 0)]
)
def test_agents_refuse_a_policy_that_cannot_be(field: str, value: float) -> None:
    document = policy_for(scheme_from_dict(scheme()), 0.004, 1).to_dict()
    document["short"]["path"][field] = value
    with pytest.raises(PolicyError, match=r"policy\.short\.path\."):
        Policy.from_dict(document)


def test_release_by_paths_needs_one_queue_for_a_flow() -> None:
    by_paths = {"release": {"rule": "paths", "packet_times": 32.5}}
    release = policy_for(scheme_from_dict(scheme(**by_paths)), 0.004, 1).short.release
    assert release == ReleasePolicy(pytest.approx(0.13), "paths")
    several = scheme(**by_paths) | {
        "queues": {"number": 2},
        "priority": {"thresholds_bytes": [10_000]},
    }
    with pytest.raises(PlainError) as caught:
        scheme_from_dict(several)
    assert caught.value.where.endswith("short.release.rule")


def test_experiments_may_change_parameters() -> None:
    changed = with_overrides(
        scheme_from_dict(scheme()), {"short.entropy": "flowlet", "short.path.gap_packet_times": 7}
    )
    assert changed.short.path is not None
    assert changed.short.path.gap_packet_times == 7


def test_schemes_name_paths_just_where_their_policy_does() -> None:
    naming = {"label-hash", "round-robin", "flowcell", "flowlet", "tr", "granted", "unblocked"}
    for one in all_schemes():
        assert scheme_from_dict(scheme_to_dict(one)) == one
        for kind in (one.short, one.long, one.control):
            assert (kind.group == "label") == (kind.entropy in naming), one.name


def test_all_parameters_are_those_of_some_kind() -> None:
    known = {name for names in PATH_PARAMETERS.values() for name in names}
    assert known | {"kind"} == set(policy_for(scheme_from_dict(scheme()), 1.0, 1).to_dict()["short"]["path"])
