"""The API's document as a page for people: one HTML file, without scripts, and without anything from elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any, Final

Document = Mapping[str, Any]
METHODS: Final = ("get", "post", "put", "patch", "delete")
POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
"""Content-Security-Policy of the page."""
_STYLE: Final = """
:root { color-scheme: light dark; --line: #8886; --soft: #8882; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; }
code, pre { font: .86em/1.45 ui-monospace, monospace; }
pre { background: var(--soft); padding: .6rem .8rem; overflow-x: auto; border-radius: 4px; }
details { border: 1px solid var(--line); border-radius: 4px; margin: .4rem 0; }
summary { padding: .4rem .7rem; cursor: pointer; } details > div { padding: 0 .9rem .7rem; }
.method { display: inline-block; min-width: 4.2em; font-weight: 700; }
.what { opacity: .75; margin-left: .6em; }
table { border-collapse: collapse; } td, th { text-align: left; padding: .15rem .8rem .15rem 0; vertical-align: top; }
dt { font-weight: 600; margin-top: .6rem; } dd { margin: 0 0 0 1rem; }
"""


def page(document: Document) -> str:
    """Return the whole page. *document*: OpenAPI, as `openapi.openapi_document` makes it."""
    groups: dict[str, list[str]] = {}
    for path, operations in document["paths"].items():
        name = path.removeprefix("/api/v1/").partition("/")[0].partition(".")[0]
        for method in METHODS:
            if method in operations:
                groups.setdefault(name, []).append(_operation(path, method, operations[method]))
    title = f"{escape(document['info']['title'])}: REST API {escape(document['info']['version'])}"
    index = " ".join(f'<a href="#{escape(name)}">{escape(name)}</a>' for name in groups)
    parts = [
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>',
        f"<style>{_STYLE}</style></head><body><h1>{title}</h1>",
        '<p>Made from the controller\'s code, as <a href="openapi.json">openapi.json</a> (OpenAPI 3.1) for programs. ',
        "Errors are problem documents (RFC 9457) that name the field.</p>",
        f"<nav>{index} <a href='#types'>types</a></nav>",
    ]
    for name, operations in groups.items():
        parts += [f'<h2 id="{escape(name)}">{escape(name)}</h2>', *operations]
    parts.append('<h2 id="types">types</h2>')
    for name, schema in sorted(document["components"]["schemas"].items()):
        parts.append(f'<details id="type-{escape(name)}"><summary><code>{escape(name)}</code>')
        parts.append(
            f'<span class="what">{escape(_first(schema))}</span></summary><div>{_schema(schema)}</div>'
        )
        parts.append("</details>")
    return "\n".join([*parts, "</body></html>\n"])


def _operation(path: str, method: str, operation: Document) -> str:
    lines = [
        f'<details id="do-{escape(operation["operationId"])}"><summary><span class="method">{method.upper()}</span>',
        f'<code>{escape(path)}</code><span class="what">{escape(operation["summary"])}</span></summary><div>',
    ]
    if method == "get" and not any(parameter.get("required") for parameter in operation["parameters"]):
        lines.append(f'<p><a href="{escape(path)}">ask it now</a></p>')
    if operation["parameters"]:
        lines.append("<table><tr><th>parameter</th><th>in</th><th>what it may be</th><th></th></tr>")
        for parameter in operation["parameters"]:
            need = "" if parameter.get("required") else " (optional)"
            lines.append(
                f"<tr><td><code>{escape(parameter['name'])}</code>{need}</td><td>{escape(parameter['in'])}</td>"
                f"<td>{_words(parameter['schema'])}</td><td>{escape(parameter.get('description', ''))}</td></tr>"
            )
        lines.append("</table>")
    if "requestBody" in operation:
        lines.append(f"<p>Body: {_contents(operation['requestBody']['content'])}</p>")
    lines.append("<table><tr><th>status</th><th>answer</th></tr>")
    for status, answer in operation["responses"].items():
        contents = _contents(answer["content"]) if "content" in answer else ""
        lines.append(f"<tr><td>{escape(status)}</td><td>{escape(answer['description'])} {contents}</td></tr>")
    return "".join([*lines, "</table></div></details>"])


def _contents(content: Document) -> str:
    return ", ".join(
        f"{_words(media['schema'])} <code>{escape(kind)}</code>" for kind, media in content.items()
    )


def _schema(schema: Document) -> str:
    """Return a named type: its fields, or the schema as it stands where it has none."""
    text = f"<p>{escape(schema['description'])}</p>" if "description" in schema else ""
    if not schema.get("properties"):
        bare = {key: value for key, value in schema.items() if key != "description"}
        return f"{text}<pre>{escape(json.dumps(bare, indent=1))}</pre>"
    required = set(schema.get("required", ()))
    rows = "".join(
        f"<tr><td><code>{escape(name)}</code>{'' if name in required else ' (optional)'}</td>"
        f"<td>{_words(member)}</td></tr>"
        for name, member in schema["properties"].items()
    )
    return f"{text}<table><tr><th>field</th><th>what it is</th></tr>{rows}</table>"


def _words(schema: Document) -> str:
    """Return a schema in a few words, as HTML; named types as links."""
    return " or ".join(_alternatives(schema)) + _more(schema)


def _alternatives(schema: Document) -> Iterator[str]:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        yield f'<a href="#type-{escape(name)}">{escape(name)}</a>'
    elif "enum" in schema:
        yield from (f"<code>{escape(json.dumps(value))}</code>" for value in schema["enum"])
    elif "anyOf" in schema:
        yield from (_words(option) for option in schema["anyOf"])
    elif schema.get("type") == "array":
        yield f"list of {_words(schema.get('items', {}))}"
    elif schema.get("type") == "object" and isinstance(schema.get("additionalProperties"), dict):
        yield f"object of {_words(schema['additionalProperties'])}"
    else:
        kinds = schema.get("type", "anything")
        yield from ([kinds] if isinstance(kinds, str) else kinds)


def _more(schema: Document) -> str:
    words = []
    low, above = schema.get("minimum"), schema.get("exclusiveMinimum")
    if low is not None and abs(low) < 1e18:
        words.append(f"from {low:g}")
    if above is not None:
        words.append(f"above {above:g}")
    if "maximum" in schema and abs(schema["maximum"]) < 1e18:
        words.append(f"to {schema['maximum']:g}")
    if schema.get("default") not in (None, {}, []):
        words.append(f"default {escape(json.dumps(schema['default']))}")
    return f", {', '.join(words)}" if words else ""


def _first(schema: Document) -> str:
    """Return the first sentence of a type's description."""
    text: str = schema.get("description", "")
    return text.partition("\n")[0][:100]
