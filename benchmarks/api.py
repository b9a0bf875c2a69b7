"""What watching costs: mode switches of a leaf without readers, and with 200 of the stream and 1000 link samples/s.

Both halves in one run, on one fabric, so that their ratio means something. While readers read, the API is asked for
the whole fabric again and again by a few clients, too. Then 50 clients ask for all kinds of things, each as soon as it
is answered, while the leaf goes on to switch its mode.
"""

from __future__ import annotations

import json
import statistics
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import urlsplit

import requests

from benchmarks.figures import Figure, document
from benchmarks.mode import Cycle, evaluate, mode_spec, percentile, traffic
from controller.modes.monitor import ModeMonitor
from controller.schemes import loader
from experiments.deployment import ROOT, Deployment

READERS: Final = 200
SPINES: Final = 8
SAMPLES_PER_S: Final = 28.0
"""Of each direction of 16 links between switches and two of hosts: 1008 in all."""
DIRECTIONS: Final = 2 * (2 * SPINES + 2)
CYCLES: Final = 120
"""Of each half: of more than 100 the long stream is steady."""
CLIENTS: Final = 4
MANY_CLIENTS: Final = 50
MANY_S: Final = 10.0
ON_P99_GOAL_MS: Final = 15.0
GET_P99_GOAL_MS: Final = 100.0


def run(cycles: int = CYCLES, readers: int = READERS) -> dict[str, Any]:
    """All figures. Takes about 0.4 s a cycle."""
    spec = mode_spec(SPINES)
    rule = loader.load("caps").mode
    assert rule is not None
    t_ms = ModeMonitor(rule, spec.packet_time_s).sampling_time_s * 1e3
    options = ("--link-samples-per-s", str(SAMPLES_PER_S))
    with Deployment(spec, controller_options=options) as lab:
        alone = evaluate(traffic(lab, cycles, t_ms), t_ms)
        gets: list[float] = []
        with _reading(lab, readers) as result, _asking(lab, gets):
            watched = evaluate(traffic(lab, cycles, t_ms), t_ms)
        with _many(lab) as answers:
            pressed = evaluate(traffic(lab, max(cycles // 4, 8), t_ms), t_ms)
        told = requests.get(f"{lab.client.url}/api/v1/metrics", timeout=10).text
    figures = _figures(alone, watched, result, gets, readers) | _figures_of_many(answers, pressed)
    return document(figures, _notes(readers, told))


def _figures(
    alone: Sequence[Cycle],
    watched: Sequence[Cycle],
    result: dict[str, Any],
    gets: Sequence[float],
    readers: int,
) -> dict[str, Figure]:
    before, after = [one.on_ms for one in alone], [one.on_ms for one in watched]
    per_reader = [count / result["seconds"] for count in result["samples"]]
    return {
        "off_to_on_median_alone": Figure(statistics.median(before), "ms"),
        "off_to_on_median_watched": Figure(statistics.median(after), "ms"),
        "off_to_on_p99_alone": Figure(percentile(before, 99), "ms", ON_P99_GOAL_MS),
        "off_to_on_p99_watched": Figure(percentile(after, 99), "ms", ON_P99_GOAL_MS),
        "off_to_on_median_watched_to_alone": Figure(
            statistics.median(after) / statistics.median(before), "times"
        ),
        "off_to_on_p99_watched_to_alone": Figure(percentile(after, 99) / percentile(before, 99), "times"),
        "cycles_alone": Figure(len(before), "cycles"),
        "cycles_watched": Figure(len(after), "cycles"),
        "link_samples_per_s": Figure(
            statistics.median(per_reader) * DIRECTIONS, "samples/s a reader", 950, "higher"
        ),
        "slowest_reader": Figure(min(per_reader) * DIRECTIONS, "samples/s"),
        "readers": Figure(readers, "readers"),
        "stream": Figure(result["bytes"] * 8 / result["seconds"] / 1e6, "Mbit/s in all"),
        "get_fabric_p99": Figure(percentile(gets, 99), "ms", GET_P99_GOAL_MS),
        "get_fabric": Figure(len(gets) / result["seconds"], "requests/s"),
    }


@contextmanager
def _reading(lab: Deployment, readers: int) -> Iterator[dict[str, Any]]:
    """Readers in a process of their own; what they got is in the dictionary afterwards."""
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
    said, _ = process.communicate(timeout=30)
    result |= json.loads(said)


def _figures_of_many(answers: dict[str, list[float]], pressed: Sequence[Cycle]) -> dict[str, Figure]:
    every = [one for of_path in answers.values() for one in of_path]
    slowest = max(answers, key=lambda path: percentile(answers[path], 99))
    return {
        f"get_p99_of_{MANY_CLIENTS}_clients": Figure(percentile(every, 99), "ms", GET_P99_GOAL_MS),
        f"get_median_of_{MANY_CLIENTS}_clients": Figure(statistics.median(every), "ms"),
        f"get_p99_of_slowest{slowest.partition('?')[0].replace('/', '_')}": Figure(
            percentile(answers[slowest], 99), "ms"
        ),
        f"gets_of_{MANY_CLIENTS}_clients": Figure(len(every) / MANY_S, "requests/s"),
        "off_to_on_median_pressed": Figure(statistics.median([one.on_ms for one in pressed]), "ms"),
    }


@contextmanager
def _many(lab: Deployment) -> Iterator[dict[str, list[float]]]:
    """Clients in a process of their own; what they measured is in the dictionary afterwards."""
    place = urlsplit(lab.client.url)
    argv = [sys.executable, "-m", "benchmarks.api_clients", str(place.hostname), str(place.port)]
    process = lab.lab.popen(None, [*argv, str(MANY_CLIENTS), str(MANY_S)], stdout=-1, text=True, cwd=ROOT)
    took: dict[str, list[float]] = {}
    yield took
    said, _ = process.communicate(timeout=MANY_S + 30)
    took |= json.loads(said)


@contextmanager
def _asking(lab: Deployment, took_ms: list[float]) -> Iterator[None]:
    """Clients that ask for the fabric, ten times a second each."""
    done = threading.Event()

    def ask() -> None:
        with requests.Session() as session:
            while not done.wait(0.1):
                began = time.monotonic()
                session.get(f"{lab.client.url}/api/v1/fabric", timeout=10).raise_for_status()
                took_ms.append((time.monotonic() - began) * 1e3)

    threads = [threading.Thread(target=ask) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        done.set()
        for thread in threads:
            thread.join()


def _notes(readers: int, metrics: str) -> tuple[str, ...]:
    values = dict(line.rsplit(" ", 1) for line in metrics.splitlines() if not line.startswith("#"))
    dropped = values['capstan_stream_total{what="dropped_samples"}']
    return (
        f"{readers} readers, every tenth of which takes nothing; {CLIENTS} clients ask for /fabric beside them",
        f"samples that readers did not take before the next one: {dropped}",
    )


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
