"""What all kinds of overload at once do to mode switches, links, health and memory, beside the same without.

A controller of its own on loopback, and a fabric of minimal switches (`overload_fabric`) whose leaf is turned ON again
and again: alone, beside agents that send what they can (`overload_agents`), beside clients that send results
(`overload_bodies`), beside `overload_load`, and again from 10 s after its end on. A mode switch is timed from the first
short packet's way up to the last byte of the leaf's update: the controller's part of it, without a data plane's.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Final
from urllib.parse import urlsplit

from benchmarks.busy import sampled
from benchmarks.figures import ToolError, document
from benchmarks.overload_figures import AFTER_S, BLOCK_S, Block, Measured, figures, notes
from capstan_client.controller import ControllerClient

ROOT: Final = Path(__file__).resolve().parents[1]
CYCLES: Final = 300
"""Of each block, unless `BLOCK_S` is over before."""
LINK_RATE_MBPS: Final = 20.0
START_S: Final = 60.0
LOADING_S: Final = 90.0
HEALTH_EVERY_S: Final = 0.1
HEALTH_TIMEOUT_S: Final = 5.0


def run(cycles: int = CYCLES) -> dict[str, Any]:
    """Return all figures. Takes about ten minutes. Raises ToolError."""
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
            _block(measured.alone, timed=timed, cycles=cycles, pid=pid, api=api)
            measured.connections_before = _sockets(pid)
            hosts_before = len(client.fabric()["hosts"])
            port = str(urlsplit(api).port)
            data = directory / "data"
            of_agents = (str(data / "agents.sock"), str(data / "agents-token"))
            loads = {"agents": ("overload_agents", *of_agents), "bodies": ("overload_bodies", port)}
            for name, (module, *arguments) in loads.items():
                block = Block()
                measured.clients[name] = _beside_load(
                    block, module, arguments, timed=timed, cycles=cycles, pid=pid, api=api
                )
                setattr(measured, name, block)
                time.sleep(AFTER_S)
            taken_before = _packet_ins(client)
            with _memory(pid, measured.loaded):
                with _program(
                    "benchmarks.overload_load",
                    str(openflow),
                    port,
                    first="loading",
                    patience_s=LOADING_S,
                ) as loading:
                    _block(measured.loaded, timed=timed, cycles=cycles, pid=pid, api=api)
                    measured.loads = _last_words(loading)
                    measured.loads["packet_ins_taken"] = _packet_ins(client) - taken_before
                time.sleep(AFTER_S)
            _block(measured.after, timed=timed, cycles=cycles, pid=pid, api=api)
            _look(measured, client, cursor, pid)
            measured.hosts_after = len(client.fabric()["hosts"]) - hosts_before
    return document(figures(measured), notes(measured, cycles))


def _beside_load(
    block: Block,
    module: str,
    arguments: list[str],
    *,
    timed: tuple[subprocess.Popen[str], subprocess.Popen[str]],
    cycles: int,
    pid: int,
    api: str,
) -> dict[str, float]:
    """Measure a block beside a load; return what of the load there was."""
    program = f"benchmarks.{module}"
    with _program(program, *arguments, first="loading", patience_s=LOADING_S) as loading:
        _block(block, timed=timed, cycles=cycles, pid=pid, api=api)
        return _last_words(loading)


def _block(
    block: Block,
    *,
    timed: tuple[subprocess.Popen[str], subprocess.Popen[str]],
    cycles: int,
    pid: int,
    api: str,
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
    except BaseException:
        process.kill()  # a signal, or what failed, leaves no block to wait for
        raise
    finally:
        late.cancel()
        with suppress(OSError, ValueError):
            if process.stdin is not None:
                process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            process.wait(2)
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


def _until(holds: Callable[[], bool], alive: Callable[[], bool], waited_for: str) -> None:
    end = time.monotonic() + START_S
    while not holds():
        if not alive() or time.monotonic() > end:
            raise ToolError(f"{waited_for} did not come within {START_S:g} s")
        time.sleep(0.05)


def _end_of(path: Path) -> str:
    return path.read_text(errors="replace")[-1500:].strip()


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
