"""What every target is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence


class Target(ABC):
    """``samples``: messages that are right, which cases are made of."""

    samples: Sequence[bytes]

    @abstractmethod
    def run(self, messages: Sequence[bytes]) -> None:
        """Feed one case. Raises whatever the product must not raise, and AssertionError for what it must not do."""

    def close(self) -> None:  # noqa: B027 (most have nothing to close)
        """Check what holds after all cases, and end."""
