"""What all kinds of overload at once do to mode switches, links, health and memory, beside the same without.

A controller of its own on loopback, and a fabric of minimal switches (`overload_fabric`) whose leaf is turned ON again
and again: alone, beside `overload_load`, and again from 10 s after its end on. A mode switch is timed from the first
short packet's way up to the last byte of the leaf's update: the controller's part of it, without a data plane's.
"""

from __future__ import annotations

import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final
from urllib.parse import urlsplit

from benchmarks.busy import idle_percent, sampled
from benchmarks.figures import Figure, Goal, ToolError, document, percentile
from benchmarks.overload_fabric import LINKS
from capstan_client.controller import ControllerClient
from experiments.results.cpu_use import CpuSample

ROOT: Final = Path(__file__).resolve().parents[1]
CYCLES: Final = 120
"""Of each block, unless `BLOCK_S` is over before."""
BLOCK_S: Final = 40.0
AFTER_S: Final = 10.0
LINK_RATE_MBPS: Final = 20.0
START_S: Final = 60.0
LOADING_S: Final = 90.0
HEALTH_EVERY_S: Final = 0.1
HEALTH_TIMEOUT_S: Final = 5.0
RATIO_GOAL: Final = Goal(1.5, cores=2)
"""Of what is flooded to what is alone. Where the floor alone is above, it says nothing of the controller: then what the
flood adds to the floor is taken off first."""
HEALTH_GOAL_MS: Final = Goal(100.0, cores=2)
MEMORY_GOAL_MIB: Final = 1024.0
"""Of both processes together."""
CONNECTIONS_GOAL: Final = 16
"""Sockets more than before the load: between the two processes, and of the benchmark's own clients."""
KEPT_GOAL_MIB: Final = 256.0
"""More than before, after the load: what allocators keep."""


@dataclass
class Block:
    """What was measured in one of the blocks; times in milliseconds."""

    on_ms: list[float] = field(default_factory=list)
    off_ms: list[float] = field(default_factory=list)
    health_ms: list[float] = field(default_factory=list)
    floor_ms: list[float] = field(default_factory=list)
    """Of two processes that share nothing with the controller but the processors (`overload_floor`)."""
    most_bytes: int = 0
    """Resident memory of the controller and its HTTP process, the most of it."""
    idle: list[tuple[CpuSample, CpuSample]] = field(default_factory=list)


@dataclass
class Measured:
    """All blocks, and what was there before, beside and after the load."""

    alone: Block = field(default_factory=Block)
    loaded: Block = field(default_factory=Block)
    after: Block = field(default_factory=Block)
    loads: dict[str, float] = field(default_factory=dict)
    links_lost: int = 0
    links_after: int = 0
    connections_before: int = 0
    connections_after: int = 0
    hosts_after: int = 0
    switches_after: int = 0
    counters: dict[str, float] = field(default_factory=dict)


def run(cycles: int = CYCLES) -> dict[str, Any]:
    """Return all figures. Takes about four minutes. Raises ToolError."""
    with tempfile.TemporaryDirectory(prefix="capstan-overload-") as directory:
        return measure(Path(directory), cycles)


