"""What watching and asking cost: mode switches of a leaf alone, with readers of the stream, and with 50 clients asking.

The three take turns on one fabric, block by block in one run, so that their ratio means something: 200 readers of the
stream with 1000 link samples a second, and a few clients that ask for the whole fabric; then 50 clients that ask for
all that a page asks for, each as soon as it is answered. At last each of the 50 asks for something of its own.
"""

from __future__ import annotations

import json
import statistics
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

import numpy as np

from benchmarks.api_load import CLIENTS, Load, load, program
from benchmarks.blocks import apart
from benchmarks.busy import idle_percent, sampled
from benchmarks.figures import Figure, Goal, document, percentile
from benchmarks.mode import ON_P99_GOAL_MS, STEADY_NOTE, Evaluation, evaluate, mode_spec, traffic
from capstan_client.controller import ControllerClient
from controller.modes.monitor import ModeMonitor
from controller.schemes import loader
from experiments.results.cpu_use import CpuSample
from experiments.run.deployment import ROOT, Deployment

READERS: Final = 200
SPINES: Final = 8
SAMPLES_PER_S: Final = 28.0
"""Of each direction of 16 links between switches and two of hosts: 1008 in all."""
DIRECTIONS: Final = 2 * (2 * SPINES + 2)
ROUNDS: Final = 4
CYCLES: Final = 30
"""Of each block: of more than 100 of each kind the long stream is steady."""
CYCLE_S: Final = 0.4
"""Somewhat less than a cycle takes, so that a block is not over before its load."""
WATCHERS: Final = 4
APART_S: Final = 5.0
FABRIC_P99_GOAL_MS: Final = Goal(100.0, cores=2)
CLIENTS_P99_GOAL_MS: Final = (Goal(100.0, cores=4), Goal(150.0, cores=2))
APART_P99_GOAL_MS: Final = (Goal(100.0, cores=4), Goal(200.0, cores=2))
RATIO_LOW_GOAL: Final = Goal(1.0, cores=4)
SAMPLES_GOAL: Final = Goal(950.0, cores=2)


@dataclass
class _Measured:
    """Cycles of OFF->ON, an evaluation a block; what readers got, a dictionary a block; loads, all blocks' together."""

    alone: list[Evaluation] = field(default_factory=list)
    watched: list[Evaluation] = field(default_factory=list)
    pressed: list[Evaluation] = field(default_factory=list)
    use: dict[str, list[tuple[CpuSample, CpuSample]]] = field(default_factory=lambda: defaultdict(list))
    """The processors' counters before and after each block, by its kind."""
    read: list[dict[str, Any]] = field(default_factory=list)
    got_ms: list[float] = field(default_factory=list)
    asked: Load = field(default_factory=Load)
    asked_apart: Load = field(default_factory=Load)


def run(rounds: int = ROUNDS, cycles: int = CYCLES, readers: int = READERS) -> dict[str, Any]:
    """Return all figures. Takes about 1.5 s a cycle of each round."""
    spec = mode_spec(SPINES)
    rule = loader.load("caps").mode
    assert rule is not None
    t_ms = ModeMonitor(rule, spec.packet_time_s).sampling_time_s * 1e3
    options = ("--link-samples-per-s", str(SAMPLES_PER_S))
    measured = _Measured()
    with Deployment(spec, controller_options=options) as lab:

        def switches(kind: str) -> Evaluation:
            with sampled(measured.use[kind]):
                passages = traffic(lab, cycles, t_ms)
            return evaluate(passages, t_ms)

        for _ in range(rounds):
            measured.alone.append(switches("alone"))
            with _reading(lab, readers) as read, _asking(lab, measured.got_ms):
                measured.watched.append(switches("watched"))
            measured.read.append(read)
            with load(lab, max(1.0, cycles * CYCLE_S)) as requested:
                measured.pressed.append(switches("pressed"))
            measured.asked += requested
        with load(lab, APART_S, apart=True) as requested:
            pass
        measured.asked_apart += requested
        metrics = lab.client.metrics()
    return document(_figures(measured, readers), _notes(readers, rounds, metrics))


