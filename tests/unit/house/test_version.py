"""One version: files that cannot import `protocol.version` say the same."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from protocol.version import VERSION

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    "file", ["pyproject.toml", "capstan_client/pyproject.toml", "setup/simulator/pyproject.toml"]
)
def test_python_packages_have_the_version(file: str) -> None:
    assert tomllib.loads((ROOT / file).read_text())["project"]["version"] == VERSION


def test_images_have_the_version() -> None:
    tags = re.findall(r"image: capstan-\w+:(\S+)", (ROOT / "docker-compose.yml").read_text())
    assert tags == [VERSION] * 3


def test_the_newest_section_of_the_changelog_is_of_this_version() -> None:
    sections = re.findall(
        r"^## \[([^]]+)\] - (\d{4}-\d\d-\d\d)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE
    )
    assert sections[0][0] == VERSION


def test_the_page_has_no_version_of_its_own() -> None:
    assert '"version"' not in (ROOT / "webui/package.json").read_text()
