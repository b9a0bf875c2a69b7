"""When samples are taken: only while a client watches, and for a while after it asked."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from controller.live import sampling
from controller.live.sampling import Sample, Sampler
from tests.waiting import eventually


class Counting(Sampler):
    """Samples that count themselves; every third one fails, and the first of each time is not there yet."""

    def __init__(self) -> None:
        self.watching = False
        self.published: list[Sample] = []
        self.log: list[str] = []
        super().__init__("numbers", 0.005, lambda: self.watching, self.published.append)

    def _begin(self) -> None:
        self.log.append("begin")
        self.taken = 0

    def _end(self) -> None:
        self.log.append("end")

    def _take(self) -> Sample | None:
        self.taken += 1
        if self.taken % 3 == 0:
            raise ValueError("as a switch might cause")
        return {"number": self.taken} if self.taken > 1 else None


class Silent(Counting):
    """A sampler that never has a sample."""

    def _take(self) -> Sample | None:
        return None


@pytest.fixture
def sampler(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counting]:
    monkeypatch.setattr(sampling, "LEASE_S", 1.0)
    made = Counting()
    made.start()
    yield made
    made.stop()
    made.stop()


def test_nothing_is_taken_while_no_client_watches(sampler: Counting) -> None:
    time.sleep(0.05)
    assert sampler.log == []
    sampler.watching = True
    sampler.wake()
    eventually(lambda: len(sampler.published) > 5, "samples, for all that fail")
    sampler.watching = False
    eventually(lambda: sampler.log == ["begin", "end"], "the end")
    count = len(sampler.published)
    time.sleep(0.05)
    assert len(sampler.published) == count


@pytest.mark.slow
def test_who_asks_waits_for_the_first_and_is_served_for_a_while(sampler: Counting) -> None:
    first: Any = sampler.newest(60.0)
    assert first["number"] == 2, "the first that there was"
    assert sampler.log[:1] == ["begin"]
    eventually(lambda: sampler.log == ["begin", "end"], "the end of the lease")
    assert sampler.newest(60.0) is not None, "and anew"
    assert sampler.log[:3] == ["begin", "end", "begin"], "and the lease may have ended since"


def test_who_asks_for_what_never_comes_does_not_wait_for_ever() -> None:
    made = Silent()
    made.start()
    began = time.monotonic()
    assert made.newest(0.1) is None
    assert time.monotonic() - began >= 0.1
    made.stop()
