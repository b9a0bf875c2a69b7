"""A port's queueing discipline: what is written, and that changes end where a fresh port would start."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ovsdb.port_queues import PortLimit, PortQueues
from protocol.underlay import queue_of_dscp
from topologies.links import Link, LinkError, link_of, reshape_commands, shape_commands

RATES = st.none() | st.floats(0.1, 1000).map(lambda rate: round(rate, 3))
LINKS = st.builds(
    Link,
    rate_mbps=RATES,
    buffer_packets=st.integers(1, 5000),
    delay_ms=st.sampled_from([0.0, 0.5, 10.0]),
) | st.builds(Link, rate_mbps=RATES, buffer_bytes=st.integers(1500, 10**7))


class FakePort:
    """As much of a kernel's port as the commands may ask for; refuses what the kernel refuses."""

    def __init__(self) -> None:
        self.tree: dict[str, tuple[str, str]] = {}  # handle or class id -> (parent, the rest)
        self.filters: list[str] = []

    def _filter(self, verb: str, words: list[str]) -> None:
        if verb == "del":
            assert self.filters, "nothing to delete"
            self.filters.clear()
            return
        assert words[-1] in self.tree, f"no class {words[-1]}"
        self.filters.append(" ".join(words))

    def queue_of(self, tos: int) -> int:
        """Return the queue of an IPv4 packet: by the first filter that matches, as u32 does it; else the default."""
        for line in self.filters:
            value, mask = (int(word, 16) for word in line.split()[10:12])
            if tos & mask == value:
                return int(line.rpartition(":")[2], 16) - 1
        return 0

    def run(self, lines: list[str]) -> FakePort:
        for line in lines:
            kind, verb, dev, name, *words = line.split()
            assert (dev, name) == ("dev", "p1")
            if (kind, verb) == ("qdisc", "del") and words[0] == "parent":
                del self.tree[words[3]]
                continue
            if (kind, verb) == ("qdisc", "del"):
                assert self.tree, "nothing to delete"
                self.tree.clear()
                self.filters.clear()
                continue
            if kind == "filter":
                assert "1:" in self.tree
                self._filter(verb, words)
                continue
            if (kind, verb) == ("class", "del"):
                assert not any(line.endswith(f"flowid {words[1]}") for line in self.filters), "in use"
                del self.tree[words[1]]
                self.tree = {key: value for key, value in self.tree.items() if value[0] != words[1]}
                continue
            parent = "root" if words[0] == "root" else words.pop(1)
            assert words[1] in ("handle", "classid")
            identity = words[2]
            assert (identity in self.tree) == (verb == "change"), line
            assert parent == "root" or parent in self.tree, f"{parent} is not there: {line}"
            if verb == "change":
                assert self.tree[identity][1].split()[0] == words[3], "a qdisc cannot change its kind"
            self.tree[identity] = (parent, " ".join(words[3:]))
        return self


QUEUES = st.builds(PortQueues, st.integers(1, 8), st.none() | st.integers(1, 1000))


@given(LINKS, LINKS, st.booleans(), QUEUES, QUEUES)
def test_a_changed_port_is_as_if_made_so(
    old: Link, new: Link, netem: bool, before: PortQueues, after: PortQueues
) -> None:
    changed = FakePort().run(shape_commands("p1", old, netem, before))
    changed.run(reshape_commands("p1", old, new, netem=netem, queues=(before, after)))
    fresh = FakePort().run(shape_commands("p1", new, netem, after))
    assert (changed.tree, changed.filters) == (fresh.tree, fresh.filters)


@given(LINKS, QUEUES)
def test_no_change_no_command(link: Link, queues: PortQueues) -> None:
    assert reshape_commands("p1", link, link, netem=True, queues=(queues, queues)) == []


@given(st.integers(1, 8), st.integers(0, 63), st.integers(0, 3))
def test_the_filters_say_what_the_protocol_says(number: int, dscp: int, ecn: int) -> None:
    port = FakePort().run(shape_commands("p1", Link(10), False, PortQueues(number)))
    assert port.queue_of(dscp << 2 | ecn) == queue_of_dscp(dscp, number)


@given(st.integers(2, 8))
def test_changing_the_rate_keeps_all_queues(number: int) -> None:
    queues = PortQueues(number, 64)
    lines = reshape_commands("p1", Link(10), Link(3), netem=False, queues=(queues, queues))
    assert len(lines) == number + 1
    assert all(line.startswith("class change") for line in lines)


def test_changing_the_rate_keeps_the_queue() -> None:
    lines = reshape_commands("p1", Link(10), Link(3), netem=False)
    assert lines
    assert all(line.startswith("class change") for line in lines)


def test_shaped_port() -> None:
    lines = shape_commands("l1-eth1", Link(20, buffer_packets=256), netem=True)
    assert lines[0] == "qdisc add dev l1-eth1 root handle 1: htb default 1"
    assert "rate 20000000bit ceil 20000000bit" in lines[1]
    assert lines[-1] == "qdisc add dev l1-eth1 parent 1:1 handle 11: pfifo limit 256"


