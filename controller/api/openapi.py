"""The API's description for programs: OpenAPI 3.1, made of the types that the routes read and answer with."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Any, Final

from flask import Flask

from controller.api.describing import LARGEST, Description, Query, Text, description_of
from controller.api.front.body import in_units
from controller.api.front.limits import Limits
from controller.api.schemas import Schemas

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
