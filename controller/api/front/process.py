"""Starts the HTTP process, keeps it, and ends it: what the controller holds of it."""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final
from wsgiref.types import WSGIApplication

from controller.api.front.backend import serve_control
from controller.api.front.limits import BACKLOG, FrontSettings
from controller.process.control_thread import ControlThread

_LOG: Final = logging.getLogger("capstan.api")
ROOT: Final = Path(__file__).resolve().parents[3]
AGAIN_S: Final = 0.5
"""Between the end of a process that has ended soon after its begin and the next one; else that follows at once."""
SOON_S: Final = 5.0
MOST_ENDS: Final = 5
"""Ends within WITHIN_S that are no chance any more: there is no API, and the controller is to end."""
WITHIN_S: Final = 60.0
GRACE_S: Final = 3.0
"""Beyond the patience of its settings, after which it is killed."""


class HttpFront:
    """An HTTP server for *app*, at an address that it has from its construction on. Raises OSError if it cannot.

    address: IPv4 or IPv6; port 0: any that is free. on_restart: gets the return code of a process that ended, and the
    seconds until the next one was started. on_given_up: gets the reason why there is none any more.
    """

    def __init__(
        self,
        app: WSGIApplication,
        address: str,
        port: int,
        settings: FrontSettings,
        *,
        on_restart: Callable[[int, float], None] = lambda code, after_s: None,
        on_given_up: Callable[[str], None] = lambda why: None,
    ) -> None:
        self._app = app
        self._settings = settings
        self._on_restart = on_restart
        self._on_given_up = on_given_up
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self._listener = socket.create_server((address, port), family=family, backlog=BACKLOG)
        self._process: subprocess.Popen[bytes] | None = None
        self._keeper: ControlThread | None = None
        self._ending = threading.Event()
        self._beginning = threading.Lock()

    @property
    def port(self) -> int:
        """Return the TCP port that it listens on."""
        number: int = self._listener.getsockname()[1]
        return number

    @property
    def pid(self) -> int | None:
        """Return the process's id, while there is one."""
        return None if self._process is None else self._process.pid

    def start(self) -> None:
        """Begin to answer; who connects before waits."""
        self._begin()
        self._keeper = ControlThread(self._keep, "http-front")
        self._keeper.start()

    def stop(self) -> None:
        """End it; what is being answered is answered, if that takes no longer than the settings say."""
        with self._beginning:
            self._ending.set()
            process = self._process
        if process is not None:
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)
            try:
                process.wait(self._settings.patience_s + GRACE_S)
            except subprocess.TimeoutExpired:
                process.kill()
        if self._keeper is not None:
            self._keeper.join()
        self._listener.close()

    def _begin(self) -> None:
        ours, theirs = socket.socketpair()
        argv = [
            sys.executable,
            "-P",  # nothing from our working directory, which may be another user's
            "-m",
            "controller.api.front",
            str(theirs.fileno()),
            str(self._listener.fileno()),
        ]
        with theirs:
            self._process = subprocess.Popen(
                [*argv, str(os.getpid())],
                pass_fds=(theirs.fileno(), self._listener.fileno()),
                stdin=subprocess.PIPE,
                env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *_python_path()])},
            )
        assert self._process.stdin is not None
        with (
            suppress(BrokenPipeError),
            self._process.stdin as to_process,
        ):  # one that has ended is started anew
            to_process.write(self._settings.to_json())
        threading.Thread(target=self._serve, args=(ours,), name="api-control", daemon=True).start()

    def _serve(self, control: socket.socket) -> None:
        with control:
            serve_control(control, self._app)

    def _keep(self) -> None:
        """Begin it anew whenever it ends, which it never should, until it has ended too often."""
        ends: deque[float] = deque(maxlen=MOST_ENDS)
        while self._process is not None:
            began = time.monotonic()
            code = self._process.wait()
            ended = time.monotonic()
            if self._ending.is_set():
                return
            _LOG.error("the API's HTTP process %d ended (%d); it is started anew", self._process.pid, code)
            ends.append(ended)
            if len(ends) == MOST_ENDS and ended - ends[0] < WITHIN_S:
                within = f"within {ended - ends[0]:.1f} s"
                self._on_given_up(
                    f"the API's HTTP process ended {MOST_ENDS} times {within}, the last time with {code}"
                )
                return
            if ended - began < SOON_S:
                self._ending.wait(AGAIN_S)
            with self._beginning:
                if self._ending.is_set():
                    return
                self._begin()
            self._on_restart(code, time.monotonic() - ended)


def _python_path() -> list[str]:
    path = os.environ.get("PYTHONPATH", "")
    return path.split(os.pathsep) if path else []
