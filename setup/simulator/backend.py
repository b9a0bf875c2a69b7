"""Builds the wheel of what simulates (PEP 517): the native kernels' wheel, by maturin, rooms and page beside them."""

from __future__ import annotations

import base64
import hashlib
import os
import sys
import tomllib
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

HERE: Final = Path(__file__).resolve().parent
ROOT: Final = HERE.parents[1]
KINDS: Final = frozenset({".py", ".typed", ".yaml", ".json", ".csv", ".mako"})
"""Of files that rooms read at run time."""


def build_wheel(
    wheel_directory: str,
    config_settings: Mapping[str, Any] | None = None,
    metadata_directory: str | None = None,
) -> str:
    """Build the kernels and return the name of the wheel that has them and the rooms, in `wheel_directory`."""
    import maturin  # of the build's own environment

    check_page(ROOT / "webui")  # before minutes of compiling
    before = Path.cwd()
    with TemporaryDirectory() as built:
        os.chdir(ROOT / "native")
        try:
            native = maturin.build_wheel(built, kernel_settings(sys.platform, config_settings))
        finally:
            os.chdir(before)
        return with_rooms(Path(built) / native, Path(wheel_directory))


def kernel_settings(system: str, settings: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return maturin's settings for the kernels of a system: what moves packets of hosts is Linux's alone."""
    without = {} if system == "linux" else {"build-args": "--no-default-features"}
    return {**without, **(settings or {})}


def check_page(webui: Path) -> None:
    """Raise SystemExit unless the dashboard is built, and not older than its sources; *webui*: their folder."""
    built = webui / "dist" / "index.html"
    sources = [webui / "index.html", webui / "package-lock.json", webui / "vite.config.ts"]
    sources += [
        path for folder in ("src", "public") for path in (webui / folder).rglob("*") if path.is_file()
    ]
    if not built.is_file():
        problem = "is not built"
    elif newer := [path for path in sources if path.stat().st_mtime > built.stat().st_mtime]:
        problem = f"is older than {newer[0].relative_to(webui).as_posix()}"
    else:
        return
    raise SystemExit(
        f"the page in {built.parent} {problem}: build it with Node 20.19, 22.12 or newer, "
        f"and then the wheel again:  cd {webui} && npm ci --ignore-scripts && npm run build"
    )


def with_rooms(native: Path, directory: Path) -> str:
    """Write the wheel that has a native wheel's kernels, the rooms of this checkout and its page; return its name."""
    document = tomllib.loads((HERE / "pyproject.toml").read_text())
    project, rooms = document["project"], document["tool"]["capstan"]
    distribution = f"{project['name'].replace('-', '_')}-{project['version']}"
    info = f"{distribution}.dist-info"
    name = "-".join((distribution, *native.stem.split("-")[-3:])) + ".whl"
    with zipfile.ZipFile(native) as kernels:
        # maturin lays the library beside its type stubs, which would hide it as a package without code
        (library,) = (entry for entry in kernels.namelist() if entry.endswith((".so", ".pyd")))
        entries = {library.rpartition("/")[2]: kernels.read(library)}
        (tags,) = (entry for entry in kernels.namelist() if entry.endswith(".dist-info/WHEEL"))
        entries[f"{info}/WHEEL"] = kernels.read(tags)
    entries |= {path.relative_to(ROOT).as_posix(): path.read_bytes() for path in _files(rooms)}
    scripts = "".join(f"{script} = {target}\n" for script, target in project["scripts"].items())
    entries[f"{info}/entry_points.txt"] = f"[console_scripts]\n{scripts}".encode()
    entries[f"{info}/METADATA"] = _metadata(project).encode()
    record = "".join(f"{entry},{digest(content)},{len(content)}\n" for entry, content in entries.items())
    entries[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    with zipfile.ZipFile(directory / name, "w", zipfile.ZIP_DEFLATED) as wheel:
        for entry, content in entries.items():
            wheel.writestr(zipfile.ZipInfo(entry, (2020, 1, 1, 0, 0, 0)), content, zipfile.ZIP_DEFLATED)
    return name


def _files(tool: Mapping[str, Any]) -> Iterator[Path]:
    """Yield the page's files and those of the rooms; of commands and labs what is of use without a checkout."""
    commands = ROOT / "cli" / "commands"
    for room in tool["rooms"]:
        for path in sorted((ROOT / room).rglob("*")):
            left_out = path.parent == commands and path.stem not in {"__init__", *tool["commands"]}
            built = {"__pycache__", "build"} & {*path.relative_to(ROOT).parts}
            if path.suffix in KINDS and not built and not left_out:
                yield path
    yield from (path for path in sorted((ROOT / tool["page"]).rglob("*")) if path.is_file())
    for lab in sorted((ROOT / tool["labs"]).glob("[0-9]*/")):
        yield from (path for path in sorted(lab.iterdir()) if path.suffix in KINDS | {".md"})


def _metadata(project: Mapping[str, Any]) -> str:
    """Return the core metadata (PEP 566) of a project table."""
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {project['name']}",
        f"Version: {project['version']}",
        f"Summary: {project['description']}",
        f"License: {project['license']}",
        f"Requires-Python: {project['requires-python']}",
        *(f"Requires-Dist: {requirement}" for requirement in project["dependencies"]),
    ]
    return "\n".join(lines) + "\n"


def digest(content: bytes) -> str:
    """Return a digest as RECORD has it (PEP 427)."""
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
