"""The generator as the process that it is, over loopback."""

import contextlib
import json
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from experiments.run.traffic import GENERATOR
from tests.free_ports import free_port
from tests.waiting import eventually
from workloads.flow_header import ENDLESS, decode_header, encode_header
from workloads.generator import Generator
from workloads.loop import Loop
from workloads.records import FlowOrder
from workloads.sender import Sender
from workloads.tcp_info import tcp_info

TIME_WAIT = "06"
"""As /proc/net/tcp writes it."""


class Driver:
    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [*GENERATOR, "--port", "0"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.port = self.until("ready")["port"]

    def say(self, **command: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()

    def next(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        event: dict[str, Any] = json.loads(self.process.stdout.readline())
        return event

    def until(self, kind: str) -> dict[str, Any]:
        while (event := self.next())["event"] != kind:
            assert event["event"] != "error", event
        return event

    def run(self, flows: list[dict[str, Any]], window: tuple[float, float] = (0.0, 0.0)) -> None:
        self.say(do="prepare", flows=flows, window_s=window)
        assert self.until("done")["do"] == "prepare"
        self.say(do="start", epoch=time.monotonic() + 0.02)


@pytest.fixture
def driver() -> Iterator[Driver]:
    driver = Driver()
    yield driver
    driver.process.stdin.close()  # type: ignore[union-attr]
    assert driver.process.wait(60) == 0, "the generator ends with its standard input"
    driver.process.stdout.close()  # type: ignore[union-attr]


def flow(number: int, size: int | None, start: float = 0.0, address: str = "127.0.0.1") -> dict[str, Any]:
    return {
        "id": number,
        "address": address,
        "source_port": free_port(),
        "start_s": start,
        "size_bytes": size,
        "traffic_class": "short" if size else "long",
    }


def test_flows_of_all_sizes_arrive_whole_and_are_recorded(driver: Driver) -> None:
    sizes = [16, 17, 1400, 65_551, 300_000]
    orders = [flow(number, size, number * 0.01) for number, size in enumerate(sizes)]
    for again in range(2):  # the same ports again: nothing may linger
        driver.run(orders)
        assert driver.until("over")
        driver.say(do="stop")
        records = driver.until("records")
        sent = {record["id"]: record for record in records["sent"]}
        received = {record["id"]: record["bytes"] for record in records["received"]}
        assert received == dict(enumerate(sizes)), again
        for number, size in enumerate(sizes):
            record = sent[number]
            assert record["state"] == "finished", record
            assert record["bytes_acked"] == size
            assert record["source_port"] == orders[number]["source_port"]
            assert record["started_s"] >= record["planned_s"]
            assert 0 < record["fct_s"] == pytest.approx(record["finished_s"] - record["started_s"], abs=2e-6)


def test_applications_have_ports_of_their_own(driver: Driver) -> None:
    one, other, taken = free_port(), free_port(), driver.port
    orders = [flow(0, 5000) | {"port": one}, flow(1, 6000) | {"port": other}, flow(2, 7000)]
    driver.say(do="prepare", flows=orders, window_s=(0.0, 0.0), ports=[one, other])
    assert driver.until("done")["do"] == "prepare"
    driver.say(do="start", epoch=time.monotonic() + 0.02)
    assert driver.until("over")
    driver.say(do="stop")
    records = driver.until("records")
    assert [record["port"] for record in records["sent"]] == [one, other, taken]
    assert [record["bytes"] for record in records["received"]] == [5000, 6000, 7000]
    with socket.create_server(("", free_port())) as busy:
        driver.say(do="prepare", flows=[], window_s=(0.0, 0.0), ports=[busy.getsockname()[1]])
        assert "cannot listen on TCP port" in driver.next()["text"]


def test_a_background_flow_sends_until_it_is_stopped_and_its_window_is_measured(driver: Driver) -> None:
    began = time.monotonic()
    driver.run([flow(7, None), flow(8, 5000, 0.4)], window=(0.05, 0.35))
    driver.until("over")
    over = time.monotonic()
    driver.say(do="stop")
    records = driver.until("records")
    background = next(record for record in records["sent"] if record["id"] == 7)
    assert background["state"] == "background"
    assert background["fct_s"] is None
    assert 0 < background["window_s"] < over - began, "later on a busy machine, and as it was"
    assert 0 < background["window_bytes"] < background["bytes_acked"]
    got = next(record for record in records["received"] if record["id"] == 7)
    assert got["bytes"] >= background["window_bytes"]


def test_a_window_that_the_end_cuts_off_is_as_long_as_it_was(driver: Driver) -> None:
    driver.run([flow(7, None), flow(8, 5000, 0.3)], window=(0.05, 60.0))
    driver.until("over")
    driver.say(do="stop")
    (background,) = (record for record in driver.until("records")["sent"] if record["id"] == 7)
    assert background["window_s"] > 0
    assert 0 < background["window_bytes"] < background["bytes_acked"]


def test_a_background_flow_that_fails_in_the_window_has_a_rate_of_all_of_it() -> None:
    ended: list[Sender] = []
    with socket.create_server(("127.0.0.1", 0)) as sink:
        order = FlowOrder(7, "127.0.0.1", 0, 0.0, None, "long")
        port = sink.getsockname()[1]
        sender = Sender(
            Loop(), order, port, congestion_control="cubic", epoch=time.monotonic(), on_end=ended.append
        )
        sender.begin()
        sender.note_window()
        sender.give_up("its receiver is gone")
        time.sleep(0.05)
        sender.note_window()
    assert ended == [sender]
    record = sender.record()
    assert record.state == "failed"
    assert record.window_s >= 0.05


def test_a_connection_that_nothing_was_acknowledged_of_has_no_round_trip_time() -> None:
    with socket.socket() as unconnected:
        assert tcp_info(unconnected).min_rtt_ms == 0.0


def test_what_is_not_finished_at_the_end_has_failed_and_says_so(driver: Driver) -> None:
    endless, late = flow(2, 10**13), flow(3, 5000, start=60.0)
    driver.run([flow(1, 5000), endless, late, flow(4, None, start=60.0)])
    assert driver.until("progress")["finished"] == 1
    time.sleep(0.2)
    driver.say(do="stop")
    sent = {record["id"]: record for record in driver.until("records")["sent"]}
    assert sent[1]["state"] == "finished"
    assert sent[2]["state"] == sent[3]["state"] == sent[4]["state"] == "failed"
    assert sent[2]["bytes_acked"] > 0
    assert "B acknowledged at the run's end" in sent[2]["error"]
    assert "was not started" in sent[3]["error"]
    assert sent[3]["started_s"] is None


def test_a_source_port_in_use_fails_at_once(driver: Driver) -> None:
    refused = flow(1, 5000)
    with contextlib.closing(socket.socket()) as holder:
        holder.bind(("127.0.0.1", 0))
        refused["source_port"] = holder.getsockname()[1]  # in use: binding is refused
        driver.run([refused])
        driver.until("over")
    driver.say(do="stop")
    [record] = driver.until("records")["sent"]
    assert record["state"] == "failed"
    assert "Address already in use" in record["error"]


def test_an_unknown_congestion_control_is_said_with_what_there_is(driver: Driver) -> None:
    driver.say(do="configure", congestion_control="vegaz")
    driver.until("done")
    driver.run([flow(1, 5000)])
    driver.until("over")
    driver.say(do="stop")
    [record] = driver.until("records")["sent"]
    assert "'vegaz' is refused" in record["error"]
    assert "cubic" in record["error"]


def replicated(number: int, size: int, how: str) -> dict[str, Any]:
    return flow(number, size) | {"copy_port": free_port(), "replication": how}


def connections(port: int) -> set[tuple[str, int]]:
    """Return state and peer's port of every TCP connection whose own port is that of the sink."""
    found = set()
    for file in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(file).read_text().splitlines()[1:]:
            _, local, remote, state, *_ = line.split()
            if int(local.rpartition(":")[2], 16) == port and state != "0A":  # not the listener
                found.add((state, int(remote.rpartition(":")[2], 16)))
    return found


@pytest.mark.parametrize("how", ["flow", "syn"])
def test_a_replicated_flow_counts_once_and_its_loser_leaves_no_connection(driver: Driver, how: str) -> None:
    flows = [replicated(number, size, how) for number, size in enumerate((16, 2000, 90_000, 3_000_000))]
    driver.run(flows)
    driver.until("over")
    eventually(lambda: {state for state, _ in connections(driver.port)} <= {TIME_WAIT}, "no connection")
    driver.say(do="stop")
    records = driver.until("records")
    assert [record["id"] for record in records["sent"]] == [0, 1, 2, 3]
    for record, order in zip(records["sent"], flows, strict=True):
        assert record["state"] == "finished", record
        assert record["bytes_acked"] == record["size_bytes"]
        assert {record["source_port"], record["other_port"]} == {order["source_port"], order["copy_port"]}
    got = [one for one in records["received"] if one["bytes"] == flows[one["id"]]["size_bytes"]]
    assert {one["id"] for one in got} == {0, 1, 2, 3}
    if how == "syn":
        assert len(records["received"]) == 4, "the copy that gave way sent nothing"


@pytest.mark.parametrize("how", ["flow", "syn"])
@pytest.mark.parametrize("broken", ["source_port", "copy_port"])
def test_a_copy_that_cannot_connect_is_no_harm(driver: Driver, how: str, broken: str) -> None:
    one = replicated(1, 5000, how)
    with contextlib.closing(socket.socket()) as holder:
        holder.bind(("127.0.0.1", 0))
        one[broken] = holder.getsockname()[1]  # in use: binding is refused
        driver.run([one])
        driver.until("over")
    driver.say(do="stop")
    [record] = driver.until("records")["sent"]
    assert record["state"] == "finished"
    assert record["other_port"] == one[broken]


def test_a_replicated_flow_of_which_no_copy_is_finished_has_failed(driver: Driver) -> None:
    driver.run([replicated(1, 10**13, "flow"), replicated(2, 10**13, "syn")])
    time.sleep(0.2)
    driver.say(do="stop")
    for record in driver.until("records")["sent"]:
        assert record["state"] == "failed"
        assert "at the run's end" in record["error"]


def test_a_wrong_command_is_an_error_event_and_no_end(driver: Driver) -> None:
    for line in (
        '{"do": "jump"}',
        "[]",
        "no json",
        '{"do": "prepare"}',
        '{"do": "start", "epoch": 1, "x": 2}',
    ):
        assert driver.process.stdin is not None
        driver.process.stdin.write(line + "\n")
        driver.process.stdin.flush()
        assert driver.next()["event"] == "error"
    driver.run([flow(1, 100)])
    driver.until("over")


def test_another_program_at_the_sink_is_cut_off(driver: Driver) -> None:
    with socket.create_connection(("127.0.0.1", driver.port)) as other:
        other.settimeout(5)
        other.sendall(b"GET / HTTP/1.0\r\n\r\n")
        with contextlib.suppress(ConnectionResetError):
            assert other.recv(10) == b""
    driver.run([flow(1, 100)])
    driver.until("over")


@pytest.mark.parametrize("size", [16, 100_000, None])
def test_the_header_is_read_back(size: int | None) -> None:
    for copy in (0, 1):
        header = decode_header(encode_header(5, size, copy))
        assert header == (5, ENDLESS if size is None else size, copy)


def test_bytes_that_are_no_header_are_refused() -> None:
    assert decode_header(bytes(16)) is None
    assert decode_header(encode_header(1, 3)) is None, "no flow is smaller than its header"


class NothingLater(Loop):
    """A loop that leaves out what is to be done after `last` (monotonic seconds)."""

    last = 0.0

    def at(self, when: float, call: Callable[[], None]) -> None:
        if when <= self.last:
            super().at(when, call)


def test_the_end_of_the_last_flow_is_reported_at_once() -> None:
    """No timer has to pass between a run's last flow and "over"; "progress" comes before, with the whole count."""
    loop = NothingLater()
    events: list[dict[str, Any]] = []

    def emit(event: dict[str, Any]) -> None:
        events.append(event)
        if event["event"] in ("over", "error"):
            loop.stop()

    generator = Generator(loop, 0, emit)
    generator.apply(
        json.dumps({"do": "prepare", "flows": [flow(1, 3000), flow(2, 9000)], "window_s": [0, 0]})
    )
    loop.last = time.monotonic()
    generator.apply(json.dumps({"do": "start", "epoch": loop.last}))
    loop.run()
    generator.apply(json.dumps({"do": "stop"}))
    *_, counted, over, records = events
    assert over == {"event": "over"}
    assert counted == {"event": "progress", "finished": 2, "failed": 0}
    assert [record["state"] for record in records["sent"]] == ["finished", "finished"]
