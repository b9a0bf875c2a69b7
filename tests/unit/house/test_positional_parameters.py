"""No production function takes more than four parameters by position: what a fifth one is, a call must say."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[3]
MOST: Final = 4
ROOMS: Final = tuple(
    tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["root_packages"]
)
OTHERS_SIGNATURES: Final = {
    "topologies/leaf_spine.py:LeafSpine.build": "Mininet calls it, with what `mn --topo leafspine,2,2,2` says in order",
    "topologies/fat_tree.py:FatTree.build": "Mininet calls it, with what `mn --topo fattree,4` says in order",
    "host_agent/paths/base.py:PathPolicy.entropies": "what is compiled has it (native/src/agent/paths/)",
}
"""Functions whose parameters are not ours to name, and why."""


def functions(
    tree: ast.AST, within: str = ""
) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Yield every function of a module, methods by ``Class.name``, nested functions by ``outer.inner``."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{within}{node.name}", node
        named = isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        yield from functions(node, f"{within}{node.name}." if named else within)


def by_position(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Count the parameters that a call may give by position; the object or class of a method is none."""
    names = [parameter.arg for parameter in (*function.args.posonlyargs, *function.args.args)]
    return len(names) - (names[:1] in (["self"], ["cls"]))


def wide(text: str) -> set[str]:
    """Return the functions of a module that take more than `MOST` parameters by position."""
    return {name for name, function in functions(ast.parse(text)) if by_position(function) > MOST}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("def f(a, b, c, d, e): ...", {"f"}),
        ("def f(a, b, c, d, *, e): ...", set()),
        ("class A:\n    async def f(self, a, b, c, d): ...", set()),
        ("class A:\n    def f(self, a, b, c, d, e): ...", {"A.f"}),
        ("def f():\n    if True:\n        def g(a, b, /, c, d, e): ...", {"f.g"}),
    ],
)
def test_what_counts(text: str, found: set[str]) -> None:
    assert wide(text) == found


@pytest.mark.slow
@pytest.mark.parametrize("room", ROOMS)
def test_a_fifth_parameter_is_given_by_name(room: str) -> None:
    paths = sorted((ROOT / room).rglob("*.py"))
    assert paths
    found = {f"{path.relative_to(ROOT)}:{name}" for path in paths for name in wide(path.read_text())}
    assert found == {name for name in OTHERS_SIGNATURES if name.startswith(f"{room}/")}
