"""A token bucket: what may happen often for a moment, and only so often in the long run."""

from __future__ import annotations


class TokenBucket:
    """Holds *burst* tokens at most, and as many at first. Times are in seconds, by the caller's clock."""

    def __init__(self, burst: float, now: float) -> None:
        self._burst = burst
        self._level = burst
        self._at = now

    def level(self, per_s: float, now: float) -> float:
        """Return how many tokens there are, after *per_s* have come each second since the last call; below 0: owed."""
        self._level = min(self._burst, self._level + (now - self._at) * per_s)
        self._at = now
        return self._level

    def take(self, per_s: float, now: float) -> bool:
        """Take out a token if there is one; return whether there was. A billionth less than one counts, as rounding."""
        if self.level(per_s, now) < 1 - 1e-9:
            return False
        self.spend(1)
        return True

    def spend(self, tokens: float) -> None:
        """Take out tokens, whether they are there or not: the caller has looked at the level, or waits for it."""
        self._level -= tokens
