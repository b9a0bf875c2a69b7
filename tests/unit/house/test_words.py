"""Docstrings begin with a verb, in the imperative; code and documents use the words of the field."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[3]
NO_VERB: Final = re.compile(
    r"(A|After|All|An|Another|Any|As|At|Before|Below|Beyond|Both|By|Bytes|Each|Either|Eq|Estimated|Every|"
    r"Expected|Fig|Flows|For|From|Half|His|How|If|In|Into|It|Its|Later|Like|Likewise|Lines|Many|"
    r"Milliseconds|More|Most|Names|Neither|Never|No|None|Not|Nothing|Of|Often|On|Once|One|Only|Our|Out|"
    r"Over|Own|Plain|Raises|Readers|Returns|Same|Seconds|Several|She|Since|So|Some|Something|Such|That|"
    r"The|Their|Them|Then|There|These|They|This|Those|Through|Till|Totals|Two|Types|Under|Until|Us|We|"
    r"What|Whatever|When|Whenever|Where|Whether|Which|While|Who|Whose|Why|With|Within|Without|Yields|You)\b"
)
"""Words that begin a clause or a noun, or a verb in the third person; others need a dictionary."""
FORBIDDEN: Final = re.compile(
    r"(?<![a-z])(told|tells?|telling|hears?|heard|news|story|stories|somebody|nobody|whoever|strangers?)(?![a-z])",
    re.IGNORECASE,
)
"""Words that say nothing of packets, paths and flows; also within names, between underscores."""
PYTHON_METHODS: Final = re.compile(r"\.tell\(\)")


def production() -> list[Path]:
    """Return the Python files of all rooms that mypy checks."""
    rooms = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mypy"]["packages"]
    return [file for room in rooms for file in sorted((ROOT / room).rglob("*.py"))]


def files_of_tests() -> list[Path]:
    """Return the Python files of tests, but for this one, which lists the words."""
    return [file for file in sorted((ROOT / "tests").rglob("*.py")) if file != Path(__file__).resolve()]


def prose() -> list[Path]:
    """Return the documents, and the sources of the page and of the native rooms."""
    page = [file for file in (ROOT / "webui/src").rglob("*.ts*") if file.is_file()]
    rooms = [room for room in (ROOT / "native").iterdir() if room.is_dir() and room.name != "target"]
    native = [file for room in rooms for file in room.rglob("*.rs")]
    return [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *page, *native]


def docstrings(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and text of the docstring of every function; tests may state by theirs what holds."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) or node.name.startswith("test_"):
            continue
        if text := ast.get_docstring(node):
            yield node.body[0].lineno, text


def begins_with_a_verb(text: str) -> bool:
    """Return True unless the first word is known to be none, or in the third person, or no word."""
    return re.match(r"[A-Z][a-z]+\b", text) is not None and NO_VERB.match(text) is None


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("def test_a_stranger_is_refused() -> None:", True),
        ("AS_NOBODY = 1", True),
        ("Nobody reads it.", True),
        ("from classroom.rehearsal import Rehearsal", False),
        ("a history of untold length", False),
    ],
)
def test_words_are_found_in_sentences_and_in_names(text: str, found: bool) -> None:
    assert (FORBIDDEN.search(text) is not None) == found


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("Return True if the leaf changed.", True),
        ("Raise PlainError for a field that is missing.", True),
        ("Yield, for each point, its spec.", True),
        ("Whether the leaf changed.", False),
        ("The leaf's mode.", False),
        ("Returns when it is over.", False),
        ("`take`, with the repairs made.", False),
        ("*lab*: agents may be impaired.", False),
        ("Eq. 1: p_B(j).", False),
    ],
)
def test_verbs_are_known_from_other_words(text: str, right: bool) -> None:
    assert begins_with_a_verb(text) == right


@pytest.mark.slow
def test_docstrings_begin_with_a_verb() -> None:
    wrong = [
        f"{file.relative_to(ROOT)}:{line}: {text.splitlines()[0]}"
        for file in (*production(), *files_of_tests())
        for line, text in docstrings(file.read_text(encoding="utf-8"))
        if not begins_with_a_verb(text)
    ]
    assert not wrong, "\n".join(["begin with what the function does (Return, Send, Note that):", *wrong])


@pytest.mark.slow
def test_the_words_are_those_of_the_field() -> None:
    wrong = [
        f"{file.relative_to(ROOT)}:{number}: {match[0]}"
        for file in (*production(), *files_of_tests(), *prose())
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        if (match := FORBIDDEN.search(PYTHON_METHODS.sub("", line)))
    ]
    assert not wrong, "\n".join(["say it in the field's words:", *wrong])
