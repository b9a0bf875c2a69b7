"""The JSON Schema of a scheme file, made from the types that hold one. `python -m controller.schemes.schema` prints it.

`scheme.schema.json` beside this file is that output; editors use it, and a test keeps the two alike.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

from controller.schemes.scheme import Scheme
from plain.published import schema_of, text_of

PUBLISHED: Final = Path(__file__).parent / "scheme.schema.json"


def scheme_schema() -> dict[str, Any]:
    """Return the schema of a scheme (JSON Schema 2020-12); bounds are those of the types."""
    return schema_of(Scheme, "Capstan scheme")


def published_text() -> str:
    """Return what `scheme.schema.json` must hold."""
    return text_of(scheme_schema())


if __name__ == "__main__":
    sys.stdout.write(published_text())
