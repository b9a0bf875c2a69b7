"""The API's description for programs: OpenAPI 3.1, made of the types that the routes read and answer with."""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import types
import typing
from http import HTTPStatus
from typing import Annotated, Any, Final, Literal, get_args, get_origin, is_typeddict

import sqlalchemy
from flask import Flask
from msgspec import Meta

from controller.api.describing import (
    LARGEST,
    MOST,
    SCHEMA,
    Description,
    Open,
    Published,
    Query,
    Text,
    With,
    description_of,
)
from controller.api.front.body import in_units
from controller.api.front.limits import Limits
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
_OF_ALL: Final = (401, 403, 500, 503)
"""Problems that any request may meet."""
_OF_BODIES: Final = (400, 408, 413, 415, 422)
PROBLEM: Final[dict[str, Any]] = {
    "type": "object",
    "description": "A problem document (RFC 9457).",
    "properties": {
        "type": {"const": "about:blank"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "What is wrong, where, and what to do."},
        "field": {"type": "string", "description": "The field of the request that is wrong: body.scheme"},
    },
    "required": ["type", "title", "status", "detail"],
    "additionalProperties": True,
}


_NUMBER: Final[dict[str, Any]] = {"type": "integer", "minimum": 0, "maximum": LARGEST}


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


def openapi_document(app: Flask, version: str, token: bool) -> dict[str, Any]:
    """Return the whole document. *token*: whether requests need one."""
    components: dict[str, Any] = {"Problem": PROBLEM}
    bodies, answers = Schemas(components, whole=False), Schemas(components, whole=True)
    paths: dict[str, dict[str, Any]] = {}
    for rule in sorted(app.url_map.iter_rules(), key=lambda route: route.rule):
        if rule.endpoint.startswith("page."):
            continue  # the dashboard's files
        description = description_of(app.view_functions[rule.endpoint])
        path = re.sub(r"<(?:[^:>]*:)?(\w+)>", r"{\1}", rule.rule)
        for method in sorted((rule.methods or set()) - {"HEAD", "OPTIONS"}):
            paths.setdefault(path, {})[method.lower()] = _operation(
                description,
                rule.endpoint,
                sorted(rule.arguments),
                rule=rule.rule,
                bodies=bodies,
                answers=answers,
            )
    for operations in paths.values():  # 304 among the problems, in order
        for operation in operations.values():
            operation["responses"] = dict(sorted(operation["responses"].items()))
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {"title": "Capstan controller", "version": version, "license": {"name": "Apache-2.0"}},
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {"schemas": components},
    }
    if token:
        document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        document["security"] = [{"token": []}]
    return document


def _operation(
    description: Description,
    endpoint: str,
    arguments: list[str],
    *,
    rule: str,
    bodies: Schemas,
    answers: Schemas,
) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": endpoint.replace(".", "_"),
        "summary": description.summary,
        "parameters": [
            {
                "name": name,
                "in": "path",
                "required": True,
                "schema": _NUMBER if f"<number:{name}>" in rule else {"type": "string", "minLength": 1},
            }
            for name in arguments
        ]
        + [_query(parameter) for parameter in description.query],
        "responses": {
            str(description.status): {
                "description": "The answer.",
                "content": {description.media: {"schema": _schema_of(description, answers)}},
            }
        },
    }
    if description.stream:
        operation["responses"][str(description.status)]["content"]["text/event-stream"] = {
            "schema": {"type": "string"}
        }
    if description.tagged:
        _tag(operation, str(description.status))
    problems = {*_OF_ALL, *description.problems}
    if description.query:
        problems.add(422)
    if description.most_body_bytes is not None:
        problems.add(429)
    if description.keeps_above_bytes is not None:
        problems.add(507)
    if description.body is not None:
        problems |= {*_OF_BODIES}
        operation["requestBody"] = {
            "required": True,
            "description": f"At most {in_units(description.most_body_bytes or Limits().body_bytes)}.",
            "content": {"application/json": {"schema": bodies.of(description.body)}}
            | {media: {"schema": {}} for media in description.body_text},  # read as a whole
        }
    for status in sorted(problems):
        operation["responses"][str(status)] = {
            "description": HTTPStatus(status).phrase,
            "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
        }
    return operation


def _schema_of(description: Description, answers: Schemas) -> dict[str, Any]:
    """Return the schema of an answer; any for YAML, which validators parse before they compare it with a schema."""
    return {} if description.media == "application/yaml" else answers.of(description.answer)


def _tag(operation: dict[str, Any], status: str) -> None:
    """Describe ETags: of the answer with *status*, and of answers that the client has (304)."""
    operation["parameters"].append(
        {
            "name": "If-None-Match",
            "in": "header",
            "description": "ETags of answers that the client has.",
            "schema": {"type": "string"},
        }
    )
    answer = operation["responses"][status]
    answer["headers"] = {"ETag": {"required": True, "schema": {"type": "string"}}}
    operation["responses"]["304"] = {"description": "The client has it: nothing has changed."}


def _query(query: Query | Text) -> dict[str, Any]:
    schema: dict[str, Any]
    parameter: dict[str, Any] = {"name": query.name, "in": "query", "description": query.meaning}
    if query.required:
        parameter["required"] = True
    if isinstance(query, Text):
        schema = {"enum": list(query.choices)} if query.choices else {"type": "string"}
        if query.several:
            schema = {"type": "array", "items": schema, "minItems": 1}
            parameter |= {"style": "form", "explode": False}
        elif query.required and not query.choices:
            schema["minLength"] = 1
    else:
        schema = {"type": "integer", "minimum": query.low, "maximum": query.high}
    if query.default is not None:
        several = isinstance(query, Text) and query.several
        schema["default"] = str(query.default).split(",") if several else query.default
    return parameter | {"schema": schema}
