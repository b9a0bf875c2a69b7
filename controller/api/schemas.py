"""JSON Schemas (2020-12) of the types that routes read and answer with."""

from __future__ import annotations

import dataclasses
import inspect
import json
import types
import typing
from typing import Annotated, Any, Final, Literal, get_args, get_origin, is_typeddict

import sqlalchemy
from msgspec import Meta

from controller.api.describing import MOST, SCHEMA, Open, Published, With
from controller.store.models import Base
from plain.bounds import bounds_of, in_json_schema

_PLAIN: Final[dict[Any, dict[str, Any]]] = {
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    str: {"type": "string"},
    bytes: {"type": "string", "format": "binary"},
    types.NoneType: {"type": "null"},
    Any: {},
}
_TEXT: Final[dict[str, Any]] = {"type": "string", "pattern": "^[^\\u0000]*$"}
ANYTHING: Final = "Anything"
_KEEPABLE: Final[dict[Any, dict[str, Any]]] = {
    int: {"type": "integer", "minimum": -MOST, "maximum": MOST},
    float: {"type": "number", "minimum": -MOST, "maximum": MOST},
    str: _TEXT,
    Any: {"$ref": f"#/components/schemas/{ANYTHING}"},
}
"""The same in requests: what every database can keep."""
ANYTHING_SCHEMA: Final[dict[str, Any]] = {
    "description": "Any JSON that every database can keep.",
    "anyOf": [
        {"type": ["null", "boolean"]},
        _KEEPABLE[float],
        _TEXT,
        {"type": "array", "items": _KEEPABLE[Any]},
        {"type": "object", "propertyNames": _TEXT, "additionalProperties": _KEEPABLE[Any]},
    ],
}


