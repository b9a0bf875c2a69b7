"""JSON within limits; other threads run while it is read, and between pieces of what is built."""

from typing import Any

class JsonError(ValueError):
    """What was given is not JSON (the text says why, and where), or nested too deeply."""

class LongTextError(ValueError):
    """JSON has a text that is too long."""

class JsonContent:
    """Bytes of JSON (UTF-8), collected in pieces.

    expected_bytes: of all pieces together; memory is reserved for them.
    """

    def __init__(self, expected_bytes: int) -> None: ...
    def __len__(self) -> int: ...
    def add(self, piece: bytes) -> None: ...
    def most_values(self) -> int:
        """Return how many values there are at most, by the characters that separate them."""
    def take(self, most_text_bytes: int) -> Any:
        """Return what the bytes hold, as `json.loads`, and forget them. Raises JsonError, LongTextError.

        Whole numbers above 64 bits are floats.
        """
