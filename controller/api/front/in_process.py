"""The HTTP server in a thread of the controller's own process, for a controller that has no fabric to keep from it.

It needs no system that passes descriptors between processes, so it runs where `controller.api.front.process` cannot.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from functools import partial
from wsgiref.types import WSGIApplication

from controller.api.front.backend import serve
from controller.api.front.frames import read_taken_here, send_taken_here
from controller.api.front.limits import BACKLOG, FrontSettings
from controller.api.front.server import HttpServer
from controller.process.control_thread import ControlThread
from loops.thread import LoopThread


class HttpThread:
    """An HTTP server for *app*, at an address that it has from its construction on. Raises OSError if it cannot.

    address: IPv4 or IPv6; port 0: any that is free.
    """

    def __init__(self, app: WSGIApplication, address: str, port: int, settings: FrontSettings) -> None:
        self._app = app
        self._settings = settings
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self._listener = socket.create_server((address, port), family=family, backlog=BACKLOG)
        self._thread = LoopThread(
            "http",
            self._open,
            self._close,
            subject="the HTTP server",
            error=OSError,
            errors_end=True,
            make_thread=ControlThread,
        )

    @property
    def port(self) -> int:
        """Return the TCP port that it listens on."""
        number: int = self._listener.getsockname()[1]
        return number

    def start(self) -> None:
        """Begin to answer; who connects before waits."""
        self._thread.start()

    def stop(self) -> None:
        """End it; what is being answered is answered, if that takes no longer than the settings say."""
        self._thread.stop()
        self._listener.close()

    async def _open(self) -> None:
        self._ending = asyncio.Event()
        server = HttpServer(self._listener, self._connect, self._settings, send_taken_here)
        self._serving = asyncio.create_task(server.serve(self._ending))
        self._serving.add_done_callback(lambda done: done.result())  # an error ends the thread, with its text

    async def _close(self) -> None:
        self._ending.set()
        await self._serving

    def _connect(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        work = partial(serve, theirs, self._app, read_taken_here)
        threading.Thread(target=work, name="api", daemon=True).start()
        return ours
