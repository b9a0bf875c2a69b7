"""Every scheme, and every key of a scheme, stands in the page that describes it."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

import pytest

from controller.schemes import loader, scheme
from protocol.policy import Weight

DOCS: Final = Path(__file__).resolve().parents[3] / "docs"


@pytest.mark.parametrize(
    ("kind", "page"),
    [
        (scheme.Scheme, "schemes.md"),
        (scheme.ClassScheme, "schemes.md"),
        (scheme.ModeRule, "schemes.md"),
        (scheme.PartitionRule, "schemes.md"),
        (scheme.Paper, "schemes.md"),
        (scheme.Release, "schemes.md"),
        (scheme.PathParameters, "paths.md"),
        (scheme.Coding, "coding.md"),
        (Weight, "coding.md"),
        (scheme.Queues, "queues.md"),
        (scheme.Admission, "capton.md"),
        (scheme.Priority, "tpfs.md"),
        (scheme.Prediction, "tpfs.md"),
        (scheme.Printed, "tpfs.md"),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_every_key_of_a_scheme_is_described(kind: Any, page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    missing = [
        item.name for item in fields(kind) if not re.search(rf"(`|^ *|[{{ ]){item.name}(`|:)", text, re.M)
    ]
    assert not missing, f"{page} says nothing of {', '.join(missing)}"


def test_every_scheme_stands_in_the_table_of_schemes_once() -> None:
    table = (DOCS / "schemes.md").read_text(encoding="utf-8").partition("\n## ")[0]
    first = "".join(line.split(" | ")[0] for line in table.splitlines() if line.startswith("| `"))
    assert sorted(re.findall(r"`([a-z-]+)`", first)) == loader.scheme_names()
