"""Verdicts on claims: by whole intervals only, and never on figures that must not be used."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.results.claims import RATIOS, compared, figure_text, find, heading, verdict_text
from experiments.spec.spec import Comparison


def schemes(measure: str, ratio: float | None, low: float, high: float, **more: Any) -> dict[str, Any]:
    name = RATIOS[measure]  # type: ignore[index]
    against = {"b": {} if ratio is None else {name: ratio, f"{name}_ci": [low, high]}}
    return {"a": {"against": against, "short": {"n": 30}} | more, "b": {"against": {}, "short": {"n": 40}}}


@given(
    measure=st.sampled_from(["short-mean", "short-p99", "long-mean"]),
    low=st.floats(0.01, 3),
    width=st.floats(0, 2),
    limit=st.none() | st.floats(0.05, 2),
)
def test_a_time_is_judged_by_its_whole_interval(
    measure: Any, low: float, width: float, limit: float | None
) -> None:
    high = low + width
    verdict = find(Comparison(measure, "a", "b", at_most=limit), schemes(measure, low, low, high)).verdict
    bound = 1.0 if limit is None else limit
    if verdict == "seen":
        assert high <= bound
    elif verdict == "not seen":
        assert low > bound
    else:
        assert low <= bound <= high


@given(low=st.floats(0.01, 3), width=st.floats(0, 2))
def test_goodput_is_better_where_it_is_more(low: float, width: float) -> None:
    comparison = Comparison("long-goodput", "a", "b")
    verdict = find(comparison, schemes("long-goodput", low, low, low + width)).verdict
    assert verdict == ("seen" if low > 1 else "not seen" if low + width < 1 else "open")


def test_a_claimed_goodput_is_a_floor() -> None:
    comparison = Comparison("long-goodput", "a", "b", at_least=1.5)
    assert find(comparison, schemes("long-goodput", 1.8, 1.6, 2.0)).verdict == "seen"
    assert find(comparison, schemes("long-goodput", 1.3, 1.2, 1.4)).verdict == "not seen"
    assert find(comparison, schemes("long-goodput", 1.5, 1.2, 1.6)).verdict == "open"


@given(low=st.floats(0.01, 3), width=st.floats(0, 2), least=st.floats(0.1, 1), more=st.floats(0.01, 1))
def test_a_claimed_range_is_seen_with_the_whole_interval_in_it(
    low: float, width: float, least: float, more: float
) -> None:
    comparison = Comparison("short-mean", "a", "b", between=(least, least + more))
    verdict = find(comparison, schemes("short-mean", low, low, low + width)).verdict
    inside = least <= low and low + width <= least + more
    outside = low + width < least or low > least + more
    beyond = not inside and low + width < least and least + more <= 1
    assert verdict == ("seen" if inside else "more" if beyond else "not seen" if outside else "open")
    assert compared(asdict(comparison)).endswith(f"claimed {least:g} to {least + more:g}")


@pytest.mark.parametrize(
    ("between", "span", "verdict"),
    [
        ((1.3, 1.4), (1.5, 1.6), "more"),
        ((1.3, 1.4), (1.35, 1.6), "open"),
        ((1.3, 1.4), (1.1, 1.2), "not seen"),
        ((1, 1.45), (1.5, 1.6), "more"),
        ((0.9, 1.1), (1.2, 1.3), "not seen"),
        ((0.9, 1.1), (0.7, 0.8), "not seen"),
        ((0.6, 0.7), (0.8, 0.9), "not seen"),
    ],
)
def test_goodput_beyond_a_claimed_range_is_more_but_not_where_schemes_are_said_to_be_alike(
    between: tuple[float, float], span: tuple[float, float], verdict: str
) -> None:
    comparison = Comparison("long-goodput", "a", "b", between=between)
    assert find(comparison, schemes("long-goodput", span[0], *span)).verdict == verdict


def test_a_time_below_a_range_around_1_is_not_alike() -> None:
    comparison = Comparison("short-mean", "a", "b", between=(0.9, 1.1))
    assert find(comparison, schemes("short-mean", 0.7, 0.6, 0.8)).verdict == "not seen"


@pytest.mark.parametrize("measure", ["short-mean", "long-goodput"])
def test_a_tie_is_neither_sooner_nor_later(measure: Any) -> None:
    limit = {"at_least": 1.0} if measure == "long-goodput" else {"at_most": 1.0}
    for span in ((1.0, 1.0), (0.02, 1.0), (1.0, 1.0)):
        assert find(Comparison(measure, "a", "b", **limit), schemes(measure, 1.0, *span)).verdict == "open"


def test_equal_schemes_are_no_proof() -> None:
    assert find(Comparison("short-mean", "a", "b"), schemes("short-mean", 1.0, 1.0, 1.0)).verdict == "open"


@pytest.mark.parametrize(
    ("comparison", "given", "why"),
    [
        (Comparison("short-mean", "a", "c"), schemes("short-mean", 1, 1, 1), "c was not run"),
        (
            Comparison("short-p99", "a", "b"),
            schemes("short-p99", None, 1, 1),
            "30 flows are too few for a p99",
        ),
        (
            Comparison("long-goodput", "a", "b"),
            schemes("long-goodput", None, 1, 1),
            "there are no such long flows",
        ),
        (
            Comparison("short-mean", "a", "b"),
            schemes("short-mean", 0.5, 0.4, 0.6, cpu_limited=True),
            "a limited by the processor",
        ),
    ],
)
def test_without_a_usable_figure_the_reason_is_said(comparison: Comparison, given: Any, why: str) -> None:
    finding = find(comparison, given)
    assert finding.verdict == "no figure"
    assert finding.why == why
    assert why in verdict_text(finding.to_dict())


def test_flows_that_are_there_are_not_said_to_be_missing() -> None:
    both = schemes("long-goodput", None, 1, 1)
    for figures, mbps in zip(both.values(), (4.0, 0.0), strict=True):
        figures["long"] = {"goodput_mbps": mbps}
    both["a"]["against"]["b"] = {"goodput_ratio": None, "goodput_ratio_ci": None}
    finding = find(Comparison("long-goodput", "a", "b"), both)
    assert (finding.verdict, finding.why) == ("no figure", "the long flows of the other carried nothing")
    finding = find(Comparison("large-mean", "a", "b"), schemes("large-mean", None, 1, 1))
    assert finding.why == "there are no such large flows, or a scheme finished none of them"


def test_one_repeat_leaves_goodput_open() -> None:
    given = schemes("long-goodput", 2.0, 1, 1)
    given["a"]["against"]["b"]["goodput_ratio_ci"] = None
    finding = find(Comparison("long-goodput", "a", "b"), given)
    assert (finding.verdict, finding.ratio) == ("open", 2.0)


def test_claims_are_listed_with_source_figure_and_kind() -> None:
    claim = {"text": " It is so. ", "source": "P, 2018", "figure": "Fig. 3", "kind": "qualitative"}
    assert heading(claim) == "Claim (P, 2018, Fig. 3; qualitative): It is so."
    assert heading(claim | {"kind": "figures"}) == "Claim (P, 2018, Fig. 3): It is so."
    assert heading({"text": "Bare."}) == "Claim (qualitative): Bare."
    comparison = {"measure": "short-mean", "scheme": "a", "against": "b", "at_most": 0.7}
    assert compared(comparison) == "a / b, mean completion time of short flows, claimed at most 0.7"


def test_a_ratio_whose_interval_has_no_end_is_not_called_one_of_a_single_repeat() -> None:
    def figures(*times_ms: float) -> dict[str, Any]:
        shares = {"short-retransmissions": {"per_repeat": list(times_ms)}}
        against = {"b": {"short_retransmissions_ratio": 5.0}}
        return {"against": against, "short": {"n": 30}, "shares": shares}

    comparison = Comparison("short-retransmissions", "a", "b", at_most=1)
    found = find(comparison, {"a": figures(1, 1, 1, 1, 1), "b": figures(0, 0, 0, 0, 1)})
    assert (found.verdict, found.interval) == ("open", None)
    assert "0 in too many repeats" in found.why
    found = find(comparison, {"a": figures(1), "b": figures(2)})
    assert (found.verdict, found.why) == ("open", "one repeat has no interval")


def test_figures_look_like_0_or_1_only_where_they_are() -> None:
    values = [0.0, 1.0, 0.432, 0.0031, 0.998, 1.0004, 1e-9]
    shown = ["0.00", "1.00", "0.43", "0.003", "0.998", "1.0004", "0.00"]
    assert [figure_text(value) for value in values] == shown
    share = {"verdict": "not seen", "ratio": 0.012, "interval": [0.0031, 0.02], "why": ""}
    assert verdict_text(share) == "0.01 [0.003, 0.02] not seen"