def _figures(measured: _Measured, readers: int) -> dict[str, Figure]:
    rng = np.random.default_rng(1)
    figures: dict[str, Figure] = {}
    blocks = {"alone": measured.alone, "watched": measured.watched, "pressed": measured.pressed}
    for name, of_rounds in blocks.items():
        every = [ms for block in of_rounds for ms in _on_ms(block)]
        bound = any(block.bound for block in of_rounds)
        figures[f"off_to_on_median_{name}"] = Figure(statistics.median(every), "ms", bound=bound)
        figures[f"off_to_on_p99_{name}"] = Figure(percentile(every, 99), "ms", ON_P99_GOAL_MS, bound=bound)
        figures[f"cycles_{name}"] = Figure(len(every), "cycles")
        steady = 100 * sum(block.steady for block in of_rounds) / sum(block.tried for block in of_rounds)
        figures[f"steady_cycles_{name}"] = Figure(steady, "% of those tried", better="higher")
        figures[f"processors_idle_{name}"] = Figure(idle_percent(measured.use[name]), "%", better="higher")
    for name in ("watched", "pressed"):
        against = apart(
            [_on_ms(block) for block in measured.alone], [_on_ms(block) for block in blocks[name]], rng
        )
        ratio, cost = against.ratio, against.difference
        figures[f"off_to_on_p99_{name}_to_alone"] = Figure(ratio.value, "times")
        figures[f"off_to_on_p99_{name}_to_alone_low"] = Figure(ratio.low, "times", RATIO_LOW_GOAL)
        figures[f"off_to_on_p99_{name}_to_alone_high"] = Figure(ratio.high, "times")
        figures[f"off_to_on_p99_added_{name}"] = Figure(cost.value, "ms")
        figures[f"off_to_on_p99_added_{name}_low"] = Figure(cost.low, "ms")
        figures[f"off_to_on_p99_added_{name}_high"] = Figure(cost.high, "ms")
    return figures | _of_readers(measured, readers) | _of_clients(measured)


def _on_ms(block: Evaluation) -> list[float]:
    return [cycle.on_ms for cycle in block.cycles]


def _of_readers(measured: _Measured, readers: int) -> dict[str, Figure]:
    seconds = sum(reader["seconds"] for reader in measured.read)
    per_reader = [count / reader["seconds"] for reader in measured.read for count in reader["samples"]]
    return {
        "link_samples_per_s": Figure(
            statistics.median(per_reader) * DIRECTIONS, "samples/s a reader", SAMPLES_GOAL, "higher"
        ),
        "slowest_reader": Figure(min(per_reader) * DIRECTIONS, "samples/s"),
        "readers": Figure(readers, "readers"),
        "stream": Figure(
            sum(reader["bytes"] for reader in measured.read) * 8 / seconds / 1e6, "Mbit/s in all"
        ),
        "get_fabric_p99": Figure(percentile(measured.got_ms, 99), "ms", FABRIC_P99_GOAL_MS),
        "get_fabric": Figure(len(measured.got_ms) / seconds, "requests/s"),
    }


def _of_clients(measured: _Measured) -> dict[str, Figure]:
    gets, alone = measured.asked, measured.asked_apart
    return {
        f"get_p99_of_{CLIENTS}_clients": Figure(gets.percentile_ms(99), "ms", CLIENTS_P99_GOAL_MS),
        f"get_median_of_{CLIENTS}_clients": Figure(gets.percentile_ms(50), "ms"),
        f"gets_of_{CLIENTS}_clients": Figure(gets.answers / gets.seconds, "requests/s"),
        f"get_p99_of_{CLIENTS}_clients_apart": Figure(alone.percentile_ms(99), "ms", APART_P99_GOAL_MS),
        f"get_median_of_{CLIENTS}_clients_apart": Figure(alone.percentile_ms(50), "ms"),
        f"gets_of_{CLIENTS}_clients_apart": Figure(alone.answers / alone.seconds, "requests/s"),
    }


@contextmanager
def _reading(lab: Deployment, readers: int) -> Iterator[dict[str, Any]]:
    """Run readers in a process of their own; what they got is in the dictionary afterwards."""
    place = urlsplit(lab.client.url)
    argv = [
        sys.executable,
        "-m",
        "benchmarks.stream_readers",
        str(place.hostname),
        str(place.port),
        str(readers),
    ]
    process = lab.lab.popen(None, argv, stdin=-1, stdout=-1, text=True, cwd=ROOT)
    result: dict[str, Any] = {}
    assert process.stdout is not None
    if process.stdout.readline().strip() != "reading":
        raise RuntimeError("the readers of the stream were not served")
    yield result
    output, _ = process.communicate(timeout=30)
    result |= json.loads(output)


@contextmanager
def _asking(lab: Deployment, took_ms: list[float]) -> Iterator[None]:
    """Run clients that ask for the fabric, ten times a second each."""
    done = threading.Event()

    def ask() -> None:
        with ControllerClient(lab.client.url) as client:
            while not done.wait(0.1):
                began = time.monotonic()
                client.fabric()
                took_ms.append((time.monotonic() - began) * 1e3)

    threads = [threading.Thread(target=ask) for _ in range(WATCHERS)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        done.set()
        for thread in threads:
            thread.join()


def _notes(readers: int, rounds: int, metrics: str) -> tuple[str, ...]:
    values = dict(line.rsplit(" ", 1) for line in metrics.splitlines() if not line.startswith("#"))
    dropped = values['capstan_stream_total{what="dropped_samples"}']
    return (
        STEADY_NOTE,
        f"{rounds} rounds of three blocks: alone, watched, pressed; low and high are of 95 % intervals",
        f"watched: {readers} readers, every tenth of which takes nothing; beside them {WATCHERS} ask for /fabric",
        f"pressed: {CLIENTS} clients, each asking again as soon as it is answered, by {program()}",
        "apart: with no two requests alike, so that none can have the answer of another",
        f"samples that readers did not take before the next one: {dropped}",
    )


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