def measure(directory: Path, cycles: int) -> dict[str, Any]:
    """Run the blocks with a controller whose data are in *directory*; return the figures."""
    measured = Measured()
    with _controller(directory) as (pid, endpoints):
        openflow = endpoints["openflow"]["port"]
        api = endpoints["api"]
        with (
            _program(
                "benchmarks.overload_fabric", str(openflow), first="ready", patience_s=START_S
            ) as fabric,
            _program("benchmarks.overload_floor", first="ready", patience_s=START_S) as floor,
            ControllerClient(api) as client,
        ):
            timed = (fabric, floor)
            _, cursor = client.events()
            _block(measured.alone, timed, cycles, pid, api)
            measured.connections_before, taken_before = _sockets(pid), _packet_ins(client)
            hosts_before = len(client.fabric()["hosts"])
            port = str(urlsplit(api).port)
            with _memory(pid, measured.loaded):
                with _program(
                    "benchmarks.overload_load",
                    str(openflow),
                    port,
                    first="loading",
                    patience_s=LOADING_S,
                ) as loading:
                    _block(measured.loaded, timed, cycles, pid, api)
                    measured.loads = _last_words(loading)
                    measured.loads["packet_ins_taken"] = _packet_ins(client) - taken_before
                time.sleep(AFTER_S)
            _block(measured.after, timed, cycles, pid, api)
            _look(measured, client, cursor, pid)
            measured.hosts_after = len(client.fabric()["hosts"]) - hosts_before
    return document(figures(measured), notes(measured, cycles))


def _block(
    block: Block, timed: tuple[subprocess.Popen[str], subprocess.Popen[str]], cycles: int, pid: int, api: str
) -> None:
    """Measure a block. timed: the fabric's program and the floor's, at the same time."""
    with _memory(pid, block), _health(api, block.health_ms), sampled(block.idle):
        for program in timed:
            print(cycles, BLOCK_S, file=program.stdin, flush=True)
        fabric, floor = (_said(program) for program in timed)
    block.on_ms += fabric["on"]
    block.off_ms += fabric["off"]
    block.floor_ms += floor


def _said(program: subprocess.Popen[str]) -> Any:
    """Return what a program printed as a line of JSON. Raises ToolError if it has ended."""
    assert program.stdout is not None
    line = program.stdout.readline()
    if not line:
        raise ToolError(
            f"a program ended with {program.wait()}: the fabric's does when the controller lets its switches go"
        )
    return json.loads(line)


def _look(measured: Measured, client: ControllerClient, cursor: int, pid: int) -> None:
    ours = {f"{0xFAB000 + number + 1:016x}" for number in range(6)}
    while True:
        events, cursor = client.events(cursor)
        if not events:
            break
        measured.links_lost += sum(event["kind"] == "link-down" for event in events)
    fabric = client.fabric()
    measured.links_after = sum(link["up"] for link in fabric["links"])
    measured.switches_after = len(fabric["switches"]) - len(ours)
    measured.connections_after = _sockets(pid)


def figures(measured: Measured) -> dict[str, Figure]:
    """Return all figures of what was measured."""
    result: dict[str, Figure] = {}
    blocks = {"alone": measured.alone, "loaded": measured.loaded, "after": measured.after}
    for name, block in blocks.items():
        result[f"on_median_{name}"] = Figure(statistics.median(block.on_ms), "ms")
        result[f"on_p99_{name}"] = Figure(percentile(block.on_ms, 99), "ms")
        result[f"off_p99_{name}"] = Figure(percentile(block.off_ms, 99), "ms")
        result[f"floor_p99_{name}"] = Figure(percentile(block.floor_ms, 99), "ms")
        result[f"cycles_{name}"] = Figure(len(block.off_ms), "changes each way", better="higher")
        result[f"processors_idle_{name}"] = Figure(idle_percent(block.idle), "%", better="higher")
    for name in ("loaded", "after"):
        for way in ("on", "off"):
            result |= _compared(result, way, name)
        floor = result[f"floor_p99_{name}"].value
        result[f"floor_p99_{name}_to_alone"] = Figure(floor / result["floor_p99_alone"].value, "times")
        result[f"on_p99_{name}_over_floor"] = Figure(result[f"on_p99_{name}"].value - floor, "ms")
    for name, block in blocks.items():
        goal = None if name == "alone" else HEALTH_GOAL_MS
        result[f"health_p99_{name}"] = Figure(percentile(block.health_ms, 99), "ms", goal)
        result[f"health_max_{name}"] = Figure(max(block.health_ms), "ms")
        memory_goal = MEMORY_GOAL_MIB if name == "loaded" else None
        result[f"memory_{name}"] = Figure(block.most_bytes / 2**20, "MiB at most", memory_goal)
    kept = (measured.after.most_bytes - measured.alone.most_bytes) / 2**20
    result["memory_kept_after"] = Figure(kept, "MiB more than alone", KEPT_GOAL_MIB)
    result["links_lost"] = Figure(measured.links_lost, "links that went down in the whole run", 0)
    result["links_after"] = Figure(measured.links_after, f"of {LINKS} links up", LINKS, "higher")
    more = measured.connections_after - measured.connections_before
    result["connections_after"] = Figure(more, "sockets more than before the load", CONNECTIONS_GOAL)
    result["hosts_after"] = Figure(measured.hosts_after, "hosts of the load still known", 0)
    result["switches_after"] = Figure(measured.switches_after, "switches of the load still known", 0)
    return result | _of_loads(measured.loads)


