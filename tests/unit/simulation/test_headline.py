"""CAPS's headline in simulation: with the paper's settings short flows end sooner than under ECMP and RPS.

Preset `caps-default`: its test bed's 20 paths of 20 Mbit/s, buffers of 256 packets, 100 short and four long flows.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import ttest_1samp

from cli.specs import load_spec
from simulation.batch import prepare, simulate

SEEDS = 15
BY_CHANCE = 1e-6
"""How often schemes that do not differ would pass."""


@pytest.fixture(scope="module")
def means() -> dict[str, NDArray[np.float64]]:
    """Return mean completion times of short flows by scheme, one a seed, in seconds."""
    spec = load_spec("caps-default", ("ecmp", "rps", "caps")).spec
    found: dict[str, list[float]] = {choice.label: [] for choice in spec.schemes}
    for seed in range(1, SEEDS + 1):
        for _, run in simulate([prepare(replace(spec, seed=seed, repeats=1))]):
            times = [flow.fct_s for flow in run.flows if flow.traffic_class == "short"]
            assert None not in times, f"{run.label}, seed {seed}: a short flow has not ended"
            found[run.label].append(float(np.mean([time for time in times if time is not None])))
    return {label: np.array(values) for label, values in found.items()}


@pytest.mark.slow
@pytest.mark.parametrize("other", ["ecmp", "rps"])
def test_short_flows_end_sooner_under_caps(means: dict[str, NDArray[np.float64]], other: str) -> None:
    logs = np.log(means["caps"] / means[other])
    assert ttest_1samp(logs, 0, alternative="less").pvalue < BY_CHANCE, np.exp(logs)
