"""Programs for hosts of a lab, so that there is something to see: they run until they are ended."""

from __future__ import annotations

from typing import Final

SINK: Final = """
import socketserver, sys
class Sink(socketserver.BaseRequestHandler):
    def handle(self):
        try:
            while self.request.recv(1 << 16):
                pass
        except OSError:
            pass
class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True
    request_queue_size = 64
server = Server(("0.0.0.0", int(sys.argv[1])), Sink)
print("listening", flush=True)
server.serve_forever()
"""
"""PORT: takes what comes."""

SHORT: Final = """
import socket, sys, threading
def flows(address, port, size):
    while True:
        with socket.create_connection((address, port)) as flow:
            flow.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
            flow.sendall(bytes(size))
            flow.shutdown(socket.SHUT_WR)
            flow.recv(1)
threads = [threading.Thread(target=flows, args=(sys.argv[1], int(sys.argv[2]), 60_000)) for _ in range(4)]
for thread in threads:
    thread.start()
"""
"""ADDRESS PORT: four senders of flows of 60 kB, one after the other each: short flows are there all the time."""

LONG: Final = """
import socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2]))) as flow:
    flow.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
    while True:
        flow.sendall(bytes(65536))
"""
"""ADDRESS PORT: one flow without an end."""
