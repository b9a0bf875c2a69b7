"""A user's Python file: where in it an error was raised."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from plain.python_file import failure_text, load


@pytest.mark.parametrize("given", ["my.py", "./my.py", "../here/my.py"])
def test_the_line_of_an_error_is_named_however_the_file_is_given(
    given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    (here / "my.py").write_text("zero = 0\n1 / zero\n", encoding="utf-8")
    monkeypatch.chdir(here)
    for file in (Path(given), Path(given).absolute()):
        with pytest.raises(ZeroDivisionError) as raised:
            load(file, "mine")
        assert failure_text(file, raised.value) == f"{file}, line 2: ZeroDivisionError: division by zero"


def test_a_file_may_have_dataclasses_whose_annotations_are_texts(tmp_path: Path) -> None:
    """They failed with "'NoneType' object has no attribute '__dict__'": dataclasses look up the module by its name."""
    file = tmp_path / "my.py"
    file.write_text(
        "from __future__ import annotations\nfrom dataclasses import dataclass\n"
        "@dataclass\nclass Sent:\n    bytes: int = 7\n",
        encoding="utf-8",
    )
    module = load(file, "capstan_test_of_a_file")
    assert module is not None
    assert module.Sent().bytes == 7
    assert sys.modules.pop("capstan_test_of_a_file") is module


def test_a_file_that_fails_is_no_module(tmp_path: Path) -> None:
    file = tmp_path / "my.py"
    file.write_text("raise SystemExit\n", encoding="utf-8")
    with pytest.raises(SystemExit):
        load(file, "capstan_test_of_a_file")
    assert "capstan_test_of_a_file" not in sys.modules
