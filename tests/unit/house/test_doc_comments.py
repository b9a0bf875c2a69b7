"""Doc comments of functions in Rust and TypeScript begin with a verb, as docstrings do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.unit.house.test_words import NO_VERB

ROOT: Final = Path(__file__).resolve().parents[3]
RUST: Final = re.compile(
    r"(?P<doc>(?:^[ \t]*///.*\n)+)"
    r"(?P<attributes>(?:[ \t]*#\[.*\n)*)"
    r"[ \t]*(?:pub(?:\([^)]*\))? )?(?:const |async |unsafe |extern \"C\" )*fn \w+",
    re.MULTILINE,
)
TYPESCRIPT: Final = re.compile(
    r"/\*\*(?P<doc>(?:(?!\*/)[\s\S])*)\*/\n"
    r"(?:export )?(?:default )?(?:async )?(?:function \w+|const \w+ = (?:async )?\([^\n]*\)(?:: [^\n]*)? =>)"
)
THIRD_PERSON: Final = re.compile(r"(Returns|Raises|Yields)\b")
"""Verbs that begin a comment in Rust, whose own library has them so."""
REFERS: Final = re.compile(r"As `\w+`")
"""To another function, for what is the same."""


def comments(source: str, rust: bool) -> Iterator[tuple[int, str]]:
    """Yield line and first line of the doc comment of every function; tests say by their names what they do."""
    for match in (RUST if rust else TYPESCRIPT).finditer(source):
        if not rust or "#[test]" not in match["attributes"]:
            text = re.sub(r"^[ \t]*(///|\*)", "", match["doc"], flags=re.MULTILINE).strip()
            yield source.count("\n", 0, match.start()) + 1, text.partition("\n")[0]


def begins_with_a_verb(text: str) -> bool:
    """Return True unless the first word is known to be none, or no word."""
    if THIRD_PERSON.match(text) or REFERS.match(text):
        return True
    return re.match(r"[A-Z][a-z]+\b", text) is not None and NO_VERB.match(text) is None


def test_comments_that_begin_with_no_verb_are_found() -> None:
    rust = (
        "    /// Whether it waits.\n    #[inline]\n    pub fn waits(&self) -> bool {\n"
        "/// Returns it.\npub(crate) fn it() {}\n/// By hand: 2.\n#[test]\nfn two() {}\n/// A field.\npub field: u8,\n"
    )
    page = (
        "/** `52 kB`. */\nexport function size(bytes: number): string {\n"
        "/**\n * Return\n * it.\n */\nconst it = (a: A): B => a;\n/** A type. */\nexport interface C {\n"
    )
    assert list(comments(rust, rust=True)) == [(1, "Whether it waits."), (4, "Returns it.")]
    assert list(comments(page, rust=False)) == [(1, "`52 kB`."), (3, "Return")]


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("Returns the rate, bit/s.", True),
        ("Return true if it waits.", True),
        ("As `take`, with the repairs.", True),
        ("Whether it waits.", False),
        ("The rate of a link.", False),
        ("`52.0 kB`, decimal.", False),
        ("*rows* with updates.", False),
    ],
)
def test_verbs_are_known_from_other_words(text: str, right: bool) -> None:
    assert begins_with_a_verb(text) == right


@pytest.mark.parametrize(("folder", "suffixes"), [("native", (".rs",)), ("webui/src", (".ts", ".tsx"))])
def test_doc_comments_begin_with_a_verb(folder: str, suffixes: tuple[str, ...]) -> None:
    files = [file for file in sorted((ROOT / folder).rglob("*.*")) if file.suffix in suffixes]
    wrong = [
        f"{file.relative_to(ROOT)}:{line}: {text}"
        for file in files
        if "target" not in file.relative_to(ROOT).parts
        for line, text in comments(file.read_text(encoding="utf-8"), rust=file.suffix == ".rs")
        if not begins_with_a_verb(text)
    ]
    assert files
    assert not wrong, "\n".join(["begin with what the function does (Return, Send, Note that):", *wrong])
