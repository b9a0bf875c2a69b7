"""CAPTON's window clamp on the kernel's own TCP: held, granted, stopped, granted again, and nothing is sent twice."""

from __future__ import annotations

import fcntl
import ipaddress
import math
import os
import select
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from controller.capton.admission import AdmissionControl, Answers
from controller.capton.fabric import HostPlace, Rates, VirtualFabric
from controller.capton.scheduler import Scheduler
from host_agent.admission.closed_windows import probing, segment_outside_window
from host_agent.inner_packet import look
from protocol.admission import AdmissionPolicy, Finished, Request, Stop
from tests.unit.admission_agent import OVERHEAD_BYTES, PEER, AdmittingAgent

RATE = 20_000_000
SIZE = 3_000_000
MSS = 1400
STOP_AT = SIZE // 3
LEAST_TIMEOUT_S = 2.0
"""TCP's least retransmission time-out here: it is not to be taken for one where a busy machine keeps us waiting."""
STOPPED_S = 5.0
"""Longer than that, and than the first window probe."""
PATIENT = AdmissionPolicy(fail_safe_s=60.0)
"""A busy machine may keep us for longer than the time after which a flow goes on unasked."""
_SERVER = """
import socket
server = socket.create_server(("10.77.0.2", 7000))
print("listening", flush=True)
connection, _ = server.accept()
total = 0
while data := connection.recv(65536):
    total += len(data)
connection.sendall(str(total).encode())
"""
_CLIENT = f"""
import socket
connection = socket.socket()
connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
connection.connect(("10.77.0.2", 7000))
connection.sendall(bytes({SIZE}))
connection.shutdown(socket.SHUT_WR)
print(connection.recv(100).decode())
"""


def run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def tun(name: str, namespace: str, address: str) -> int:
    """Return the descriptor of a TUN device (packet by packet) whose other side has a network namespace of its own."""
    fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    fcntl.ioctl(fd, 0x400454CA, struct.pack("16sH22x", name.encode(), 0x1001))
    run("ip", "netns", "add", namespace)
    run("ip", "link", "set", name, "netns", namespace)
    run("ip", "-n", namespace, "addr", "add", f"{address}/24", "dev", name)
    run("ip", "-n", namespace, "link", "set", name, "mtu", str(MSS + 52), "up")
    network = ipaddress.ip_interface(f"{address}/24").network
    least = ("rto_min", f"{LEAST_TIMEOUT_S:g}s")
    run("ip", "-n", namespace, "route", "replace", str(network), "dev", name, "src", address, *least)
    # a tail loss probe says that the machine is slow, not that a time-out was near
    run("ip", "netns", "exec", namespace, "sysctl", "-qw", "net.ipv4.tcp_early_retrans=0")
    return fd


@pytest.fixture
def devices() -> Iterator[tuple[tuple[str, int], tuple[str, int]]]:
    """Yield namespace and descriptor of the sender's and the receiver's TUN device."""
    names = [f"capton{os.getpid()}{side}" for side in "ab"]
    fds: list[int] = []
    try:
        for name, address in zip(names, ("10.77.0.1", "10.77.0.2"), strict=True):
            fds.append(tun(name[-15:], name, address))
        yield (names[0], fds[0]), (names[1], fds[1])
    finally:
        for fd in fds:
            os.close(fd)
        for name in names:
            with suppress(subprocess.CalledProcessError):
                run("ip", "netns", "del", name)


def counters(namespace: str) -> dict[str, int]:
    """Return TCP's counters of a namespace, by name."""
    found: dict[str, int] = {}
    for file in ("snmp", "netstat"):
        lines = run("ip", "netns", "exec", namespace, "cat", f"/proc/net/{file}").splitlines()
        for names, values in zip(lines[::2], lines[1::2], strict=True):
            found.update(zip(names.split()[1:], map(int, values.split()[1:]), strict=True))
    return found


def packets_of(fd: int) -> Iterator[bytes]:
    with suppress(BlockingIOError):
        while True:
            yield os.read(fd, 65536)


@contextmanager
def transfer(sender: str, receiver: str) -> Iterator[subprocess.Popen[str]]:
    """Yield a client in *sender* that sends SIZE bytes to a server in *receiver*, and prints how many that has."""
    server = subprocess.Popen(
        ["ip", "netns", "exec", receiver, "python3", "-c", _SERVER], stdout=subprocess.PIPE, text=True
    )
    processes = [server]
    try:
        assert server.stdout is not None
        assert server.stdout.readline() == "listening\n"
        client = subprocess.Popen(
            ["ip", "netns", "exec", sender, "python3", "-c", _CLIENT], stdout=subprocess.PIPE, text=True
        )
        processes.append(client)
        yield client
        assert client.stdout is not None
        assert client.stdout.read().strip() == str(SIZE)
    finally:
        for process in processes:
            process.kill()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()


