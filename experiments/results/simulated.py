"""Which result documents are of simulations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Document = Mapping[str, Any]
"""A result document (`result.json`), of a run or of a sweep."""


def is_simulated(document: Document) -> bool:
    """Return whether a result, or a sweep's, was simulated."""
    return document.get("kind") == "simulation" or document.get("simulated") is True
