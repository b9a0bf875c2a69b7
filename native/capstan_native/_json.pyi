"""JSON within limits; other threads run while it is read, and between pieces of what is built."""

from typing import Any

class JsonError(ValueError):
    """What was given is not JSON (the text says why, and where), or nested too deeply."""

class LongTextError(ValueError):
    """JSON has a text that is too long."""

def most_json_values(content: bytes | bytearray) -> int:
    """Return how many values *content* holds at most, by the characters that separate them."""

def read_json(content: bytes | bytearray, most_text_bytes: int) -> Any:
    """Return what *content* (UTF-8) holds, as `json.loads`. Raises JsonError, LongTextError.

    Whole numbers above 64 bits are floats.
    """
