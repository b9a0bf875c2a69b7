"""In the rooms that are read most, every public class and function says what it is for."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[3]
ROOMS: Final = (
    *(f"controller/{package}" for package in ("agents", "capton", "fabric", "modes", "openflow", "plane")),
    *("controller/shell", "controller/tpfs", "controller/control_plane.py", "controller/lifecycle.py"),
    *("capstan_client", "doctor", "figures", "host_agent", "loops", "ovsdb", "plain", "protocol"),
    *("simulation", "topologies"),
)
Described = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def undescribed(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and name of public classes, and their methods, and functions that have no docstring."""
    within: list[ast.Module | ast.ClassDef] = [ast.parse(source)]
    while within:
        for node in within.pop().body:
            if isinstance(node, Described) and not node.name.startswith("_"):
                if ast.get_docstring(node) is None:
                    yield node.lineno, node.name
                if isinstance(node, ast.ClassDef):
                    within.append(node)


def test_what_has_no_docstring_is_found() -> None:
    source = 'class A:\n    def b(self): ...\n    def _c(self): ...\ndef d():\n    """Do it."""\n    def e(): ...\n'
    assert list(undescribed(source)) == [(1, "A"), (2, "b")]


@pytest.mark.parametrize("room", ROOMS)
def test_all_that_is_public_is_described(room: str) -> None:
    place = ROOT / room
    files = [place] if place.is_file() else sorted(place.rglob("*.py"))
    assert files
    missing = [
        f"{file.relative_to(ROOT)}:{line}: {name}"
        for file in files
        for line, name in undescribed(file.read_text(encoding="utf-8"))
    ]
    assert not missing, "\n".join(missing)
