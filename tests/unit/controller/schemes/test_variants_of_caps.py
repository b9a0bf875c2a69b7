"""Variants of CAPS differ from it in what their summaries say, and in nothing else."""

from __future__ import annotations

from typing import Any, Final

import pytest

from controller.schemes import loader

DIFFERENCES: Final = {
    "caps-dark": {"prior_knowledge", "long.release"},
    "caps-adaptive": {"short.coding.redundancy", "long.release"},
    "caps-reps": {"short.entropy", "short.path", "long.entropy", "long.path", "long.release"},
    "caps-spray": {"long.group", "long.by_mode", "mode"},
    "caps-unblocked": {"short.group", "short.entropy", "short.path", "short.coding.max_overhead"},
}
WORDS: Final = {
    "prior_knowledge": "announced sizes",
    "long.release": "without in-order release of long flows",
    "mode": "without modes",
    "short.coding.max_overhead": "0.3 repairs a packet",
    "short.coding.redundancy": "redundancy",
    "long.entropy": "entropy values",
    "short.group": "by label",
}
"""What title or summary says of a field that differs; fields that are missing here go with one of these."""
NAMES: Final = ("name", "title", "summary", "papers")


def differing(one: Any, other: Any, place: str = "") -> set[str]:
    """Return the dotted fields in which two schemes differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        return {
            field
            for key in one.keys() | other.keys()
            for field in differing(one.get(key), other.get(key), f"{place}.{key}" if place else key)
        }
    return set() if one == other else {place}


def parts(name: str) -> dict[str, Any]:
    scheme = loader.scheme_to_dict(loader.load(name))
    return {key: value for key, value in scheme.items() if key not in NAMES}


@pytest.mark.parametrize("name", DIFFERENCES)
def test_a_variant_differs_in_what_its_summary_says(name: str) -> None:
    assert differing(parts("caps"), parts(name)) == DIFFERENCES[name]
    scheme = loader.load(name)
    text = f"{scheme.title}. {scheme.summary}"
    for field in DIFFERENCES[name] & WORDS.keys():
        assert WORDS[field] in text
