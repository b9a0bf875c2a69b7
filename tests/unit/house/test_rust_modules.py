"""Files of Rust crates use each other in one direction, as Python's modules do."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.import_contracts import circles
from tests.rust_modules import files_used

NATIVE = Path(__file__).parents[3] / "native"
SOURCES = sorted(path for path in [NATIVE / "src", *NATIVE.glob("*/src")])


def test_all_crates_are_looked_at() -> None:
    assert len(SOURCES) == sum(1 for _ in NATIVE.glob("**/Cargo.toml"))


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.parent.name)
def test_files_of_a_crate_form_no_circle(source: Path) -> None:
    assert circles(files_used(source)) == []


def test_a_circle_is_found_however_it_is_written(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "lib.rs").write_text("mod inner;\nmod one;\n")
    (tmp_path / "inner/mod.rs").write_text("mod two;\n")
    (tmp_path / "one.rs").write_text("use crate::{inner::{two::{self, Thing}, Other as Else}, Error};\n")
    (tmp_path / "inner/two.rs").write_text(
        "// use super::three;\nfn f() -> crate::one::Thing { super::super::g() }\n"
    )
    (tmp_path / "three.rs").write_text(
        "use super::one::Thing;\n#[cfg(test)]\nmod tests { use crate::four; }\n"
    )
    assert files_used(tmp_path) == {
        "inner/mod.rs": set(),
        "inner/two.rs": {"one.rs"},
        "lib.rs": set(),
        "one.rs": {"inner/two.rs"},
        "three.rs": {"one.rs"},
    }
    assert [set(circle) for circle in circles(files_used(tmp_path))] == [{"one.rs", "inner/two.rs"}]
