"""A user's Python file: where in it an error was raised."""

from __future__ import annotations

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
