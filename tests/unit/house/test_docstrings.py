"""In the rooms that are read most, every public class and function says what it is for."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[3]
PACKAGES: Final = (
    *(
        "agents",
        "capton",
        "fabric",
        "live",
        "modes",
        "openflow",
        "plane",
        "queues",
        "schemes",
        "shell",
        "tpfs",
    ),
    *("control_plane.py", "lifecycle.py"),
)
ROOMS: Final = (
    *(f"controller/{package}" for package in PACKAGES),
    *("capstan_client", "doctor", "engine", "figures", "host_agent", "loops", "ovsdb", "plain", "protocol"),
    *("experiments", "simulation", "topologies", "workloads"),
)
ROUTES: Final = {"get", "post", "put", "patch", "delete"}
"""Decorators of routes, which have their descriptions beside their paths."""
Described = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def is_route(node: Described) -> bool:
    """Return whether *node* is decorated by a method of HTTP."""
    calls = [decorator.func for decorator in node.decorator_list if isinstance(decorator, ast.Call)]
    return any(isinstance(function, ast.Name) and function.id in ROUTES for function in calls)


def undescribed(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and name of public classes, and their methods, and functions that have no docstring."""
    within: list[ast.Module | ast.ClassDef] = [ast.parse(source)]
    while within:
        for node in within.pop().body:
            if isinstance(node, Described) and not node.name.startswith("_") and not is_route(node):
                if ast.get_docstring(node) is None:
                    yield node.lineno, node.name
                if isinstance(node, ast.ClassDef):
                    within.append(node)


def test_what_has_no_docstring_is_found() -> None:
    source = 'class A:\n    def b(self): ...\n    def _c(self): ...\ndef d():\n    """Do it."""\n    def e(): ...\n'
    source += '@get("/f")\ndef f(): ...\n'
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
    assert not missing, "\n".join(["say what it is for:", *missing])
