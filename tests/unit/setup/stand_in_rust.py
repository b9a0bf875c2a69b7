"""A Rust that is none, for the launcher and its set-up to find."""

from __future__ import annotations

from pathlib import Path


def a_rust(folder: Path, version: str) -> Path:
    """Write programs that say to be of that version, and return their folder."""
    folder.mkdir(parents=True)
    for name in ("cargo", "rustc"):
        (folder / name).write_text(f"#!/bin/sh\necho {name} {version} '(0123 2025-01-01)'\n")
        (folder / name).chmod(0o755)
    return folder