@pytest.mark.parametrize("announced", [float(SIZE), None], ids=["announced", "unannounced"])
def test_a_stopped_sender_sends_nothing_times_out_never_and_goes_on_when_granted(
    devices: tuple[tuple[str, int], tuple[str, int]], announced: float | None
) -> None:
    (sender, out), (receiver, back) = devices
    rates = Rates(RATE, RATE)
    places = [HostPlace(host, rates) for host in ("h1", "h2", "h3")]
    central = AdmissionControl(Scheduler(VirtualFabric(places, {})), {PEER: "h2"})
    agent = AdmittingAgent(PATIENT, overlay=("10.77.0.1", "10.77.0.2"), now=time.monotonic())
    total = at_stop = while_stopped = 0
    asked = False
    stop: float | None = None
    going_on: float | None = None
    poll = select.poll()
    for fd in (out, back):
        poll.register(fd, select.POLLIN)
    with transfer(sender, receiver) as client:
        begun = time.monotonic()
        while client.poll() is None:
            assert time.monotonic() - begun < 120, f"{total} of {SIZE} B after 120 s"
            timer = agent.get_timer()
            poll.poll(min(5.0, max(0.0, timer - time.monotonic()) * 1000))
            for packet in packets_of(out):
                if packet[0] >> 4 == 4:
                    seen = look(packet)
                    agent.sent(packet, announced, time.monotonic())
                    total += seen.payload
                    os.write(back, packet)
            for packet in packets_of(back):
                for given in agent.received([packet], time.monotonic()):
                    os.write(out, given)
            now = time.monotonic()
            agent.handle_timer(now)
            answers: Answers = []
            for message in agent.messages_to_send():
                answers += central.receive("h1", message, now)
            if not asked and total >= STOP_AT:
                # a flow with less left, to the same receiver: first if not at once, for ours may have less, as it says
                asked = True
                answers += central.receive("h3", Request(1, 1, PEER, 10_000), now)
            if stop is not None and going_on is None and now >= stop + STOPPED_S:
                going_on, while_stopped = now, total - at_stop
                answers += central.receive("h3", Finished(2, 1), now)
            for host, decision in answers:
                if host == "h1":
                    agent.decided(decision, now)
                    if asked and stop is None and isinstance(decision, Stop):
                        stop, at_stop = now, total
            for given in agent.updates():
                os.write(out, given)
        took = time.monotonic() - begun
        seen_by_kernel = counters(sender)
    assert going_on is not None
    # no more than it had been granted, and what lay in the device's queue
    assert while_stopped <= RATE / 8 * PATIENT.burst_s + 4 * MSS
    assert (seen_by_kernel["RetransSegs"], seen_by_kernel["TCPTimeouts"]) == (0, 0)
    assert total == SIZE  # every byte left once
    least = SIZE * 8 / RATE * (MSS + OVERHEAD_BYTES) / MSS
    assert took >= least + STOPPED_S - 0.1  # it kept to the granted rate


def test_a_window_that_a_dead_agent_left_closed_opens_without_a_probe(
    devices: tuple[tuple[str, int], tuple[str, int]],
) -> None:
    (sender, out), (receiver, back) = devices
    agent: AdmittingAgent | None = AdmittingAgent(
        PATIENT, overlay=("10.77.0.1", "10.77.0.2"), now=time.monotonic()
    )
    poll = select.poll()
    for fd in (out, back):
        poll.register(fd, select.POLLIN)
    probes = total = 0
    sequences = [0, 1 << 31]  # one of both is outside
    next_asked = math.inf
    with transfer(sender, receiver) as client:
        begun = time.monotonic()
        while client.poll() is None:
            now = time.monotonic()
            assert now - begun < 120, f"{total} of {SIZE} B after 120 s"
            poll.poll(20)
            # right after a probe: the next one is twice as far away as it was
            if agent is not None and (probes := counters(sender)["TCPWinProbe"]) > 0:
                assert total == 0, "it was held"
                agent = None
                (held,) = probing(run("ip", "netns", "exec", sender, "cat", "/proc/net/tcp"))
                next_asked = now
            # a second apart, as agents do: Linux answers one a half second, and may have answered the probe just now
            if sequences and now >= next_asked:
                next_asked = now + 1
                os.write(back, segment_outside_window(held, sequences.pop(0)))
            for packet in packets_of(out):
                if packet[0] >> 4 == 4:
                    payload = look(packet).payload
                    total += payload if agent is None or payload > 1 else 0
                    if agent is not None:
                        agent.sent(packet, float(SIZE), now)
                    os.write(back, packet)
            for packet in packets_of(back):
                for given in [packet] if agent is None else agent.received([packet], now):
                    os.write(out, given)
            if agent is not None:
                agent.handle_timer(now)
                for given in agent.updates():
                    os.write(out, given)
        seen_by_kernel = counters(sender)
    assert probes > 0
    assert seen_by_kernel["TCPWinProbe"] == probes, "the next would have come seconds later"
    assert total >= SIZE
