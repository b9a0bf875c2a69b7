"""``python -m controller.api.front CONTROL LISTENER THREADS MAX_BODY_BYTES PATIENCE_S``: the HTTP process.

The first two are descriptors. It ends when the controller does, however that ends; on SIGTERM as soon as what is being
answered is, for which it has so many seconds.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import threading

from controller.api.front.forwarder import Forwarder
from controller.api.front.hand_over import make_server


def main(control: int, listener: int, threads: int, max_body_bytes: int, patience_s: float) -> None:
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's is the controller's, which tells us when
    told = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: told.set())
    of_controller = socket.socket(fileno=control)
    server = make_server(Forwarder(of_controller), socket.socket(fileno=listener), threads, max_body_bytes)
    threading.Thread(target=_end_with, args=(of_controller,), name="control", daemon=True).start()
    threading.Thread(target=server.run, name="http", daemon=True).start()
    while not told.wait(3600):
        continue
    server.task_dispatcher.shutdown(timeout=patience_s)
    server.close()


def _end_with(control: socket.socket) -> None:
    """The controller says nothing; it closes when it ends."""
    while control.recv(1):
        continue
    os._exit(0)


if __name__ == "__main__":
    of_controller, of_clients, of_threads, of_bytes = map(int, sys.argv[1:5])
    main(of_controller, of_clients, of_threads, of_bytes, float(sys.argv[5]))
