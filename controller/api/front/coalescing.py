"""Request coalescing: requests for the same thing that wait for their turn get the same response.

Responses are made in one process with the control plane, in turn; fifty pages that ask for the same would each wait for
fifty of them. A response is shared only by requests that were complete before it was begun: each gets what it would
have got alone, at a later time than it was sent. Requests are the same if their first lines and all their headers are,
tokens and ``If-None-Match`` among them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Waiter = TypeVar("Waiter")


@dataclass(slots=True)
class CoalescedRequest(Generic[Waiter]):
    """One request for all its ``waiters``; ``same`` is equal for requests that may be coalesced, None for none."""

    same: Hashable | None
    waiters: list[Waiter] = field(default_factory=list)


class RequestQueue(Generic[Waiter]):
    """Requests that wait, first in, first out."""

    def __init__(self) -> None:
        self._waiting: deque[CoalescedRequest[Waiter]] = deque()
        self._joinable: dict[Hashable, CoalescedRequest[Waiter]] = {}
        self.coalesced = 0
        """Requests that joined another one."""

    def __len__(self) -> int:
        """Return how many waiters there are."""
        return sum(len(request.waiters) for request in self._waiting)

    def add(self, waiter: Waiter, same: Hashable | None) -> bool:
        """Queue a complete request. Return False if it joined another one. same: see `CoalescedRequest`."""
        if same is not None and same in self._joinable:
            self._joinable[same].waiters.append(waiter)
            self.coalesced += 1
            return False
        request = CoalescedRequest(same, [waiter])
        if same is not None:
            self._joinable[same] = request
        self._waiting.append(request)
        return True

    def next(self) -> CoalescedRequest[Waiter] | None:
        """Take the oldest request off the queue; later ones do not join it any more. Return None if none waits."""
        if not self._waiting:
            return None
        request = self._waiting.popleft()
        if request.same is not None:
            del self._joinable[request.same]
        return request
