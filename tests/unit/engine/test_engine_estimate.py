"""How long simulations may take, by the packets of the flows that are planned."""

from __future__ import annotations

import pytest
import yaml

from engine.estimate import SIMULATED_PACKETS_PER_S, simulated_s
from experiments.spec.check import find_spec
from experiments.spec.spec import Spec, spec_from_dict


def spec_of(long_flows: dict[str, object] | None = None, **arrivals: object) -> Spec:
    """Return `small` with 30 s of arrivals, and with these long flows."""
    data = yaml.safe_load(find_spec("small").read_text(encoding="utf-8"))
    flows = {**data["workload"]["flows"], "duration_s": 30.0, "arrivals": arrivals}
    del flows["count"]
    return spec_from_dict(
        {**data, "workload": {**data["workload"], "flows": flows, "long_flows": long_flows}}
    )


@pytest.mark.parametrize(
    "arrivals",
    [
        {"kind": "poisson", "rate_per_s": 40},
        {"kind": "burst", "rate_per_s": 400, "on_s": 0.1, "off_s": 0.9},
        {"kind": "burst", "rate_per_s": 40_000, "on_s": 0.001, "off_s": 0.999},
    ],
)
def test_the_estimate_is_of_the_flows_that_are_planned(arrivals: dict[str, object]) -> None:
    spec = spec_of(**arrivals)
    planned_bytes = sum(flow.size_bytes or 0 for repeat in range(3) for flow in spec.plan(repeat).flows) / 3
    of_a_run_s = planned_bytes / spec.fabric.mtu / SIMULATED_PACKETS_PER_S
    assert simulated_s(spec) == pytest.approx(of_a_run_s * len(spec.schemes) * spec.repeats, rel=0.15)


@pytest.mark.parametrize(
    ("number", "pattern", "most_mbps"),
    [
        (1, "left-to-right", 15),  # its host's link
        (3, "left-to-right", 20),  # two hosts to a leaf, whose four uplinks have 5 Mbit/s each
        (3, "incast", 15),  # the receiver's link
    ],
)
def test_long_flows_are_limited_by_the_fabric_and_by_their_hosts_links(
    number: int, pattern: str, most_mbps: float
) -> None:
    arrivals = {"kind": "poisson", "rate_per_s": 0.1}
    spec = spec_of({"number": number, "pattern": pattern}, **arrivals)
    added_s = simulated_s(spec) - simulated_s(spec_of(**arrivals))
    packets = most_mbps * 1e6 / 8 / spec.fabric.mtu * (spec.warm_up_s + 30.0)
    runs = len(spec.schemes) * spec.repeats
    assert added_s == pytest.approx(packets / SIMULATED_PACKETS_PER_S * runs, rel=1e-6)
