"""The TUN device with super-packets and, where the kernel refuses them, without: probed and used on real devices."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import select, socket, sys
from capstan_native import complete_checksum
from host_agent import tun as module
from host_agent.inner_packet import UDP, look
from tests.unit.inner_packets import check_ip, check_transport, udp

if sys.argv[1] == "refused":
    module._OFFLOADS |= 1 << 30  # an offload that no kernel knows: TUNSETOFFLOAD says EINVAL
tun = module.Tun("probe0", ["10.99.0.1/24"], 1426, offloads=sys.argv[1] != "unwanted")
ours = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
ours.settimeout(60)
ours.bind(("10.99.0.1", 4000))
ours.sendto(b"question", ("10.99.0.2", 4001))
while True:
    assert select.select([tun.fd], [], [], 60)[0], "the packet does not come"
    got = tun.read()
    if got is None:
        continue
    packet, size, seen = got
    if look(packet).protocol == UDP:
        break
assert size == 0 and packet.endswith(b"question")
assert seen in (None, look(packet))
check_ip(packet)
if not tun.super_packets:
    check_transport(packet, 20, UDP)
check_transport(complete_checksum(packet), 20, UDP)
for partial in (False, True):  # a peer may hand over either
    assert tun.write([udp(b"answer", "10.99.0.2", "10.99.0.1", ports=(4001, 4000), partial=partial)]) == 0
    assert ours.recv(100) == b"answer"

# a flow of TCP to nowhere: its SYN is read whole
stream = socket.socket()
stream.setblocking(False)
stream.connect_ex(("10.99.0.2", 80))
while True:
    assert select.select([tun.fd], [], [], 60)[0], "the SYN does not come"
    got = tun.read()
    if got is not None and look(got[0]).opening:
        break
tun.close()
print("super-packets" if tun.super_packets else "plain")
"""


@pytest.mark.parametrize(
    ("kernel", "kind"), [("willing", "super-packets"), ("refused", "plain"), ("unwanted", "plain")]
)
def test_packets_come_and_go(kernel: str, kind: str) -> None:
    done = subprocess.run(
        ["unshare", "--net", sys.executable, "-c", PROGRAM, kernel],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.strip() == kind, done.stderr


KEPT = """
import os, socket, subprocess, sys
from host_agent.inner_packet import look
from host_agent.tun import Tun

AGENT = '''
import select, sys
from host_agent.inner_packet import look
from host_agent.tun import Tun
tun = Tun("probe0", ["10.99.0.1/24", "fd99::1/64"], 1426, congestion_control="cubic", persistent=True)
print("open", flush=True)
while sys.argv[1] == "reads":
    assert select.select([tun.fd], [], [], 60)[0], "the packet does not come"
    got = tun.read()
    if got is not None and look(got[0]).opening:
        print("SYN", flush=True)
sys.stdin.readline()
tun.close()
'''

def agent(what):
    argv, pipe = [sys.executable, "-c", AGENT, what], subprocess.PIPE
    process = subprocess.Popen(argv, stdin=pipe, stdout=pipe, text=True)
    assert process.stdout.readline() == "open\\n"
    return process

def state():
    def show(name):
        done = subprocess.run(["ip", "-o", *name.split(), "show", "dev", "probe0"], capture_output=True, text=True)
        return sorted(line.replace(" linkdown", "").split(" valid_lft")[0] for line in done.stdout.splitlines())
    return [show(name) for name in ("addr", "route", "-6 route")]

first = agent("waits")
before = state()
assert len(before[0]) == 2 and "congctl cubic" in before[1][0], before
first.kill()
first.wait()
assert state() == before, (before, state())
stream = socket.socket()
stream.setblocking(False)
assert stream.connect_ex(("10.99.0.2", 80)) == 115, "EINPROGRESS: the connection waits"
second = agent("reads")
assert state() == before
assert second.stdout.readline() == "SYN\\n", "TCP has tried again"
assert stream.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
second.kill()
second.wait()
third = agent("waits")
third.communicate("end\\n")
assert third.returncode == 0
assert not os.path.exists("/proc/sys/net/ipv4/conf/probe0"), "who closes it removes it"
"""


def test_a_persistent_device_outlives_a_killed_agent_and_its_connections_wait() -> None:
    done = subprocess.run(
        ["unshare", "--net", sys.executable, "-c", KEPT],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
