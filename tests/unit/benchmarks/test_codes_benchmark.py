"""The benchmark of the codes: it counts source bytes, measures all codes, and goes on without the public libraries."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks import codes
from benchmarks.public_codes import BLOCK_BYTES, SOURCES, public_codes
from protocol.datagram import CodeId


def test_rates_are_source_bytes_over_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two looks at this clock 1 ms passes: 3 calls in it first, so 9 calls are to fill 3 ms of a round."""
    clock = iter(range(10_000))
    monkeypatch.setattr(codes.time, "perf_counter", lambda: next(clock) * 1e-3)
    assert codes.measure({"one": lambda: None}) == {"one": pytest.approx(9 * 32 * 1400 / 1e-3 / 1e9)}


def test_every_code_is_measured_and_the_goals_are_those_of_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codes, "ROUNDS", 1)
    monkeypatch.setattr(codes, "ROUND_S", 1e-6)
    monkeypatch.setattr(codes, "public_codes", lambda sources, folder: ({}, ["none today"]))
    document = codes.run()
    for code in CodeId:
        for step in ("encode", "decode"):
            assert document["figures"][f"{code.name.lower()} packets {step}"]["value"] > 0
    goals = {name: figure["goal"] for name, figure in document["figures"].items() if figure["goal"]}
    assert goals == {"mds encode": 9.0, "mds decode": 6.0}
    assert document["notes"][-1] == "none today"


@pytest.mark.slow
def test_libraries_that_cannot_be_installed_are_named_and_nothing_else_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    sources = np.zeros((SOURCES, BLOCK_BYTES), dtype=np.uint8)
    calls, notes = public_codes(sources, tmp_path)
    assert calls == {}
    assert [note.split()[0] for note in notes] == ["pyeclib", "zfec", "raptorq"]
    assert all("is not measured: pip could not install it" in note for note in notes)
