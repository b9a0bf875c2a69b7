"""The client's errors: their texts, and what it costs to know them."""

from __future__ import annotations

import ast
import builtins
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from capstan_client import CapstanError, ControllerError
from capstan_client.http import Connection

ROOT = Path(__file__).resolve().parents[3]
PYTHONS = {
    name
    for name, kind in vars(builtins).items()
    if isinstance(kind, type) and issubclass(kind, Exception) and name != "AssertionError"
}


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (CapstanError("line 3 is too long"), "line 3 is too long"),
        (CapstanError("is too long", where="a.yaml:3"), "a.yaml:3: is too long"),
        (CapstanError("is too long", where="a.yaml:3", remedy="cut it"), "a.yaml:3: is too long; cut it"),
        (ControllerError("GET /x: no such path", 404), "GET /x: no such path"),
    ],
)
def test_the_text_says_where_what_and_what_to_do(error: CapstanError, text: str) -> None:
    assert str(error) == text
    assert isinstance(error, CapstanError)


@pytest.mark.parametrize("token", ["a\nb", "ü", "a ", "-----BEGIN\n-----END"])
def test_a_token_that_no_header_can_carry_is_called_so(token: str) -> None:
    with pytest.raises(ControllerError, match="the token is not one line of ASCII"):
        Connection("http://127.0.0.1:9", token, 1.0)


def test_an_empty_token_is_none() -> None:
    connection = Connection("http://127.0.0.1:9", "", 1.0)
    assert "authorization" not in connection._http.headers
    connection.close()


def test_rooms_that_import_the_errors_start_without_httpx() -> None:
    code = "import sys, capstan_client.errors; print('httpx' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_what_is_imported_late_is_all_that_is_said_to_be_there() -> None:
    import capstan_client

    assert all(getattr(capstan_client, name) for name in capstan_client.__all__)
    with pytest.raises(AttributeError, match="'nothing'"):
        capstan_client.nothing  # noqa: B018


@pytest.mark.slow
def test_every_exception_of_ours_has_the_root() -> None:
    """By the sources: an exception whose only base is one of Python's is none that the command line knows of."""
    rooms = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]["packages"]
    kinds = [
        (f"{file.relative_to(ROOT)}: {node.name}", {ast.unparse(base) for base in node.bases})
        for room in sorted({*rooms} - {"doctor"})
        for file in (ROOT / room).rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]
    loose = [name for name, bases in kinds if bases & PYTHONS and "CapstanError" not in bases]
    assert loose == ["capstan_client/errors.py: CapstanError"]
    assert sum("CapstanError" in bases for _, bases in kinds) > 50
