"""The compiled parser reads what the other reads, and no problem is said in other words."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from plain import yaml_source
from plain.yaml_source import Source, read

ROOT = Path(__file__).resolve().parents[3]
FOLDERS = ("controller/schemes", "experiments/presets", "simulation/reasons", "classroom")
FILES = sorted(path for folder in FOLDERS for path in ROOT.joinpath(folder).rglob("*.yaml"))
# fmt: off
PIECES = [
    "a", "b: ", "- ", "-", ": ", ":", "\n", "\n  ", "\n    ", "{", "}", "[", "]", ", ", "&x ", "*x", "<<: ", "# c\n",
    "'", '"', "|\n", ">-\n  ", "---\n", "...\n", "!!str ", "! ", "%YAML 1.1\n", "? ", "\t", "\r\n", "\x85", "\ufeff",
    "1", "0x1F", "1:30", ".inf", "yes", "true", "~", "2001-01-01", "\x00", "\x07", "é", "😀", "\ud800", "\\x41", "@",
]
# fmt: on


def both(text: str) -> tuple[Source, Source]:
    compiled = read(text, "x.yaml")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(yaml_source.yaml, "__with_libyaml__", False)
        return compiled, read(text, "x.yaml")


def test_the_parser_is_compiled_here() -> None:
    assert yaml.__with_libyaml__, "else the tests below compare nothing"
    assert len(FILES) > 100


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_files_of_ours_are_the_same_with_all_their_places(path: Path) -> None:
    compiled, other = both(path.read_text(encoding="utf-8"))
    assert compiled == other
    assert list(compiled.values) == list(other.values)


@given(st.lists(st.sampled_from(PIECES), max_size=25).map("".join))
def test_drawn_texts_have_the_same_data_and_the_same_problems(text: str) -> None:
    compiled, other = both(text)
    assert repr(compiled.data) == repr(other.data)
    # Of an empty value within brackets the column may differ.
    said, expected = (
        [(one.line, one.path, one.message) for one in source.problems] for source in (compiled, other)
    )
    assert said == expected
