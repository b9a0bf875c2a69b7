"""Fabrics and settings of the tests of pipelines."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st

from protocol.underlay import TrafficClass
from tests.unit.fabric_shapes import fat_tree, leaf_spine

AGENT_CLASSES = (TrafficClass.SHORT, TrafficClass.LONG, TrafficClass.CONTROL)


FAST = settings(max_examples=20, deadline=None)


shapes = st.one_of(
    st.builds(leaf_spine, st.integers(2, 4), st.integers(1, 5), st.integers(1, 2)),
    st.builds(fat_tree, st.just(4), st.integers(1, 2)),
)
