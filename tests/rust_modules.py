"""Which files of a Rust crate use which, by their `use` lines and `crate::` paths, for a look for circles."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

_TESTS: Final = "#[cfg(test)]"
_COMMENT: Final = re.compile(r"//.*")
_USE: Final = re.compile(r"\buse\s+((?:crate|super)[^;]*);")
_PATH: Final = re.compile(r"\b(crate(?:::\w+)+)")
_GROUP: Final = re.compile(r"^([\w:]*?)(?:::)?\{(.*)\}$", re.DOTALL)


def files_used(source: Path) -> dict[str, set[str]]:
    """Return for each file below a crate's `src` the other files that it uses, named from there.

    A `mod.rs` that is used counts for nothing: it is the name of its folder, whose files use it for what they share.
    """
    files = {_module(path.relative_to(source)): path for path in sorted(source.rglob("*.rs"))}
    files = {module: path for module, path in files.items() if path.name != "tests.rs"}
    used: dict[str, set[str]] = {}
    for module, path in files.items():
        text = _COMMENT.sub("", path.read_text(encoding="utf-8").partition(_TESTS)[0])
        owners = {_owner(names, files) for names in _names(text, module)}
        used[str(path.relative_to(source))] = {
            str(owner.relative_to(source))
            for owner in owners
            if owner not in (None, path) and owner is not None
        }
    return used


def _module(file: Path) -> tuple[str, ...]:
    names = file.with_suffix("").parts
    return () if names in (("lib",), ("main",)) else names[:-1] if names[-1] == "mod" else names


def _owner(names: tuple[str, ...], files: Mapping[tuple[str, ...], Path]) -> Path | None:
    for length in range(len(names), 0, -1):
        if path := files.get(names[:length]):
            return None if path.name == "mod.rs" else path
    return None


def _names(text: str, module: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Return paths from the crate's root that a text of *module* uses."""
    lines = [name for group in _USE.findall(text) for name in _single(group, ())]
    lines += [tuple(path.split("::")) for path in _PATH.findall(text)]
    for names in lines:
        if names[0] == "crate":
            yield names[1:]
            continue
        at = module
        while names and names[0] == "super":
            at, names = at[:-1], names[1:]
        yield at + names


def _single(text: str, before: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Return each path of a `use` tree."""
    text = text.strip()
    group = _GROUP.match(text)
    if group is None:
        yield before + tuple(name for name in text.partition(" as ")[0].split("::") if name)
        return
    before += tuple(name for name in group[1].split("::") if name)
    depth, start = 0, 0
    for place, letter in enumerate(group[2] + ","):
        depth += (letter == "{") - (letter == "}")
        if letter == "," and depth == 0:
            if group[2][start:place].strip():
                yield from _single(group[2][start:place], before)
            start = place + 1
