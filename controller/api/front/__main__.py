"""``python -m controller.api.front CONTROL LISTENER PARENT``: the HTTP process; its settings come on standard input.

The first two are descriptors, the last is the controller's process id. It ends when that does, however that ends; on
SIGTERM as soon as what was asked is answered. Tokens are among the settings, so they are no arguments.
"""

from __future__ import annotations

import asyncio
import logging
import resource
import signal
import socket
import sys
from typing import TYPE_CHECKING

from controller.process.parent_death import end_with
from plain.imports import imports_to_keep

if TYPE_CHECKING:
    from controller.api.front.limits import FrontSettings


async def main(control: int, listener: int, settings: FrontSettings) -> None:
    """Serve until the controller ends, or asks to. control, listener: descriptors from the controller."""
    from controller.api.front.server import HttpServer

    of_controller = socket.socket(fileno=control)
    of_controller.setblocking(False)
    ending = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, ending.set)

    def connect() -> socket.socket:
        ours, theirs = socket.socketpair()
        with theirs:
            socket.send_fds(of_controller, [b"n"], [theirs.fileno()])
        return ours

    await HttpServer(socket.socket(fileno=listener), connect, settings).serve(ending)


def _more_descriptors(connections: int) -> None:
    """Ask for more descriptors: many systems give a program fewer than it serves connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * connections if hard == resource.RLIM_INFINITY else min(hard, 2 * connections)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's is the controller's, which says when to end
    of_controller, of_clients, of_parent = map(int, sys.argv[1:4])
    end_with(of_parent)
    with imports_to_keep():
        import controller.api.front.server  # noqa: F401
        from controller.api.front.limits import FrontSettings
    given = FrontSettings.from_json(sys.stdin.buffer.read())
    _more_descriptors(given.limits.connections)
    asyncio.run(main(of_controller, of_clients, given))
