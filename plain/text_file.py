"""Files of text that people give."""

from __future__ import annotations

from pathlib import Path

from capstan_client.errors import NoTextError


def read_text(path: Path) -> str:
    """Return the text of a file in UTF-8, without the mark that some programs begin one with.

    Raises OSError where it cannot be read, NoTextError where it is no text.
    """
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise NoTextError(path, error) from None