def _compared(p99: dict[str, Figure], way: str, name: str) -> dict[str, Figure]:
    """Return how a block's p99 compares with what it is alone: as it is, and less what the flood adds to the floor."""
    alone, floor_alone = p99[f"{way}_p99_alone"].value, p99["floor_p99_alone"].value
    there, floor = p99[f"{way}_p99_{name}"].value, p99[f"floor_p99_{name}"].value
    floor_allows = floor <= RATIO_GOAL.value * floor_alone
    less_floor = (there - max(0.0, floor - floor_alone)) / alone
    return {
        f"{way}_p99_{name}_to_alone": Figure(there / alone, "times", RATIO_GOAL if floor_allows else None),
        f"{way}_p99_{name}_less_floor": Figure(
            less_floor, "times, without what is added to the floor", RATIO_GOAL
        ),
    }


def _of_loads(loads: dict[str, float]) -> dict[str, Figure]:
    seconds = loads.get("seconds", 0.0) or 1.0
    return {
        "packet_ins": Figure(
            loads.get("packet_ins", 0) / seconds, "packet-ins/s that were sent", better="higher"
        ),
        "packet_ins_taken": Figure(
            loads.get("packet_ins_taken", 0) / seconds, "packet-ins/s that were taken", better="higher"
        ),
        "dpids": Figure(loads.get("dpids", 0), "datapath ids that connected", better="higher"),
        "ports": Figure(loads.get("ports", 0), "ports that they said they have", better="higher"),
        "readers": Figure(
            loads.get("readers", 0), "readers of the stream that read nothing", better="higher"
        ),
        "silent": Figure(loads.get("silent", 0), "connections without a request", better="higher"),
        "uploads": Figure(loads.get("uploads", 0), "bodies of 64 MiB that were begun", better="higher"),
        "pipelines": Figure(loads.get("pipelines", 0), "times 500 requests, no answer read", better="higher"),
    }


def notes(measured: Measured, cycles: int) -> tuple[str, ...]:
    """Return what a reader needs to know of the figures."""
    return (
        f"minimal switches on loopback, {cycles} cycles a block or {BLOCK_S:g} s of them",
        "on: from the first short packet's way up until the leaf has its update; off: from that to the next one",
        "the load's own process is on the same machine, at nice 19",
        "floor: the same between two processes that share nothing with the controller but the processors",
        f"less_floor: without what a block adds to the floor; a ratio to alone has a goal where the floor's is "
        f"<= {RATIO_GOAL.value:g}",
        f"after: from {AFTER_S:g} s after the load's end on",
        *(f"{name}: {value:g}" for name, value in sorted(measured.loads.items())),
    )


