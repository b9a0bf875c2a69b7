"""Bounds are said once, with their types: reader, messages and JSON Schema follow from them."""

import dataclasses
import typing
from collections.abc import Iterator
from typing import Any

import jsonschema
import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta

from controller.schemes import loader
from controller.schemes.schema import PUBLISHED, published_text, scheme_schema
from controller.schemes.scheme import Coding, Scheme
from experiments.spec.spec import Spec
from plain.bounds import beyond, bounds_of, first_beyond, unit_of, words
from plain.reading import PlainError, build
from plain.yaml_source import read
from protocol.admission import AdmissionPolicy
from protocol.policy import CodingPolicy, PathSettings, Policy


def bounded_fields(kind: Any) -> Iterator[tuple[Any, str, Any]]:
    """Yield every bounded field below *kind*: its dataclass, name and type."""
    waiting, seen = [kind], set()
    while waiting:
        one = waiting.pop()
        if dataclasses.is_dataclass(one) and one not in seen:
            seen.add(one)
            for name, hint in typing.get_type_hints(one, include_extras=True).items():
                if bounds_of(hint) is not None:
                    yield one, name, hint
                waiting.append(hint)
        waiting += typing.get_args(one)


FIELDS = [*bounded_fields(Scheme), *bounded_fields(Policy), *bounded_fields(Spec)]
LIMITS = (0, 1, 7, 64, 128, 600, 10000, 1 << 30, 1 << 40)
near = st.tuples(st.sampled_from(LIMITS), st.integers(-3, 3)).map(sum)


def test_schemes_policies_and_specs_have_bounds() -> None:
    assert {"max_k", "max_overhead", "samples", "threshold_bytes", "leaves", "rate_mbps", "on_s"} <= {
        name for _, name, _ in FIELDS
    }


@pytest.mark.parametrize(
    ("kind", "name", "hint"), FIELDS, ids=[f"{kind.__name__}.{name}" for kind, name, _ in FIELDS]
)
def test_the_reader_accepts_what_the_schema_of_a_field_does(kind: Any, name: str, hint: Any) -> None:
    validator = jsonschema.Draft202012Validator(msgspec.json.schema(hint))
    Holder = dataclasses.make_dataclass("Holder", [(name, hint)])

    @given(value=near | st.floats(allow_nan=False, allow_infinity=False))
    def agree(value: float) -> None:
        if validator.is_valid(value):
            assert getattr(build(Holder, {name: value}, "it"), name) == value
        else:
            with pytest.raises(PlainError) as caught:
                build(Holder, {name: value}, "it")
            assert caught.value.where == f"it.{name}"

    agree()


def test_a_scheme_and_its_policy_have_one_description_of_a_coding_and_of_admission() -> None:
    scheme, policy = Coding(), CodingPolicy()
    hints = [typing.get_type_hints(kind, include_extras=True) for kind in (Coding, CodingPolicy)]
    for name in hints[0].keys() & hints[1].keys():
        assert hints[0][name] == hints[1][name]
        assert getattr(scheme, name) == getattr(policy, name)
    assert (scheme.max_overhead, scheme.max_r) == (0.75, 16)


@pytest.mark.parametrize(
    ("bounds", "unit", "said"),
    [
        (Meta(ge=1, le=128), "", "must be 1..128"),
        (Meta(ge=0, le=9), "B", "must be 0..9 B"),
        (Meta(ge=0), "B", "must not be negative"),
        (Meta(ge=1), "", "must be at least 1"),
        (Meta(gt=0), "packet times", "must be above 0 packet times"),
        (Meta(gt=0, le=10), "s", "must be above 0 s and at most 10 s"),
        (Meta(gt=0, lt=1), "", "must lie between 0 and 1, both excluded"),
        (Meta(ge=0.5, le=86400.0), "s", "must be 0.5 s to 86400 s"),
    ],
)
def test_a_bound_in_words(bounds: Meta, unit: str, said: str) -> None:
    assert words(bounds, unit) == said
    assert beyond(bounds, -1, unit) == said
    assert beyond(bounds, 0.75 if bounds.lt else 2, unit) is None


@pytest.mark.parametrize(
    ("bounds", "unit", "said"),
    [
        (Meta(lt=1), "", "must be below 1"),
        (Meta(lt=0.5), "s", "must be below 0.5 s"),
        (Meta(le=8), "B", "must be at most 8 B"),
        (Meta(ge=-2, lt=5), "ms", "must be at least -2 ms and below 5 ms"),
        (Meta(ge=0, lt=5), "", "must be at least 0 and below 5"),
    ],
)
def test_an_upper_bound_in_words(bounds: Meta, unit: str, said: str) -> None:
    assert words(bounds, unit) == said
    assert beyond(bounds, 9, unit) == said
    assert beyond(bounds, 0, unit) is None


def test_units_are_those_of_the_names() -> None:
    named = ("policy.short.release.timeout_s", "packet_times", "gap_packet_times", "explore_packets", "max_k")
    assert [unit_of(name) for name in named] == ["s", "packet times", "packet times", "packets", ""]
    assert unit_of("threshold_bytes") == "B"
    assert unit_of("ageing_bytes_per_s") == "B/s"


def test_what_was_not_read_is_checked_alike() -> None:
    assert first_beyond(PathSettings()) is None
    assert first_beyond(PathSettings(gap_s=0.0)) == ("gap_s", "must be above 0 s and at most 600 s")
    assert AdmissionPolicy(initial_window_packets=0).problem() == (
        "initial_window_packets",
        "must be 1..10000 packets",
    )


def test_the_published_schema_of_schemes_is_the_one_in_use() -> None:
    assert PUBLISHED.read_text() == published_text(), (
        f"run: python -m controller.schemes.schema > {PUBLISHED}"
    )
    jsonschema.Draft202012Validator.check_schema(scheme_schema())


@pytest.mark.parametrize("name", loader.scheme_names())
def test_shipped_schemes_fit_the_published_schema(name: str) -> None:
    data = read((loader.SCHEME_DIRECTORY / f"{name}.yaml").read_text(), name).data
    validator = jsonschema.Draft202012Validator(scheme_schema())
    assert list(validator.iter_errors(data)) == []
    wrong = yaml.safe_load(yaml.safe_dump(data)) | {"short_limit_bytes": -1, "shrot": {}}
    assert {error.validator for error in validator.iter_errors(wrong)} == {"minimum", "additionalProperties"}
