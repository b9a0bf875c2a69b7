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

ANNOUNCED: Final = """
import socket, sys
address, port, own, root = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
sys.path.insert(0, root)
from workloads.announce import announce
total = 200_000_000
with socket.socket() as flow:
    flow.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
    flow.bind((own, 0))
    assert announce(flow.getsockname(), (address, port), total)
    flow.connect((address, port))
    flow.sendall(bytes(total))
"""
"""ADDRESS PORT OWN ROOT: one flow whose size, too large to end here, is announced to the host's agent."""

SMALL: Final = """
import socket, sys
for number in range(120):
    with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=60) as flow:
        flow.sendall(bytes(500 + number))
        flow.shutdown(socket.SHUT_WR)
        assert flow.recv(1) == b""
"""
"""ADDRESS PORT: 120 flows of half a kilobyte, one after the other."""
