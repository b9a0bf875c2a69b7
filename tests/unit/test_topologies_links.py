"""A port's queueing discipline: what is written, and that changes end where a fresh port would start."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topologies.links import Link, LinkError, link_of, reshape_commands, shape_commands

LINKS = st.builds(
    Link,
    rate_mbps=st.none() | st.floats(0.1, 1000).map(lambda rate: round(rate, 3)),
    buffer_packets=st.integers(1, 5000),
    delay_ms=st.sampled_from([0.0, 0.5, 10.0]),
)


class FakePort:
    """As much of a kernel's port as the commands may ask for; refuses what the kernel refuses."""

    def __init__(self) -> None:
        self.tree: dict[str, tuple[str, str]] = {}  # handle or class id -> (parent, the rest)

    def run(self, lines: list[str]) -> FakePort:
        for line in lines:
            kind, verb, dev, name, *words = line.split()
            assert (dev, name) == ("dev", "p1")
            parent = "root" if words[0] == "root" else words.pop(1)
            if (kind, verb) == ("qdisc", "del"):
                assert self.tree, "nothing to delete"
                self.tree.clear()
                continue
            assert words[1] in ("handle", "classid")
            identity = words[2]
            assert (identity in self.tree) == (verb == "change"), line
            assert parent == "root" or parent in self.tree, f"{parent} is not there: {line}"
            if verb == "change":
                assert self.tree[identity][1].split()[0] == words[3], "a qdisc cannot change its kind"
            self.tree[identity] = (parent, " ".join(words[3:]))
        return self


@given(LINKS, LINKS, st.booleans())
def test_a_changed_port_is_as_if_made_so(old: Link, new: Link, netem: bool) -> None:
    changed = FakePort().run(shape_commands("p1", old, netem)).run(reshape_commands("p1", old, new, netem))
    assert changed.tree == FakePort().run(shape_commands("p1", new, netem)).tree


@given(LINKS)
def test_no_change_no_command(link: Link) -> None:
    assert reshape_commands("p1", link, link, True) == []


def test_changing_the_rate_keeps_the_queue() -> None:
    lines = reshape_commands("p1", Link(10), Link(3), False)
    assert lines
    assert all(line.startswith("class change") for line in lines)


def test_shaped_port() -> None:
    lines = shape_commands("l1-eth1", Link(20, buffer_packets=256), netem=True)
    assert lines[0] == "qdisc add dev l1-eth1 root handle 1: htb default 1"
    assert "rate 20000000bit ceil 20000000bit" in lines[1]
    assert lines[-1] == "qdisc add dev l1-eth1 parent 1:1 handle 11: pfifo limit 256"


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