@contextmanager
def _controller(directory: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Run a controller; yield its process id and endpoints once it answers."""
    argv = [sys.executable, "-m", "controller", "--data", str(directory / "data"), "--scheme", "caps"]
    argv += ["--openflow", "127.0.0.1:0", "--api", "127.0.0.1:0", "--link-rate-mbps", f"{LINK_RATE_MBPS:g}"]
    with (directory / "log").open("w") as log:
        process = subprocess.Popen([*argv, "--log-level", "error"], cwd=ROOT, stdout=log, stderr=log)
        try:
            file = directory / "data" / "endpoints.json"
            _until(file.exists, lambda: process.poll() is None, "the controller's endpoints")
            yield process.pid, json.loads(file.read_text())
            if process.poll() is not None:
                raise ToolError(
                    f"the controller ended with {process.returncode}: {_end_of(directory / 'log')}"
                )
        except (OSError, ToolError) as error:
            raise ToolError(f"{error}; the controller's log ends: {_end_of(directory / 'log')}") from error
        finally:
            process.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(20)
            process.kill()
            process.wait()


@contextmanager
def _program(module: str, *arguments: str, first: str, patience_s: float) -> Iterator[subprocess.Popen[str]]:
    """Run a program; yield once it has said *first*; its standard input ends with the block."""
    process = subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    late = threading.Timer(patience_s, process.kill)
    late.start()
    try:
        assert process.stdout is not None
        if process.stdout.readline().strip() != first:
            raise ToolError(f"`python -m {module}` was not under way within {patience_s:g} s")
        late.cancel()
        yield process
    finally:
        late.cancel()
        with suppress(OSError, ValueError):
            if process.stdin is not None:
                process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            process.wait(20)
        process.kill()
        process.wait()


def _last_words(process: subprocess.Popen[str]) -> dict[str, float]:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    return _json_line(process.stdout)


def _json_line(stream: IO[str]) -> dict[str, float]:
    line = stream.readline()
    if not line:
        raise ToolError("the load's program ended without saying what it did")
    result: dict[str, float] = json.loads(line)
    return result


@contextmanager
def _health(api: str, took_ms: list[float]) -> Iterator[None]:
    """Ask for health again and again, each time by a connection of its own; what is not answered took the time-out."""

    def ask() -> None:
        began = time.monotonic()
        with suppress(Exception), ControllerClient(api) as client:
            client.health(timeout_s=HEALTH_TIMEOUT_S)
            took_ms.append((time.monotonic() - began) * 1e3)
            return
        took_ms.append(max(HEALTH_TIMEOUT_S, time.monotonic() - began) * 1e3)

    with _beside(HEALTH_EVERY_S, ask):
        yield


@contextmanager
def _memory(pid: int, block: Block) -> Iterator[None]:
    def look() -> None:
        block.most_bytes = max(block.most_bytes, sum(map(_resident, [pid, *_children(pid)])))

    with _beside(0.2, look):
        yield


@contextmanager
def _beside(every_s: float, work: Callable[[], None]) -> Iterator[None]:
    done = threading.Event()

    def again() -> None:
        work()
        while not done.wait(every_s):
            work()

    thread = threading.Thread(target=again)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _resident(pid: int) -> int:
    with suppress(OSError):
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    return 0


def _packet_ins(client: ControllerClient) -> float:
    """Return how many packets of switches the controller has taken since its start."""
    taken = re.search(r'capstan_openflow_total\{what="packet-ins"\} (\S+)', client.metrics())
    return 0.0 if taken is None else float(taken[1])


def _sockets(pid: int) -> int:
    """Return how many sockets the controller and its HTTP process have."""
    count = 0
    for process in [pid, *_children(pid)]:
        for descriptor in Path(f"/proc/{process}/fd").iterdir():
            with suppress(OSError):
                count += os.readlink(descriptor).startswith("socket:")
    return count


def _until(holds: Callable[[], bool], alive: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + START_S
    while not holds():
        if not alive() or time.monotonic() > end:
            raise ToolError(f"{what} did not come within {START_S:g} s")
        time.sleep(0.05)


def _end_of(path: Path) -> str:
    return path.read_text(errors="replace")[-1500:].strip()


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