class Schemas:
    """JSON Schemas (2020-12) of Python types; dataclasses, TypedDicts and database models by name.

    whole: fields with a default are there nevertheless, as in all answers.
    """

    def __init__(self, components: dict[str, Any], whole: bool) -> None:
        self._components = components
        self._whole = whole
        self._named: dict[str, Any] = {}

    def of(self, kind: Any) -> dict[str, Any]:
        """Return the schema of *kind*. Raises TypeError for a type that JSON has no form for."""
        if not self._whole and kind in _KEEPABLE:
            if kind is Any:
                self._components[ANYTHING] = ANYTHING_SCHEMA
            return dict(_KEEPABLE[kind])
        if kind in _PLAIN:
            return dict(_PLAIN[kind])
        origin, inner = get_origin(kind), get_args(kind)
        if origin is Annotated:
            if not isinstance(inner[1], Meta):
                return self.of(inner[1])
            bounds = bounds_of(kind)  # None: of a text's or a list's length, which answers do not promise
            return self.of(inner[0]) | ({} if bounds is None else in_json_schema(bounds))
        if origin is Literal:
            return {"enum": list(inner)}
        if origin in (types.UnionType, typing.Union):
            return {"anyOf": [self.of(option) for option in inner]}
        if origin in (list, tuple):
            return {"type": "array", "items": self.of(inner[0])}
        if origin is dict:
            names = {} if self._whole else {"propertyNames": _KEEPABLE[str]}
            return {"type": "object", **names, "additionalProperties": self.of(inner[1])}
        if isinstance(kind, Open):
            return {**self._object(kind.kind), "additionalProperties": True}
        if isinstance(kind, With):
            return self._with(kind)
        if isinstance(kind, Published):
            return self._published(kind)
        return self._reference(kind)

    def _reference(self, kind: Any) -> dict[str, Any]:
        name = kind.__name__
        if self._named.setdefault(name, kind) is not kind:
            raise TypeError(f"two types of the API are called {name!r}: rename one")
        name = name if self._whole else f"{name}Request".replace("BodyRequest", "Request")
        if name not in self._components:
            self._components[name] = {}  # a type that contains itself finds it begun
            self._components[name] = self._object(kind)
        return {"$ref": f"#/components/schemas/{name}"}

    def _published(self, kind: Published) -> dict[str, Any]:
        """Return a reference to a published schema, whose parts get names that begin with its own."""
        if kind.name not in self._components:
            place = "#/components/schemas/"
            whole = json.loads(json.dumps(kind.schema()).replace('"#/$defs/', f'"{place}{kind.name}'))
            parts = {f"{kind.name}{name}": part for name, part in whole.pop("$defs").items()}
            left_out = ("$schema", "title", "required")
            root = {name: value for name, value in whole.items() if name not in left_out}
            self._components.update(parts, **{kind.name: root})
        return {"$ref": f"#/components/schemas/{kind.name}"}

    def _with(self, kind: With) -> dict[str, Any]:
        schema = self._object(kind.kind)
        schema["properties"] = schema["properties"] | {
            name: self.of(more) for name, more in kind.more.items()
        }
        schema["required"] = list(dict.fromkeys([*schema["required"], *kind.more]))
        return schema

    def _object(self, kind: Any) -> dict[str, Any]:
        fields, required = self._fields(kind)
        schema: dict[str, Any] = {"type": "object"}
        text = inspect.cleandoc(kind.__doc__ or "")  # not what it inherits from dict
        if text and not text.startswith(f"{kind.__name__}("):  # a dataclass without a docstring
            schema["description"] = text
        rule = {} if self._whole or not hasattr(kind, "rule") else kind.rule()
        return schema | {"properties": fields, "required": required, "additionalProperties": False} | rule

    def _fields(self, kind: Any) -> tuple[dict[str, Any], list[str]]:
        """Return schemas of the fields, and names of those that are always there."""
        if dataclasses.is_dataclass(kind):
            hints = typing.get_type_hints(kind, include_extras=True)
            members = dataclasses.fields(kind)
            fields = {member.name: self.of(hints[member.name]) for member in members}
            if not self._whole:
                fields = {
                    member.name: _bounded(fields[member.name], member) | _default(member)
                    for member in members
                }
            return fields, [member.name for member in members if self._whole or _obliged(member)]
        if is_typeddict(kind):
            hints = typing.get_type_hints(kind, include_extras=True)
            fields = {name: self.of(typing.cast(Any, hint)) for name, hint in hints.items()}
            return fields, [name for name in hints if name in kind.__required_keys__]
        if isinstance(kind, type) and issubclass(kind, Base):
            columns = sqlalchemy.inspect(kind).columns
            return {column.key: self._column(column) for column in columns}, [
                column.key for column in columns
            ]
        raise TypeError(f"{kind!r} has no form in JSON")

    def _column(self, column: Any) -> dict[str, Any]:
        forms = {
            sqlalchemy.Boolean: "boolean",
            sqlalchemy.Integer: "integer",
            sqlalchemy.Float: "number",
            sqlalchemy.String: "string",
            sqlalchemy.JSON: "object",
        }
        form = next(form for kind, form in forms.items() if isinstance(column.type, kind))
        return {"type": [form, "null"] if column.nullable else form}


def _obliged(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _bounded(schema: dict[str, Any], field: dataclasses.Field[Any]) -> dict[str, Any]:
    """Return what the field's metadata says of its value, where that is not null."""
    bounds: dict[str, Any] = field.metadata.get(SCHEMA, {})
    if "anyOf" in schema:
        return {
            "anyOf": [
                option if option.get("type") == "null" else option | bounds for option in schema["anyOf"]
            ]
        }
    return schema | bounds


def _default(field: dataclasses.Field[Any]) -> dict[str, Any]:
    """Return the default of a field whose default JSON can hold; else nothing."""
    value = field.default
    if value is dataclasses.MISSING and field.default_factory is not dataclasses.MISSING:
        value = field.default_factory()
    return {"default": value} if isinstance(value, str | int | float | list | dict | None) else {}
