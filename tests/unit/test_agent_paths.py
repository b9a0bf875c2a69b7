"""Path policies: entropy values are within their range, even, and as constant as the policy says."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from host_agent.paths import path_policy
from protocol.policy import PathKind
from protocol.underlay import EV_FIRST, EV_LAST

KINDS = get_args(PathKind)


@pytest.mark.parametrize("kind", KINDS)
@given(hashed=st.integers(0, 2**32 - 1), seed=st.integers(0, 2**32 - 1))
def test_values_are_entropy_values(kind: PathKind, hashed: int, seed: int) -> None:
    policy = path_policy(kind, np.random.default_rng(seed))
    assert all(EV_FIRST <= policy.entropy(hashed, 1426, 0.0) <= EV_LAST for _ in range(50))


@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_repeats_a_run(kind: PathKind) -> None:
    first, second = (path_policy(kind, np.random.default_rng(5)) for _ in range(2))
    assert [first.entropy(9, 100, 0.0) for _ in range(3000)] == [
        second.entropy(9, 100, 0.0) for _ in range(3000)
    ]


@given(st.integers(0, 2**32 - 1))
def test_flow_hash_keeps_one_value(hashed: int) -> None:
    policy = path_policy("flow-hash", np.random.default_rng(1))
    assert len({policy.entropy(hashed, size, size / 7) for size in range(40, 1400, 50)}) == 1


def test_flow_hash_tells_flows_apart() -> None:
    policy = path_policy("flow-hash", np.random.default_rng(1))
    values = {
        policy.entropy(hashed, 100, 0.0)
        for hashed in np.random.default_rng(2).integers(2**32, size=500).tolist()
    }
    assert len(values) > 480


def test_spray_is_even() -> None:
    policy = path_policy("spray", np.random.default_rng(3))
    drawn = np.array([policy.entropy(1, 1426, 0.0) for _ in range(32_000)])
    counts = np.histogram(drawn, bins=16, range=(EV_FIRST, EV_LAST + 1))[0]
    chi_square = float(((counts - 2000.0) ** 2 / 2000.0).sum())
    assert chi_square < 44.3, "15 degrees of freedom: exceeded once in 10 000 seeds"
    assert len(set(drawn.tolist())) > 20_000
