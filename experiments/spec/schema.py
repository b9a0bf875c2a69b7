"""The JSON Schema of a spec, made from the types that hold one. `python -m experiments.spec.schema` prints it.

`experiments/spec.schema.json` is that output; editors use it, and a test keeps the two alike.
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import Any, Final

from experiments.spec.spec import Spec
from plain.published import schema_of, text_of
from workloads.sizes import table_names

PUBLISHED: Final = Path(__file__).parents[1] / "spec.schema.json"


@cache
def schema() -> dict[str, Any]:
    """Return the schema of a whole spec."""
    whole = schema_of(Spec, "Capstan experiment")
    parts = whole["$defs"]
    whole["properties"]["schemes"]["items"] = {"anyOf": [{"type": "string"}, _REFERENCE]}
    _add_gbps(parts["Link"]["properties"])
    parts["Sizes"]["properties"]["table"]["anyOf"][0] = {"enum": table_names()}
    return whole


def _add_gbps(link: dict[str, Any]) -> None:
    """Add the other unit of a link's rate, which `topologies.links` reads and no type holds."""
    number, nothing = link["rate_mbps"]["anyOf"]
    limits = {name: number[name] / 1000 if number[name] else 0 for name in ("exclusiveMinimum", "maximum")}
    link["rate_gbps"] = {
        "anyOf": [{"type": number["type"], **limits}, nothing],
        "description": "Gbit/s (10^9 bit) on layer 2, in place of rate_mbps; null: unshaped",
    }


_REFERENCE: Final = {"$ref": "#/$defs/SchemeChoice"}


def published_text() -> str:
    """Return what `spec.schema.json` must hold."""
    return text_of(schema())


if __name__ == "__main__":
    sys.stdout.write(published_text())
