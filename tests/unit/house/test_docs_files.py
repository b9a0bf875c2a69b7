"""Files, tests and links that README and docs name are there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[3]
PAGES: Final = sorted(
    [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "docs/labs/README.md", *ROOT.glob("docs/*.md")]
)
MADE: Final = ("native/target", "webui/dist", "webui/node_modules", "figures/sweep.svg", "results/")
"""What only a build or a run makes, and the end of a route."""
BELOW: Final = {"simulator.md": ("native/simulator",)}
"""Folders from which a page names files, as it says."""
NAME: Final = re.compile(r"`([\w.-]+(?:/[\w.*-]+)+/?)`")
TEST_FILE: Final = re.compile(r"`(test_\w+\.py)`")
TEST: Final = re.compile(r"`(test_\w+)`")
LINK: Final = re.compile(r"\]\(([^)#:\s]+)(#[^)\s]*)?\)")
SUFFIXES: Final = (".py", ".rs", ".ts", ".tsx")
NOT_OURS: Final = frozenset({"node_modules", "target", "dist", "__pycache__"})


def sources(folder: Path) -> Iterator[str]:
    """Yield every source file of ours below *folder*."""
    for path in folder.iterdir():
        if path.is_dir() and path.name not in NOT_OURS and not path.name.startswith("."):
            yield from sources(path)
        elif path.suffix in SUFFIXES:
            yield path.relative_to(ROOT).as_posix()


SOURCES: Final = tuple(sources(ROOT))
TESTS: Final = {path.name: path for path in (ROOT / "tests").rglob("test_*.py")}


SOURCE: Final = re.compile(r"`([\w./-]*\w\.(?:py|rs|tsx?))`")
EXAMPLES: Final = (
    *("mine.py", "my_app.py", "my_lab1.py", "my_policy.py", "my_r.py", "my_types.py", "start.py"),
)
"""Files that readers write."""


def rooms() -> frozenset[str]:
    return frozenset(path.name for path in ROOT.iterdir() if path.is_dir())


def there(name: str, page: Path) -> bool:
    places = (ROOT, *(ROOT / folder for folder in BELOW.get(page.name, ())))
    return any(list(place.glob(name.rstrip("/"))) for place in places)


def of_ours(name: str) -> bool:
    """Return whether a source file of ours ends so: pages name files below the folder that they speak of."""
    return any(f"/{path}".endswith(f"/{name}") for path in SOURCES)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_that_a_page_names_are_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    named = [name for name in NAME.findall(text) if name.partition("/")[0] in rooms()]
    missing = [name for name in named if not name.startswith(MADE) and not there(name, page)]
    missing += [name for name in SOURCE.findall(text) if name not in EXAMPLES and not of_ours(name)]
    missing += [target for target, _ in LINK.findall(text) if not (page.parent / target).exists()]
    missing += [name for name in TEST_FILE.findall(text) if name not in TESTS]
    assert not missing


def test_tests_that_a_page_names_are_there() -> None:
    tests = "\n".join(path.read_text(encoding="utf-8") for path in TESTS.values())
    functions = set(re.findall(r"def (test_\w+)\(", tests))
    named = {name for page in PAGES for name in TEST.findall(page.read_text(encoding="utf-8"))}
    assert named
    assert not named - functions


def test_every_preset_stands_in_the_table_of_presets() -> None:
    table = (ROOT / "docs/experiments.md").read_text(encoding="utf-8").partition("## Presets")[2]
    listed = set()
    for row in re.findall(r"^\| (`[^|]+) \|", table, re.MULTILINE):
        first, *others = re.findall(r"`([^`]+)`", row)
        listed |= {first} | {
            first.partition("-")[0] + name if name.startswith("-") else name for name in others
        }
    assert listed == {file.stem for file in (ROOT / "experiments/presets").glob("*.yaml")}
