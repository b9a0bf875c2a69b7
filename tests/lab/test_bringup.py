"""A fabric of 16 hosts comes up until every host reaches every other, and goes. How fast is a benchmark's matter."""

from __future__ import annotations

import pytest

from benchmarks.bringup import fabric, live


def test_a_fabric_of_16_hosts_comes_up_forwards_between_all_and_goes() -> None:
    one = live(fabric())
    assert next(iter(one.stages)) == "building_the_fabric"
    assert list(one.stages)[-1] == "every_pair"
    assert sum(one.stages.values()) == pytest.approx(one.up_s, abs=0.5)
