"""What may be kept of agents' flow records, and how much of it."""

from __future__ import annotations

import math
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.tpfs.records import RECORD, Names, RecordsError, RecordWindow, checked
from protocol.control import FinishedFlows
from tests.unit.counted_calls import calls

OWNERS = {"10.128.1.1": "h1", "10.128.2.1": "h2"}
GOOD = FinishedFlows(100.0, [6], ["10.128.1.1"], [40000], ["10.128.2.1"], [80], [5000], [98.0], [99.0])


def _check(said: FinishedFlows, host: str = "h1") -> tuple[int, dict[str, int]]:
    kept, refused = checked(said, host, owners=OWNERS, hosts=Names(), addresses=Names(), now=1000.0)
    return len(kept), dict(refused)


def test_a_record_is_kept_in_the_controllers_clock() -> None:
    hosts, addresses = Names(), Names()
    kept, refused = checked(GOOD, "h1", owners=OWNERS, hosts=hosts, addresses=addresses, now=1000.0)
    assert not refused
    (record,) = kept
    assert (hosts.texts[record["host"]], addresses.texts[record["source"]]) == ("h1", "10.128.1.1")
    assert addresses.texts[record["destination"]] == "10.128.2.1"
    assert record[["source_port", "destination_port", "protocol", "bytes", "start", "end"]].tolist() == (
        40000,
        80,
        6,
        5000,
        998.0,
        999.0,
    )


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"source": ["10.128.2.1"]}, "foreign_source"),
        ({"source": ["10.9.9.9"]}, "foreign_source"),
        ({"destination": ["10.9.9.9"]}, "unknown_destination"),
        ({"source_port": [65536]}, "bad_port"),
        ({"destination_port": [-1]}, "bad_port"),
        ({"protocol": [256]}, "bad_protocol"),
        ({"bytes": [0]}, "bad_bytes"),
        ({"bytes": [-5]}, "bad_bytes"),
        ({"bytes": [10**30]}, "bad_bytes"),
        ({"end_s": [97.0]}, "bad_time"),
        ({"start_s": [math.nan]}, "bad_time"),
        ({"end_s": [math.inf]}, "bad_time"),
        ({"end_s": [500.0]}, "in_future"),
        ({"start_s": [-1e9]}, "too_old"),
        ({"bytes": [10**12]}, "too_fast"),
    ],
)
def test_what_cannot_be_is_refused_and_counted(change: dict[str, list[float]], reason: str) -> None:
    assert _check(replace(GOOD, **change)) == (0, {reason: 1})  # type: ignore[arg-type]


def test_one_bad_record_does_not_cost_the_others() -> None:
    names = [item.name for item in fields(GOOD) if item.name != "now_s"]
    three = replace(GOOD, **{name: [*getattr(GOOD, name)] * 3 for name in names})
    kept, refused = _check(replace(three, bytes=[5, 0, 7]))
    assert (kept, refused) == (2, {"bad_bytes": 1})


def test_columns_that_do_not_fit_are_an_error() -> None:
    with pytest.raises(RecordsError, match="length"):
        _check(replace(GOOD, bytes=[1, 2]))
    with pytest.raises(RecordsError, match="nan"):
        _check(replace(GOOD, now_s=math.nan))


def test_numbers_beyond_all_bounds_are_refused_one_by_one() -> None:
    """Some fit 64 bits and no field, some not even those."""
    sizes = [5000, 1 << 62, -(1 << 62), (1 << 63) - 1, 5000]
    for more in ([], [1 << 70]):
        many = sizes + more
        said = FinishedFlows(
            100.0,
            [6] * len(many),
            ["10.128.1.1"] * len(many),
            [40000] * len(many),
            ["10.128.2.1"] * len(many),
            [80] * len(many),
            many,
            [98.0] * len(many),
            [99.0] * len(many),
        )
        assert _check(said) == (2, {"bad_bytes": len(many) - 2})


def _records(host: int, count: int, end: float) -> np.ndarray:
    records = np.zeros(count, RECORD)
    records["host"], records["end"] = host, end
    records["bytes"] = np.arange(1, count + 1)
    return records


@settings(max_examples=50, deadline=None)
@given(batches=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 400)), max_size=30))
def test_the_window_is_bounded_and_a_host_displaces_only_those_that_have_more(
    batches: list[tuple[int, int]],
) -> None:
    window = RecordWindow(most_records=300, most_age_s=1e9)
    sent: dict[int, int] = {}
    for now, (host, count) in enumerate(batches):
        window.add(_records(host, count, float(now)), float(now))
        sent[host] = sent.get(host, 0) + count
        kept = window.by_host()
        assert len(window) == sum(kept.values()) == sum(map(len, window.chunks())) <= 300
        fair = 300 // len([one for one in sent.values() if one] or [1])
        assert all(kept.get(one, 0) >= min(total, fair) for one, total in sent.items())
        assert len(window) + window.displaced == sum(sent.values())


def test_a_flood_leaves_the_others_records_alone_and_keeps_its_own_latest() -> None:
    window = RecordWindow(most_records=1000)
    window.add(_records(1, 100, 0.0), 0.0)
    for now in range(50):
        window.add(_records(2, 500, float(now)), float(now))
    assert window.by_host() == {1: 100, 2: 900}
    kept = np.concatenate(window.chunks())
    assert kept[kept["host"] == 2]["end"].min() >= 48


def test_what_comes_of_a_host_costs_no_more_the_more_hosts_there_are() -> None:
    """The window is full, and what comes displaces: with 1000 hosts 512 records took 4.6 ms, with 20 of them 0.1."""

    def cost(hosts: int) -> int:
        window = RecordWindow(most_records=20 * hosts, most_age_s=1e9)
        for host in range(hosts):
            window.add(_records(host, 20 + host % 5, 0.0), 0.0)
        assert len(window) == 20 * hosts
        several = [calls(lambda: window.add(_records(7, 30, 1.0), 1.0), compiled=True) for _ in range(20)]
        return sum(several)

    assert cost(2000) < 3 * cost(20)


def test_a_host_that_has_lost_most_of_a_chunk_gives_back_its_memory() -> None:
    window = RecordWindow(most_records=1000)
    window.add(_records(1, 1000, 0.0), 0.0)
    for host in range(2, 12):
        window.add(_records(host, 80, 1.0), 1.0)
    held = [chunk if chunk.base is None else chunk.base for chunk in window.chunks()]
    assert sum(map(len, held)) <= 2 * len(window)


def test_what_is_too_old_goes() -> None:
    window = RecordWindow(most_age_s=60)
    window.add(_records(1, 2000, 0.0), 0.0)
    window.add(_records(1, 7, 50.0), 50.0)
    window.expire(61.0)
    assert len(window) == 7
    window.expire(111.0)
    assert (len(window), window.by_host()) == (0, {})
