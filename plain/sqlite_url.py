"""A file as the URL by which SQLAlchemy opens it as an SQLite database."""

from __future__ import annotations

from pathlib import Path


def sqlite_url(file: Path) -> str:
    """Return the URL of an SQLite database in *file*, whose path may have any letters: a URL's own are escaped."""
    return f"sqlite:///{str(file).replace('%', '%25').replace('?', '%3F')}"
