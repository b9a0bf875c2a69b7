"""``python -m controller.api.front CONTROL LISTENER WORKERS MAX_BODY_BYTES PATIENCE_S PARENT``: the HTTP process.

The first two are descriptors, the last is the controller's process id. It ends when that does, however that ends; on
SIGTERM as soon as what was asked is answered, for which it has so many seconds.
"""

from __future__ import annotations

import asyncio
import logging
import resource
import signal
import socket
import sys

from controller.api.front.server import MOST_CONNECTIONS, HttpServer
from controller.parent import end_with


async def main(control: int, listener: int, workers: int, max_body_bytes: int, patience_s: float) -> None:
    of_controller = socket.socket(fileno=control)
    of_controller.setblocking(False)
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, told.set)

    def connect() -> socket.socket:
        ours, theirs = socket.socketpair()
        with theirs:
            socket.send_fds(of_controller, [b"n"], [theirs.fileno()])
        return ours

    server = HttpServer(socket.socket(fileno=listener), connect, workers, max_body_bytes)
    await server.serve(told, patience_s)


def _more_descriptors() -> None:
    """Many systems give a program fewer than it serves connections, and let it ask for more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * MOST_CONNECTIONS if hard == resource.RLIM_INFINITY else min(hard, 2 * MOST_CONNECTIONS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's is the controller's, which tells us when
    _more_descriptors()
    of_controller, of_clients, of_workers, of_bytes = map(int, sys.argv[1:5])
    end_with(int(sys.argv[6]))
    asyncio.run(main(of_controller, of_clients, of_workers, of_bytes, float(sys.argv[5])))