@given(QUEUES, QUEUES)
def test_no_queue_of_several_has_a_rate_by_which_it_passes_the_packet_on_the_wire(
    before: PortQueues, after: PortQueues
) -> None:
    port = FakePort().run(shape_commands("p1", Link(20), False, before))
    port.run(reshape_commands("p1", Link(20), Link(20), netem=False, queues=(before, after)))
    classes = [words for parent, words in port.tree.values() if parent == "1:fffe"]
    own = "rate 1000bit" if after.number > 1 else "rate 20000000bit"
    assert len(classes) == after.number
    assert all(own in words and "ceil 20000000bit" in words for words in classes)


def test_delay_holds_the_wire_and_the_buffer() -> None:
    # 100 Mbit/s x 10 ms = 125000 B = 82.6 frames of 1514 B on the wire
    assert "netem delay 10ms limit 339" in shape_commands("p1", Link(100, 256, 10), netem=True)[-1]
    assert "netem" not in " ".join(shape_commands("p1", Link(100, 256, 10), netem=False))


def test_unshaped_port_is_left_alone() -> None:
    assert shape_commands("p1", Link(), netem=True) == []


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"rate_mbps": 0}, "rate_mbps"),
        ({"rate_mbps": -1}, "rate_mbps"),
        ({"rate_mbps": "10"}, "rate_mbps"),
        ({"rate_mbps": float("nan")}, "rate_mbps"),
        ({"rate_mbps": True}, "rate_mbps"),
        ({"buffer_packets": 0}, "buffer_packets"),
        ({"buffer_packets": 2.5}, "buffer_packets"),
        ({"buffer_bytes": 0}, "buffer_bytes"),
        ({"buffer_bytes": 9000, "buffer_packets": 6}, "buffer_bytes cannot be together .*: give one of them"),
        ({"delay_ms": -0.1}, "delay_ms"),
        ({"delay_ms": None}, "delay_ms"),
        ({"speed": 10}, "speed"),
    ],
)
def test_wrong_links_name_the_field(values: dict[str, object], field: str) -> None:
    with pytest.raises(LinkError, match=field):
        Link.from_dict(values)


@given(LINKS)
def test_round_trip(link: Link) -> None:
    assert Link.from_dict(link.to_dict()) == link
    assert link_of(link.to_dict()) == link


def test_links_from_what_people_write() -> None:
    assert link_of(None) == Link()
    assert link_of(10) == Link(rate_mbps=10)
    assert Link.from_dict({"rate_mbps": 2}, base=Link(10, 64)) == Link(2, 64)
    assert str(Link(10, 64, 1)) == "10 Mbit/s, buffer 64 packets, 1 ms"
    assert str(Link(10, buffer_bytes=9000)) == "10 Mbit/s, buffer 9000 B"


def test_of_two_buffers_a_single_links_own_is_in_force() -> None:
    in_bytes, in_packets = Link(10, buffer_bytes=9000), Link(10, 64)
    assert Link.from_dict({"buffer_packets": 6}, base=in_bytes) == Link(10, 6)
    assert Link.from_dict({"buffer_bytes": 9000}, base=in_packets) == in_bytes
    assert Link.from_dict({"rate_mbps": 2}, base=in_bytes) == Link(2, buffer_bytes=9000)
    assert (in_bytes.full_packets(1500), in_packets.full_packets(1500)) == (6, 64)


def test_a_buffer_in_bytes_is_the_kernels_own_but_for_queues_and_delays_of_packets() -> None:
    link = Link(20, buffer_bytes=9000)
    assert shape_commands("p1", link, netem=True)[-1].endswith("handle 11: bfifo limit 9000")
    of_a_scheme = shape_commands("p1", link, False, PortQueues(2, 6))
    assert [line.partition("pfifo")[2] for line in of_a_scheme if "fifo" in line] == [" limit 6"] * 2
    delayed = Link(20, delay_ms=1, buffer_bytes=9000)
    assert "bfifo" in shape_commands("p1", delayed, netem=False)[-1]
    with pytest.raises(LinkError, match="beside delay_ms is for simulations only"):
        shape_commands("p1", delayed, netem=True)


@given(LINKS, st.none() | st.integers(1000, 10**9), st.integers(0, 10**6))
def test_a_limit_makes_no_link_faster(link: Link, rate_bps: int | None, delay_us: int) -> None:
    slow = link.limited(PortLimit(rate_bps, delay_us))
    assert slow.buffer_packets == link.buffer_packets
    assert slow.delay_ms == pytest.approx(link.delay_ms + delay_us / 1000)
    if rate_bps is None:
        assert slow.rate_mbps == link.rate_mbps
    else:
        assert slow.rate_mbps is not None
        assert slow.rate_mbps == pytest.approx(min(rate_bps / 1e6, link.rate_mbps or rate_bps / 1e6))
