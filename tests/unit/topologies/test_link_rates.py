"""A link's rate in Gbit/s is one in Mbit/s everywhere but in what people write."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from controller.schemes.loader import scheme_names
from experiments.spec.check import check
from experiments.spec.serialized import spec_to_dict
from experiments.spec.spec import spec_from_dict
from topologies.fabric_spec import FabricSpec
from topologies.links import Link, LinkError

PRESET = Path("experiments/presets/small.yaml").read_text(encoding="utf-8")


@given(st.floats(0.001, 10_000))
def test_a_rate_in_gbit_is_a_thousand_times_one_in_mbit(gbps: float) -> None:
    link = Link.from_dict({"rate_gbps": gbps})
    assert link.rate_mbps == pytest.approx(gbps * 1000, abs=1e-6)
    assert Link.from_dict(link.to_dict()) == link
    assert "rate_gbps" not in link.to_dict()


def test_links_hosts_and_single_ones_take_it() -> None:
    data = {
        "link": {"rate_gbps": 10},
        "access": {"rate_gbps": 2.5},
        "overrides": {"l1-s2": {"rate_gbps": 1}, "h1-l1": {"rate_gbps": 0.5}, "l1-s1": {"delay_ms": 1}},
    }
    fabric = FabricSpec.from_dict(data)
    overrides = {name: link.rate_mbps for name, link in fabric.overrides.items()}
    assert (fabric.link.rate_mbps, fabric.access.rate_mbps) == (10_000, 2500)
    assert overrides == {"l1-s2": 1000, "h1-l1": 500, "l1-s1": 10_000}


@pytest.mark.parametrize(
    ("link", "words"),
    [
        ({"rate_gbps": 1, "rate_mbps": 1000}, "rate_gbps cannot be together with rate_mbps"),
        ({"rate_gbps": 0}, "above 0 Gbit/s"),
        ({"rate_gbps": 10_001}, "at most 10000 Gbit/s"),
        ({"rate_gbps": "fast"}, "must be a number of Gbit/s"),
    ],
)
def test_what_is_no_rate_says_so(link: dict[str, object], words: str) -> None:
    with pytest.raises(LinkError, match=words):
        Link.from_dict(link)


def test_a_spec_may_say_gbit_and_check_refuses_both() -> None:
    data = yaml.safe_load(PRESET)
    rate = data["fabric"]["link"].pop("rate_mbps")
    data["fabric"]["link"]["rate_gbps"] = rate / 1000
    assert not check(yaml.safe_dump(data), "", scheme_names())
    spec = spec_from_dict(data)
    assert spec.fabric == spec_from_dict(yaml.safe_load(PRESET)).fabric
    assert spec_from_dict(spec_to_dict(spec)) == spec
    data["fabric"]["link"]["rate_mbps"] = rate
    (problem,) = check(yaml.safe_dump(data), "", scheme_names())
    assert (problem.path, "give one of them" in problem.message) == ("fabric.link", True)


@pytest.mark.parametrize("part", ["queue: pfabric", "congestion_control: pfabric"])
def test_pfabric_is_said_to_be_a_scheme(part: str) -> None:
    (problem,) = check(f"{PRESET}simulation: {{{part}}}\n", "", scheme_names())
    assert "use scheme pfabric" in problem.message
