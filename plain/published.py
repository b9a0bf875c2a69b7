"""JSON Schemas as files, made from the types that hold what they describe."""

from __future__ import annotations

import json
from typing import Any, Final

import msgspec

_LIMITS: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")


def schema_of(kind: type, title: str) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of a dataclass: bounds and words are those of its types, all objects closed."""
    parts: dict[str, Any] = _whole(msgspec.json.schema(kind)["$defs"])
    for part in parts.values():
        if "properties" in part:
            part["additionalProperties"] = False
    whole = parts.pop(kind.__name__)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **whole,
        "title": title,
        "$defs": parts,
    }


def _whole(part: Any) -> Any:
    """Return *part* with limits like 1.0 as 1: `Annotated` keeps the first of types whose limits are equal."""
    if isinstance(part, dict):
        return {
            key: int(value) if key in _LIMITS and value == int(value) else _whole(value)
            for key, value in part.items()
        }
    return [_whole(item) for item in part] if isinstance(part, list) else part


def text_of(schema: dict[str, Any]) -> str:
    """Return what the published file of *schema* holds."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
