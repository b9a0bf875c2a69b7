"""The windows that the page's tour plays: small, and what their command makes."""

from __future__ import annotations

import pytest

from experiments.results.packet_trace import parse_trace
from simulation.tour import DIRECTORY, FOR_MS, FROM_MS, SCHEMES, record, tour_spec

MOST_BYTES = 300_000


def test_there_is_a_small_file_for_each_scheme() -> None:
    files = sorted(DIRECTORY.iterdir())
    assert {file.name for file in files} == {f"{scheme}.trace" for scheme in SCHEMES}
    assert sum(file.stat().st_size for file in files) < MOST_BYTES
    assert {choice.label for choice in tour_spec().schemes} == set(SCHEMES)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_file_is_what_its_command_makes(scheme: str) -> None:
    trace = parse_trace((DIRECTORY / f"{scheme}.trace").read_bytes())
    assert trace == record(scheme)  # as in its file: how gzip packs differs between machines
    assert (trace.begin_ps, trace.length_ps, trace.cut) == (FROM_MS * 1e9, FOR_MS * 1e9, False)
