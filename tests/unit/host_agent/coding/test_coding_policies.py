"""Rules of the coding policies against independent computation."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from host_agent.coding.redundancy import flow_weight, htpc_rule, repairs_for
from protocol.policy import CodingPolicy, Policy, PolicyError, Weight

weights = st.builds(
    lambda full, more, fast: Weight(full, full + more, fast),
    st.integers(0, 200_000),
    st.integers(1, 900_000),
    st.integers(0, 5),
)


def equation_5(k: int, p: Fraction, weight: Weight, sent: int, window: int) -> int:
    """Compute HTPC's r anew, in exact arithmetic, for k packets of a window."""
    span = weight.none_bytes - weight.full_bytes
    w = max(Fraction(0), min(Fraction(1), Fraction(weight.none_bytes - sent, span)))
    x = w * window + (1 - w) * weight.fast_retransmit
    return max(0, math.ceil((x / (1 - p) - window) * Fraction(k, window)))


@given(
    k=st.integers(1, 64),
    more=st.integers(0, 64),
    percent=st.integers(0, 60),
    weight=weights,
    sent=st.integers(0, 2_000_000),
)
def test_htpc_rule_is_its_equations(k: int, more: int, percent: int, weight: Weight, sent: int) -> None:
    r = htpc_rule(k, percent / 100, weight, sent, k + more)
    assert r == equation_5(k, Fraction(percent, 100), weight, sent, k + more)


@pytest.mark.parametrize(
    ("k", "window", "p", "sent", "r"),
    [
        (10, 10, 0.2, 0, 3),  # short: 10 / 0.8 = 12.5
        (10, 10, 0.2, 100_000, 3),  # still, at T_s
        (10, 10, 0.2, 550_000, 0),  # half-way: x = 6.5, 8.125 arrive of 10 anyhow
        (3, 3, 0.2, 2_000_000, 1),  # long: a window of T_fr
        (2, 2, 0.0, 2_000_000, 1),  # below T_fr packets even without losses
        (4, 4, 0.2, 2_000_000, 0),
        (2, 20, 0.2, 2_000_000, 0),  # a part of a large window is no tiny window
        (5, 10, 0.5, 0, 5),  # half a window, half its repairs
        (32, 32, 0.5, 0, 32),
    ],
)
def test_htpc_rule_by_hand(k: int, window: int, p: float, sent: int, r: int) -> None:
    assert htpc_rule(k, p, Weight(), sent, window) == r


@given(weight=weights, sent=st.integers(0, 2_000_000), more=st.integers(0, 100_000))
def test_the_weight_falls_from_one_to_nought(weight: Weight, sent: int, more: int) -> None:
    w = flow_weight(weight, sent)
    assert 0.0 <= flow_weight(weight, sent + more) <= w <= 1.0
    assert (w == 1.0) == (sent <= weight.full_bytes)
    assert (w == 0.0) == (sent >= weight.none_bytes)


@given(k=st.integers(1, 128), p=st.floats(0, 0.6), sent=st.integers(0, 1 << 40))
def test_corrective_makes_one_repair_whatever_happens(k: int, p: float, sent: int) -> None:
    coding = CodingPolicy(max_overhead=8.0, code="xor", redundancy="one-per-unit", unit="window", max_k=128)
    assert repairs_for(coding, p, k, sent_bytes=sent) == 1


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"redundancy": "htpc"}, "weight"),
        ({"weight": {}}, "weight"),
        ({"redundancy": "htpc", "weight": {"full_bytes": 5, "none_bytes": 5}}, "weight.none_bytes"),
        ({"redundancy": "htpc", "weight": {"fast_retransmit": 129}}, "weight.fast_retransmit"),
        ({"redundancy": "adaptive", "code": "xor"}, "redundancy"),
        ({"redundancy": "adaptive", "code": "ldpc"}, "redundancy"),
        ({"sampling_s": 0.1}, "sampling_s"),
        ({"sampling_s": 0.0, "estimator": "loss-rate"}, "sampling_s"),
        ({"unit": "windows"}, "unit"),
        ({"estimator": "ecn"}, "estimator"),
    ],
)
def test_codings_that_cannot_be_are_refused_by_field(change: dict[str, object], field: str) -> None:
    document = {"version": 1, "scheme": "x", "short": {"coding": change}}
    with pytest.raises(PolicyError, match=rf"policy\.short\.coding\.{field.replace('.', '[.]')}\b"):
        Policy.from_dict(document)


def test_both_classes_share_one_estimator() -> None:
    document = {
        "version": 1,
        "scheme": "x",
        "short": {"coding": {}},
        "long": {"coding": {"estimator": "loss-rate"}},
    }
    with pytest.raises(PolicyError, match="one estimator serves both"):
        Policy.from_dict(document)
