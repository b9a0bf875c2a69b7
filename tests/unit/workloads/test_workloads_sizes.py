import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workloads.description import Sizes
from workloads.flow_header import HEADER_BYTES
from workloads.sizes import (
    TABLES,
    SizesError,
    Table,
    describe_sizes,
    distribution,
    table_names,
    table_source,
)


@pytest.mark.parametrize("name", table_names())
def test_table_mean_is_what_its_file_says(name: str) -> None:
    said = re.search(r"# mean (\d+) bytes", (TABLES / f"{name}.csv").read_text())
    assert said is not None
    assert distribution(Sizes("table", table=name)).mean() == pytest.approx(int(said[1]), abs=1)
    assert len(table_source(name)) > 20


@pytest.mark.parametrize("name", table_names())
def test_sampled_shares_follow_the_table(name: str) -> None:
    table = distribution(Sizes("table", table=name))
    assert isinstance(table, Table)
    drawn = table.sample(np.random.default_rng(1), 40_000)
    for size, share in zip(table.sizes, table.cdf, strict=True):
        if size >= HEADER_BYTES:
            assert np.mean(drawn <= size) == pytest.approx(share, abs=0.012)
    assert drawn.max() <= table.sizes[-1]


@given(low=st.integers(1, 10**6), width=st.integers(1, 10**6), scale=st.sampled_from([0.01, 0.5, 1.0, 3.0]))
def test_uniform_stays_within_its_bounds(low: int, width: int, scale: float) -> None:
    sizes = Sizes("uniform", low_bytes=low, high_bytes=low + width, scale=scale)
    drawn = distribution(sizes).sample(np.random.default_rng(2), 50)
    assert drawn.min() >= max(HEADER_BYTES, int(low * scale))
    assert drawn.max() < max(HEADER_BYTES + 1, (low + width) * scale)


def test_uniform_below_the_short_limit_never_reaches_it() -> None:
    drawn = distribution(Sizes("uniform", low_bytes=99_990, high_bytes=100_000)).sample(
        np.random.default_rng(3), 10_000
    )
    assert drawn.max() == 99_999
    assert drawn.min() == 99_990


@given(scale=st.floats(0.01, 100))
def test_scale_scales_the_mean(scale: float) -> None:
    whole = distribution(Sizes("table", table="websearch")).mean()
    assert distribution(Sizes("table", table="websearch", scale=scale)).mean() == pytest.approx(whole * scale)


def test_fixed() -> None:
    fixed = distribution(Sizes("fixed", bytes=5000, scale=0.5))
    assert fixed.mean() == 2500
    assert set(fixed.sample(np.random.default_rng(0), 5)) == {2500}


@pytest.mark.parametrize(
    "sizes",
    [
        Sizes("fixed", bytes=1),
        Sizes("fixed", bytes=1000, scale=0.001),
        Sizes("uniform", low_bytes=1, high_bytes=9),
        Sizes("uniform", low_bytes=1, high_bytes=40),
        Sizes("mix", low_bytes=1, high_bytes=40, bytes=2, large_share=0.5),
    ],
)
def test_the_mean_is_that_of_what_is_sent_where_flows_are_as_small_as_can_be(sizes: Sizes) -> None:
    drawn = distribution(sizes).sample(np.random.default_rng(4), 40_000)
    assert drawn.min() == HEADER_BYTES
    assert distribution(sizes).mean() == pytest.approx(drawn.mean(), rel=0.05)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        (Sizes("uniform", low_bytes=5), "need high_bytes"),
        (Sizes("uniform", low_bytes=5, high_bytes=5), "below high_bytes"),
        (Sizes("fixed", bytes=0), "at least 1"),
        (Sizes("fixed", bytes=5, table="websearch"), "table does not belong"),
        (Sizes("table", table="websarch"), "did you mean 'websearch'"),
        (Sizes("fixed", bytes=5, scale=0), "scale must be above 0"),
        # 64 bits hold no more: flows were of -9223372036854775808 B
        (Sizes("fixed", bytes=10**19), "1e\\+19 B is above the largest"),
        (Sizes("uniform", low_bytes=1, high_bytes=6, scale=1e18), "6e\\+18 B is above the largest"),
        (Sizes("table", table="websearch", scale=1e12), "B is above the largest"),
    ],
)
def test_what_cannot_be_is_said(sizes: Sizes, message: str) -> None:
    with pytest.raises(SizesError, match=message):
        distribution(sizes)


@pytest.mark.parametrize(
    ("sizes", "cdf"), [((1.0, 1.0), (0.0, 1.0)), ((1.0, 2.0), (0.6, 0.5)), ((1.0, 2.0), (0.0, 0.9)), ((), ())]
)
def test_a_table_that_is_no_distribution_is_refused(sizes: tuple[float, ...], cdf: tuple[float, ...]) -> None:
    with pytest.raises(SizesError):
        Table(sizes, cdf)


@given(share=st.floats(0, 1))
def test_a_mix_has_its_share_of_large_flows_and_leaves_the_others_alone(share: float) -> None:
    def sizes(large_share: float) -> Sizes:
        return Sizes("mix", low_bytes=10_000, high_bytes=100_000, bytes=500_000, large_share=large_share)

    mix = distribution(sizes(share))
    drawn = mix.sample(np.random.default_rng(5), 4000)
    large = drawn == 500_000
    assert np.mean(large) == pytest.approx(share, abs=0.04)
    assert mix.mean() == pytest.approx(drawn.mean(), rel=0.08)
    none = distribution(sizes(0)).sample(np.random.default_rng(5), 4000)
    assert (none[~large] == drawn[~large]).all()
    assert none.max() < 100_000


def test_a_share_beyond_all_flows_is_refused() -> None:
    with pytest.raises(SizesError, match="large_share must lie between 0 and 1"):
        distribution(Sizes("mix", low_bytes=1, high_bytes=2, bytes=3, large_share=1.5))
    with pytest.raises(SizesError, match="need large_share"):
        distribution(Sizes("mix", low_bytes=1, high_bytes=2, bytes=3))


@pytest.mark.parametrize("name", table_names())
def test_what_a_run_records_of_a_table_is_its_source_and_the_mean_of_what_is_drawn(name: str) -> None:
    sizes = Sizes(kind="table", table=name, scale=0.5)
    reported = describe_sizes(sizes)
    lines = (TABLES / f"{name}.csv").read_text().splitlines()
    assert f"# {reported['source']}" == lines[0]
    (mean,) = (float(line.split()[2]) for line in lines if line.startswith("# mean"))
    assert reported["mean_bytes"] == pytest.approx(mean / 2, rel=1e-3)
    assert (reported["table"], reported["kind"], reported["scale"]) == (name, "table", 0.5)
