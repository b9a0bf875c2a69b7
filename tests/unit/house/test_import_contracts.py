"""The package table of docs/architecture.md as import-linter's contract, and circles of imports."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.import_contracts import Crossing, circles, crossings, package_table

ROOT = Path(__file__).resolve().parents[3]
TABLE = """
| package | what it holds | may import |
|---|---|---|
| `low/` | what all need | nothing of ours |
| `high/` | `one/`, `two/` | `low` (what is light), `middle/part` |
| `middle/` | [more](more.md) | `low` |
| `top/` | commands | all |
"""


def test_rows_say_what_a_room_may_import() -> None:
    assert package_table(TABLE) == {
        "low": frozenset(),
        "high": frozenset({"low", "middle.part"}),
        "middle": frozenset({"low"}),
        "top": None,
    }
    with pytest.raises(ValueError, match="names no package"):
        package_table("| `low/` | what all need | whatever |\n")


@pytest.mark.parametrize(
    ("importer", "imported", "allowed"),
    [
        ("high.one", "low.text", True),
        ("high.one", "middle.part.inner", True),
        ("high.one", "middle.partial", False),
        ("high.one", "middle", False),
        ("low.text", "high", False),
        ("middle.part", "middle.other", True),
        ("middle.part", "numpy", True),
        ("top.run", "middle.part", True),
        ("unlisted.module", "low", False),
    ],
)
def test_only_listed_rooms_are_imported(importer: str, imported: str, allowed: bool) -> None:
    found = list(crossings(package_table(TABLE), [(importer, imported)]))
    assert found == ([] if allowed else [Crossing(importer, imported)])


@given(st.dictionaries(st.sampled_from("abcdefg"), st.frozensets(st.sampled_from("abcdefgx"))))
def test_circles_are_the_groups_that_reach_each_other(imports: dict[str, frozenset[str]]) -> None:
    reached = {module: {target for target in imports[module] if target in imports} for module in imports}
    for _ in imports:
        for module, targets in reached.items():
            reached[module] = targets.union(*(reached[target] for target in targets))
    groups = {
        tuple(sorted({other for other in imports if other in reached[module] and module in reached[other]}))
        for module in imports
        if module in reached[module]
    }
    assert circles(imports) == sorted(group for group in groups if len(group) > 1)


def lint(directory: Path, importing: str) -> subprocess.CompletedProcess[str]:
    """Run `lint-imports` on a project of two packages, of which `low` holds *importing*."""
    for package, text in (("low", importing), ("middle", "")):
        (directory / package).mkdir()
        (directory / package / "__init__.py").write_text("")
        (directory / package / "module.py").write_text(text)
    (directory / "table.md").write_text(TABLE)
    (directory / "pyproject.toml").write_text(
        '[tool.importlinter]\nroot_packages = ["low", "middle"]\n'
        'contract_types = ["packages: tests.import_contracts.PackageTable"]\n'
        '[[tool.importlinter.contracts]]\nname = "packages"\ntype = "packages"\ntable = "table.md"\n'
    )
    return subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{directory}"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_an_import_that_the_table_forbids_is_named_with_its_line(tmp_path: Path) -> None:
    wrong = lint(tmp_path, "import os\n\nfrom middle import module\n")
    assert wrong.returncode == 1
    assert "low.module imports middle.module (line 3)" in wrong.stdout


def test_imports_that_the_table_allows_pass(tmp_path: Path) -> None:
    fine = lint(tmp_path, "import os\n")
    assert fine.returncode == 0, fine.stdout + fine.stderr


def test_the_contracts_look_at_every_package_of_the_table() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    table = package_table((ROOT / "docs" / "architecture.md").read_text())
    packages = set(table) - {"native", "webui"}  # Rust and TypeScript
    assert set(settings["importlinter"]["root_packages"]) == packages
    assert set(settings["mypy"]["packages"]) == packages
    found = {path.parent.name for path in ROOT.glob("*/__init__.py")} - {"tests"}
    assert found == packages
