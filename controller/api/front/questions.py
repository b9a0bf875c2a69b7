"""Request collapsing: who asks for the same thing while it waits for its turn gets the same answer.

Answers are made in one process with the control plane, in turn; fifty pages that ask for the same would each wait for
fifty of them. An answer is shared only by requests that were there, whole, before it was begun: each gets what it would
have got alone, at a later time than it asked. Requests are the same if their first lines and all their headers are,
tokens and ``If-None-Match`` among them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Asker = TypeVar("Asker")


@dataclass(slots=True)
class Question(Generic[Asker]):
    """Who asks for the same; ``same`` is None where nobody else may have the answer."""

    same: Hashable | None
    askers: list[Asker] = field(default_factory=list)


class Questions(Generic[Asker]):
    """Those that wait, the first to be answered first."""

    def __init__(self) -> None:
        self._waiting: deque[Question[Asker]] = deque()
        self._joinable: dict[Hashable, Question[Asker]] = {}
        self.collapsed = 0
        """Requests that joined another one."""

    def __len__(self) -> int:
        """Requests that wait."""
        return sum(len(one.askers) for one in self._waiting)

    def add(self, asker: Asker, same: Hashable | None) -> bool:
        """A whole request is there; whether that makes one more question. same: see `Question`."""
        if same is not None and same in self._joinable:
            self._joinable[same].askers.append(asker)
            self.collapsed += 1
            return False
        question = Question(same, [asker])
        if same is not None:
            self._joinable[same] = question
        self._waiting.append(question)
        return True

    def next(self) -> Question[Asker] | None:
        """The one that has waited longest, to be begun: who asks from now on gets a later answer. None: none waits."""
        if not self._waiting:
            return None
        question = self._waiting.popleft()
        if question.same is not None:
            del self._joinable[question.same]
        return question
