"""Text of students, as terminals and files take it: names of files and folders, and what submissions say."""

from __future__ import annotations


def printable(text: str) -> str:
    """Return *text* with a replacement character for each control character, escape and half of a character."""
    return "".join(
        letter if letter.isprintable() or letter in "\n\t" else "\N{REPLACEMENT CHARACTER}" for letter in text
    )


def printable_name(name: object) -> str:
    """Return the name of a file or folder in one line, with escapes of Python for what does not print."""
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in str(name)
    )
