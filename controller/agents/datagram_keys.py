"""Keys by which host agents authenticate their datagrams: one for each pair of hosts, followed by the next one in time.

Keys have numbers that count periods. An agent has three of each pair, those of the period before, of this one and of
the next, and sends by this one's: so agents that learn of a new period at different times take each other's datagrams
all along. A key follows from a secret of the controller, the period, and addresses and numbers of both agents' starts,
so nothing else need be kept. An agent that begins anew knows no more what has come, and takes nothing of before.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Mapping
from typing import Final

from protocol.control import DatagramKeys

PERIOD_S: Final = 3600.0
KEY_BYTES: Final = 16
NUMBERS: Final = 256
"""Of periods on the wire: a byte."""


class PairKeys:
    """Keys of all pairs.

    Args:
        secret: the controller's; who has it has all keys.
        began: seconds since 1970 at *now*, seconds of the caller's clock: a restart goes on in the same period.
    """

    def __init__(self, secret: str, began: float, now: float, period_s: float = PERIOD_S) -> None:
        self._secret = secret.encode()
        self._offset = began - now
        self._period_s = period_s

    def period(self, now: float) -> int:
        """Return the number of the period at *now*."""
        return int((now + self._offset) // self._period_s)

    def ends_in(self, now: float) -> float:
        """Return the seconds until the next period."""
        return (self.period(now) + 1) * self._period_s - (now + self._offset)

    def of_host(
        self, address: str, others: Iterable[str], now: float, sessions: Mapping[str, int] | None = None
    ) -> DatagramKeys:
        """Return the keys of the host at *address* with each of *others*. sessions: numbers of agents' starts, by
        address."""
        period, starts = self.period(now), sessions or {}
        periods = range(max(0, period - 1), period + 2)

        def end(of: str) -> str:
            return f"{of} {starts.get(of, 0)}"

        return DatagramKeys(
            period % NUMBERS,
            {
                other: {
                    str(number % NUMBERS): self._key(end(address), end(other), number).hex()
                    for number in periods
                }
                for other in others
                if other != address
            },
        )

    def _key(self, one: str, other: str, period: int) -> bytes:
        pair = "|".join(sorted((one, other)))
        return hmac.digest(self._secret, f"datagrams|{period}|{pair}".encode(), hashlib.sha256)[:KEY_BYTES]
