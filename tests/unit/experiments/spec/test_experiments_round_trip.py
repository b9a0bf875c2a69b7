"""A spec as plain data, and back: every field of it, whatever its value."""

from __future__ import annotations

import json
import types
import typing
from dataclasses import fields, is_dataclass
from typing import Annotated, Any, Literal, get_args, get_origin

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta

from experiments.spec.serialized import spec_text, spec_to_dict
from experiments.spec.spec import SchemeChoice, Spec, spec_from_dict
from topologies.fabric_spec import FabricSpec
from topologies.links import Link

WORDS = st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "Zs"]), min_size=1, max_size=12)
LABELS = st.from_regex(r"[a-z0-9][a-z0-9._-]{0,8}", fullmatch=True)
PLAIN = st.one_of(st.booleans(), st.integers(0, 99), st.floats(0, 9), LABELS)
OVERRIDES = st.dictionaries(LABELS, st.one_of(PLAIN, st.dictionaries(LABELS, PLAIN, max_size=2)), max_size=2)


def values_of(kind: Any, bounds: Meta | None = None) -> st.SearchStrategy[Any]:
    """Return a strategy for any value of a field's type, within its bounds."""
    if isinstance(kind, type) and is_dataclass(kind):
        hints = typing.get_type_hints(kind, include_extras=True)
        return st.builds(kind, **{part.name: values_of(hints[part.name]) for part in fields(kind)})
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        limits = [item for item in inner[1:] if isinstance(item, Meta)]
        return values_of(inner[0], next((item for item in limits if limited(item)), bounds))
    if origin in (types.UnionType, typing.Union):
        some = next(item for item in inner if item is not types.NoneType)
        return st.none() | values_of(some, bounds)
    if origin is Literal:
        return st.sampled_from(inner)
    if origin is tuple:
        least = (bounds.min_length if bounds else None) or 0
        most = (bounds.max_length if bounds else None) or least + 2
        return st.lists(values_of(inner[0]), min_size=least, max_size=most).map(tuple)
    if kind is Any:
        return PLAIN
    if kind is str:
        return LABELS if bounds is not None and bounds.pattern else WORDS
    if kind is int:
        least = 0 if bounds is None or bounds.ge is None else int(bounds.ge)
        return st.integers(least, 2**31 - 1 if bounds is None or bounds.le is None else int(bounds.le))
    if kind is float:
        low = next(
            (limit for limit in (bounds and bounds.ge, bounds and bounds.gt) if limit is not None), 0.0
        )
        high = 1e6 if bounds is None or bounds.le is None else bounds.le
        return st.floats(low, high, exclude_min=bounds is not None and bounds.gt is not None)
    return st.booleans() if kind is bool else OVERRIDES


def limited(meta: Meta) -> bool:
    """Return whether it bounds a value, and does not only describe it."""
    limits = (meta.ge, meta.gt, meta.le, meta.lt, meta.pattern, meta.min_length, meta.max_length)
    return any(limit is not None for limit in limits)


def one_buffer(link: Link) -> Link:
    """Return a link with one of its two buffers, which holds a full packet."""
    return (
        link
        if link.buffer_bytes is None
        else Link(link.rate_mbps, delay_ms=link.delay_ms, buffer_bytes=max(9000, link.buffer_bytes))
    )


LINKS = values_of(Link).map(one_buffer)
FABRICS = st.builds(
    FabricSpec,
    leaves=st.integers(2, 4),
    spines=st.integers(1, 4),
    hosts_per_leaf=st.none() | st.integers(1, 4),
    link=LINKS,
    access=LINKS,
    overrides=st.dictionaries(st.just("l1-s1"), LINKS),
    down=st.lists(st.just("l2-s1"), max_size=1).map(tuple),
    mtu=st.integers(1280, 9000),
)
OTHERS = {
    "fabric": FABRICS,
    "schemes": st.lists(st.builds(SchemeChoice, WORDS, LABELS, OVERRIDES), min_size=1, max_size=2).map(tuple),
    "baseline": LABELS,  # a spec that names none is given one
}
HINTS = typing.get_type_hints(Spec, include_extras=True)
SPECS = st.builds(
    Spec,
    **({part.name: values_of(HINTS[part.name]) for part in fields(Spec) if part.name not in OTHERS} | OTHERS),
)


@pytest.mark.slow
@given(SPECS)
def test_every_field_of_a_spec_comes_back(spec: Spec) -> None:
    assert spec_from_dict(json.loads(json.dumps(spec_to_dict(spec)))) == spec
    assert spec_from_dict(yaml.safe_load(spec_text(spec))) == spec
