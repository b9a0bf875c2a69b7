"""Programs for hosts of a lab, run with ``python -c``: transfers over the overlay that prove themselves."""

from __future__ import annotations

RECEIVE = """
import hashlib, socket, sys
server = socket.create_server(("0.0.0.0", int(sys.argv[1])))
print("listening", flush=True)
connection, _ = server.accept()
digest, total = hashlib.sha256(), 0
while data := connection.recv(1 << 16):
    digest.update(data)
    total += len(data)
connection.sendall(digest.digest())
print(digest.hexdigest(), total, flush=True)
"""

HALVES = """
import hashlib, socket, sys
address, port, total = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
connection = socket.create_connection((address, port))
connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
data = hashlib.shake_256(b"capstan").digest(total)
connection.sendall(data[: total // 2])
print("half", flush=True)
connection.sendall(data[total // 2 : total // 2 + 100_000])
sys.stdin.readline()
connection.sendall(data[total // 2 + 100_000 :])
connection.shutdown(socket.SHUT_WR)
answer = b""
while received := connection.recv(64):
    answer += received
assert answer == hashlib.sha256(data).digest(), "the receiver got other bytes"
print(answer.hex(), total, flush=True)
"""

ANSWER = """
import socket, sys
server = socket.create_server(("0.0.0.0", int(sys.argv[1])))
print("listening", flush=True)
connection, _ = server.accept()
while connection.recv(1 << 16):
    connection.sendall(b".")  # a sender that pauses acknowledges it with a segment without data
"""

SEND = """
import hashlib, select, socket, sys, time
address, port, total, rate = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
until_asked = not total  # then a line on standard input ends it
connection = socket.socket()
connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
connection.connect((address, port))
print("connected", flush=True)
digest, sent, began = hashlib.sha256(), 0, time.monotonic()
block = hashlib.shake_256(b"capstan").digest(1 << 16)
while not sent or not select.select([sys.stdin], [], [], 0)[0] if until_asked else sent < total:
    piece = block if until_asked else block[: min(len(block), total - sent)]
    connection.sendall(piece)
    digest.update(piece)
    sent += len(piece)
    if rate:
        time.sleep(max(0.0, began + sent / rate - time.monotonic()))
connection.shutdown(socket.SHUT_WR)
answer = b""
while data := connection.recv(64):
    answer += data
assert answer == digest.digest(), "the receiver got other bytes"
print(digest.hexdigest(), sent, flush=True)
"""

BURSTS = """
import socket, sys, time
address, port, until = sys.argv[1], int(sys.argv[2]), time.monotonic() + float(sys.argv[3])
while time.monotonic() < until:
    with socket.create_connection((address, port)) as connection:
        connection.sendall(bytes(20000))
        connection.shutdown(socket.SHUT_WR)
        connection.recv(1)
    time.sleep(0.005)
"""

CONNECTIONS = """
import socket, sys
address, port, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
for _ in range(count):
    with socket.create_connection((address, port)) as connection:
        connection.sendall(bytes(20000))
        connection.shutdown(socket.SHUT_WR)
        connection.recv(1)
"""

DISCARD = """
import socket, sys, threading
server = socket.create_server(("0.0.0.0", int(sys.argv[1])), backlog=128)
print("listening", flush=True)
def drain(connection):
    with connection:
        while connection.recv(1 << 16):
            pass
while True:
    threading.Thread(target=drain, args=(server.accept()[0],), daemon=True).start()
"""

BLAST = """
import socket, sys, time
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
address, port, count, flows = sys.argv[1], *map(int, sys.argv[2:5])
for number in range(count):
    out.sendto(bytes(200), (address, port + number % flows))
    if number % 50 == 49:
        time.sleep(0.001)
"""

DATAGRAMS = """
import socket, sys, time
address, port, source, flows, bursts, packets, size = sys.argv[1], *map(int, sys.argv[2:8])
pause = float(sys.argv[8])
def taken():
    with open("/proc/net/dev") as devices:
        (device,) = (line for line in devices if line.lstrip().startswith("capstan0:"))
    return int(device.partition(":")[2].split()[9])
sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(flows)]
for number, out in enumerate(sockets):
    out.bind(("", source + number))
sent, before = 0, taken()
for burst in range(bursts):
    for number in range(packets * flows):
        sockets[number % flows].sendto(bytes(size), (address, port))
        sent += 1
        if number % 8 == 7:
            time.sleep(0.004)  # a rate that the fabric's links take
            end = time.monotonic() + 10
            # the device's queue is short, and the agent that reads it may wait for a processor
            while taken() - before < sent and time.monotonic() < end:
                time.sleep(0.001)
    time.sleep(pause)
"""
