"""The API's benchmark: clients' figures, what they ask for, and how sure a ratio of two conditions is."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterable
from pathlib import Path
from wsgiref.types import StartResponse, WSGIEnvironment

import numpy as np
import pytest

from benchmarks.api_clients import PATHS, SCRIPT
from benchmarks.api_load import Load, LoadError, parse
from benchmarks.blocks import apart
from controller.api.front.limits import FrontSettings
from controller.api.front.process import HttpFront
from experiments.run.deployment import ROOT
from tests.unit.api_world import api_world
from tests.waiting import PATIENCE_S

PROGRAMS = ["python", *(["wrk"] if shutil.which("wrk") else [])]  # the benchmark, too, goes without it


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("how", [[], ["apart"]])
def test_both_programs_ask_for_the_same_and_report_alike(
    tmp_path: Path, program: str, how: list[str]
) -> None:
    with api_world(tmp_path) as world:
        asked: list[str] = []

        def app(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
            asked.append(f"{environ['PATH_INFO']}?{environ['QUERY_STRING']} {environ.get('HTTP_X_NUMBER')}")
            return world.app(environ, start_response)

        front = HttpFront(app, "127.0.0.1", 0, FrontSettings(4))
        front.start()
        port = str(front.port)
        try:
            # a busy machine may take longer for the first answer than the clients' second
            urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1{PATHS[0]}", timeout=PATIENCE_S).close()
            argv = [sys.executable, "-m", "benchmarks.api_clients", "127.0.0.1", port, "30", "1", *how]
            if program == "wrk":
                argv = [
                    "wrk",
                    "-t1",
                    "-c30",
                    "-d1s",
                    "-s",
                    str(SCRIPT),
                    f"http://127.0.0.1:{port}",
                    "--",
                    *how,
                ]
            said = subprocess.run(
                argv, cwd=ROOT, capture_output=True, text=True, timeout=120, check=True
            ).stdout
        finally:
            front.stop()
    reported = json.loads(said.strip().splitlines()[-1])
    load = parse(reported)
    assert load.answers > 0
    assert 0 < load.percentile_ms(50) <= load.percentile_ms(99) <= load.percentile_ms(100)
    if how:
        assert len(set(asked)) == len(asked) >= reported["requests"], (
            "requests unlike all others share nothing"
        )
    else:
        assert len(set(asked)) <= len(PATHS), "and those that are alike may"


def test_what_they_ask_for_is_there_and_each_is_another() -> None:
    assert len(set(PATHS)) == len(PATHS) >= 12


def test_percentiles_are_those_of_all_answers() -> None:
    times = np.random.default_rng(2).integers(1, 50, 997)
    load = Load()
    for part in np.array_split(times, 3):
        reported = {
            "us": [[int(us), 1] for us in part],
            "requests": len(part),
            "refused": 0,
            "broken": 0,
            "seconds": 2,
        }
        load += parse(reported)
    assert (load.answers, load.seconds) == (997, 6)
    for percent in (1, 50, 99, 100):
        assert load.percentile_ms(percent) * 1e3 == np.percentile(times, percent, method="inverted_cdf")
    with pytest.raises(LoadError, match="3 were answered by an error"):
        parse({"us": [], "requests": 9, "refused": 3, "broken": 0, "seconds": 1})
    with pytest.raises(LoadError, match="no request"):
        Load().percentile_ms(99)


@pytest.mark.slow
def test_two_samples_of_one_distribution_are_not_apart_and_slower_ones_are() -> None:
    rng = np.random.default_rng(3)
    alone = [list(rng.gamma(4, 0.5, 40)) for _ in range(4)]
    same = [list(rng.gamma(4, 0.5, 40)) for _ in range(4)]
    slower = [[value * 3 for value in block] for block in same]
    near, far = apart(alone, same, rng), apart(alone, slower, rng)
    assert near.ratio.low <= 1 <= near.ratio.high
    assert near.difference.low <= 0 <= near.difference.high
    assert far.ratio.low > 1
    assert far.difference.low > 0
    assert far.ratio.value == pytest.approx(
        np.percentile(np.concatenate(slower), 99) / np.percentile(np.concatenate(alone), 99)
    )
    # Rounds that differ by more than what is compared leave no certainty.
    drifting = [[value * (1 if index % 2 else 5) for value in block] for index, block in enumerate(same)]
    wide = apart(alone, drifting, rng).ratio
    assert wide.high - wide.low > 2 * (near.ratio.high - near.ratio.low)
    with pytest.raises(ValueError, match="not rounds"):
        apart(alone, same[:3], rng)
