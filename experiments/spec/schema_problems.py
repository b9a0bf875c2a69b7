"""What a spec's plain data has against the JSON Schema, in words for people."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

import jsonschema
from jsonschema.exceptions import ValidationError

from experiments.spec.schema import schema
from plain.reading import did_you_mean
from plain.shown import LONGEST_SHOWN, shown
from plain.yaml_source import Path as FieldPath
from plain.yaml_source import Problem, Source, text_of


def against_schema(source: Source) -> Iterator[Problem]:
    """Yield every place where plain data does not fit the schema, explained."""
    validator = jsonschema.Draft202012Validator(schema())
    for error in validator.iter_errors(source.data):
        yield from _explain(source, error)


def _explain(source: Source, error: ValidationError) -> Iterator[Problem]:
    path: FieldPath = tuple(error.absolute_path)
    rule = str(error.validator)
    wanted: Any = error.validator_value
    given: Any = error.instance
    assert isinstance(error.schema, Mapping)
    if rule == "additionalProperties":
        known = error.schema.get("properties", {})
        for name in given:
            if name not in known:
                here = (*path, name)
                hint = _ELSEWHERE.get(text_of(here)) or did_you_mean(str(name), known)
                text = f"{shown(name)} is not known{hint}"
                field = text_of((*path, str(name)[:LONGEST_SHOWN]))
                yield Problem(*source.place(here, key=True), field, text)
        return
    if rule == "required":
        # jsonschema gives one error for each name that is missing
        name = next(name for name in wanted if name not in given and repr(name) in error.message)
        described = error.schema["properties"][name].get("description", "")
        text = f"{name!r} is missing" + (f" ({described})" if described else "")
        yield Problem(*source.place(path), text_of(path), text)
        return
    if rule == "anyOf":
        yield from _explain_choice(source, error)
        return
    instead = _ELSEWHERE.get(f"{text_of(path)}={given}") if rule == "enum" else None
    text = _say(rule, wanted, given) if instead is None else f"{shown(given)} is not known{instead}"
    yield Problem(*source.place(path), text_of(path), text)


_ELSEWHERE: Final[Mapping[str, str]] = {
    "simulation.queue": "; queues are a scheme's: name a scheme with `queues` (ecmp-pq, pias) for strict ones, and use "
    "scheme pfabric for pFabric's (`schemes: [pfabric]`)",
    "simulation.congestion_control=pfabric": " as a TCP; use scheme pfabric (`schemes: [pfabric]`), which has its own "
    "senders and ports",
}
"""What people look for where it is not, and the way that works: by a field, or by a field and its value."""


def _explain_choice(source: Source, error: ValidationError) -> Iterator[Problem]:
    """Explain what the alternative of the right type has against the data; without one, which types there are."""
    meant = [inner for inner in error.context or () if inner.validator != "type" or inner.path]
    if meant:
        for inner in meant:
            yield from _explain(source, inner)
        return
    kinds = [inner.validator_value for inner in error.context or ()]
    path: FieldPath = tuple(error.absolute_path)
    yield Problem(*source.place(path), text_of(path), _say("type", kinds, error.instance))


def _say(rule: str, wanted: Any, given: Any) -> str:
    if rule == "enum":
        options = [str(option) for option in wanted if option is not None]
        return f"{shown(given)} is not known{did_you_mean(str(given), options)}"
    if rule == "type" and wanted == ["string", "object"]:
        return f"must be a scheme's name, or a mapping with name, label and overrides, not {shown(given)}"
    if rule == "type":
        names = {"integer": "a whole number", "number": "a number", "string": "text", "null": "null"}
        names |= {"object": "a mapping", "array": "a list", "boolean": "true or false"}
        kinds = [wanted] if isinstance(wanted, str) else wanted
        text = f"must be {' or '.join(names[kind] for kind in kinds)}, not {shown(given)}"
        whole = "integer" in kinds and "number" not in kinds
        if isinstance(given, str) and {"number", "integer"} & {*kinds} and _is_number(given, whole=whole):
            text += f" (YAML takes this for text; write {_plain_digits(given)})"
        return text
    if rule == "minLength":
        return "must not be empty"
    if rule == "minimum":
        return f"must be at least {wanted}, not {given}"
    if rule == "maximum":
        return f"must be at most {wanted}, not {given}"
    if rule == "exclusiveMinimum":
        return f"must be above {wanted}, not {given}"
    if rule in ("minItems", "maxItems") and wanted > 1:
        return f"must have {wanted} items, not {len(given)}"
    if rule == "minItems":
        return "must name at least one"
    assert rule == "pattern", rule
    return f"{shown(given)} must be small letters, digits, '.', '_' and '-' only, at most 31 of them"


def _plain_digits(text: str) -> str:
    value = float(text)
    return str(int(value)) if value.is_integer() else str(value)


def _is_number(text: str, *, whole: bool) -> bool:
    try:
        value = float(text)
    except ValueError:
        return False
    return value.is_integer() if whole else math.isfinite(value)
