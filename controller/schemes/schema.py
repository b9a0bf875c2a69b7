"""The JSON Schema of a scheme file, made from the types that hold one. `python -m controller.schemes.schema` prints it.

`scheme.schema.json` beside this file is that output; editors use it, and a test keeps the two alike.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

import msgspec

from controller.schemes.scheme import Scheme

PUBLISHED: Final = Path(__file__).parent / "scheme.schema.json"


def scheme_schema() -> dict[str, Any]:
    """Return the schema of a scheme (JSON Schema 2020-12); bounds are those of the types."""
    schema = msgspec.json.schema(Scheme)
    for part in schema["$defs"].values():
        part["additionalProperties"] = False
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "Capstan scheme",
    }


def published_text() -> str:
    """Return what `scheme.schema.json` must hold."""
    return json.dumps(scheme_schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(published_text())
