"""The page's TypeScript types of the API's answers, made from the API's OpenAPI document by openapi-typescript.

``python -m tests.unit.webui_schema`` writes them anew; `test_webui_schema` holds them to the document.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from tests.unit.api_world import api_world
from tests.unit.webui_node import WEBUI, node

SCHEMA = WEBUI / "src" / "api" / "schema.ts"
PROGRAM = WEBUI / "openapi" / "node_modules" / ".bin" / "openapi-typescript"
HEAD = "// Made from the API's OpenAPI document: .venv/bin/python -m tests.unit.webui_schema. Not to be edited.\n\n"


def types_document(document: dict[str, Any]) -> dict[str, Any]:
    """Return *document* without its paths, but with schemas for answers that have none of their own name.

    The answer of operation ``experiments_read`` is ``ExperimentsReadAnswer``.
    """
    # JSON of any shape refers to itself, which TypeScript takes in no type alias.
    schemas = document["components"]["schemas"] | {"Anything": {}}
    for operations in document["paths"].values():
        for operation in operations.values():
            for status, response in operation["responses"].items():
                schema = response.get("content", {}).get("application/json", {}).get("schema", {})
                if status.startswith("2") and schema and "$ref" not in schema:
                    words = operation["operationId"].split("_")
                    schemas["".join(word.capitalize() for word in words) + "Answer"] = schema
    return {**document, "paths": {}, "components": {"schemas": schemas}}


def generated(document: dict[str, Any]) -> str:
    """Return the TypeScript source of the types of *document*."""
    with tempfile.TemporaryDirectory() as directory:
        source, target = Path(directory) / "openapi.json", Path(directory) / "schema.ts"
        source.write_text(json.dumps(types_document(document)))
        done = node(
            PROGRAM, str(source), "-o", str(target),
            "--root-types", "--root-types-no-schema-prefix", "--empty-objects-unknown",
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return HEAD + target.read_text()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory, api_world(Path(directory)) as world:
        SCHEMA.write_text(generated(world.document))
