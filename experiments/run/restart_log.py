"""Posts parts that were started again to the lab's controller, which may be the part that was away."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from capstan_client.controller import ControllerClient
from capstan_client.errors import ControllerError
from experiments.run.supervision import Restart


class RestartLog:
    """client: makes a client of the controller."""

    def __init__(self, client: Callable[[], ControllerClient]) -> None:
        self._client = client
        self._waiting: deque[Restart] = deque()
        self._posting = threading.Lock()

    def add(self, restart: Restart) -> None:
        """Post this restart, and those that the controller missed. Returns at once."""
        self._waiting.append(restart)
        threading.Thread(target=self._post, name="capstan-restart-log", daemon=True).start()

    def _post(self) -> None:
        with self._posting, self._client() as client:
            while self._waiting:
                try:
                    client.add_restart(self._waiting[0].part, self._waiting[0].how, self._waiting[0].after_s)
                except ControllerError:
                    return  # its own return is a restart, too: then the others follow
                self._waiting.popleft()
