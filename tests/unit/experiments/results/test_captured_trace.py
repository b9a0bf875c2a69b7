"""Recordings of runs on switches, out of captures that are made here: what is known of each packet, and what is not."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from hypothesis import given
from hypothesis import strategies as st

from experiments.results.captured import (
    ACKNOWLEDGEMENT,
    DATA,
    FRAME_BYTES,
    OPENING,
    CapturedFrame,
    CapturedLink,
    CapturedRun,
    read_datagram,
)
from experiments.results.captured_trace import captured_trace
from experiments.results.packet_trace import FLIGHT, OUTCOMES, PacketTrace, parse_trace, trace_bytes
from topologies.layout import leaf_spine
from workloads.plan import Plan, PlannedFlow

LAYOUT = leaf_spine(2, 2, 1)
LINKS = tuple(
    CapturedLink(source, destination, 10_000_000, 0, 8)
    for pair in (*LAYOUT.access, *LAYOUT.fabric)
    for source, destination in (pair, pair[::-1])
)
ROWS = {(link.source, link.destination): row for row, link in enumerate(LINKS)}
PLAN = Plan((PlannedFlow(7, "h1", "h2", 20000, 0.0, 5000, "short"),), (0.0, 1.0))
BEGIN_NS = 1_800_000_000 * 10**9
MONOTONIC_NS = BEGIN_NS - 5_000_000_000_000
RUN = CapturedRun(
    spec="made",
    scheme="ecmp",
    repeat=0,
    plan=PLAN,
    hosts=LAYOUT.hosts,
    links=LINKS,
    begin_ps=3 * 10**12,
    begin_ns=BEGIN_NS,
    end_ns=BEGIN_NS + 10**9,
    monotonic_ns=MONOTONIC_NS,
    modes=[{"at_s": 2.5, "leaf": "l1", "mode": "on"}, {"at_s": 3.25, "leaf": "l2", "mode": "on"}],
    most_hops=200_000,
)


def packed(address: str) -> bytes:
    return bytes(int(part) for part in address.split("."))


def frame(
    number: int,
    sent_us: int,
    *,
    back: bool = False,
    payload: int = 1000,
    kind: int = 1,
    flags: int = 0x10,
    source_port: int = 30000,
) -> bytes:
    """Return a frame as an agent's datagram has it, of a packet of the planned flow or of the other direction."""
    near, far = LAYOUT.hosts[::-1] if back else LAYOUT.hosts
    ports = (5001, 20000) if back else (20000, 5001)
    tcp = struct.pack("!HHIIBBHHH", *ports, 0, 0, 0x50, flags, 0, 0, 0)
    inner = struct.pack(
        "!BBHHHBBH4s4s", 0x45, 0, 40 + payload, 0, 0, 64, 6, 0, packed(near.overlay), packed(far.overlay)
    )
    header = struct.pack("!BBBxIIIII8x", 0xCA, 0x10 | kind, 1, 99, number, sent_us % 2**32, 4, number)
    outer = struct.pack(
        "!BBHHHBBH4s4s", 0x45, 0, 0, 0, 0, 64, 17, 0, packed(near.underlay), packed(far.underlay)
    )
    return (
        bytes(12)
        + b"\x08\x00"
        + outer
        + struct.pack("!HHHH", source_port, 47000, 0, 0)
        + header
        + inner
        + tcp
    )


@dataclass(frozen=True)
class Way:
    """A packet: when it was sent (ns from the window's begin), its path, how long each port held it, where it ended."""

    sent_ns: int
    spine: str
    held_ns: tuple[int, ...]
    crossed: int

    def frames(self, number: int) -> list[CapturedFrame]:
        head = frame(number, (BEGIN_NS + self.sent_ns - MONOTONIC_NS) // 1000)
        nodes = ("h1", "l1", self.spine, "l2", "h2")
        at_ns, frames = BEGIN_NS + self.sent_ns, []
        for place in range(self.crossed):
            at_ns += self.held_ns[place]
            frames.append(
                CapturedFrame(at_ns, ROWS[nodes[place], nodes[place + 1]], head[:FRAME_BYTES], 1114)
            )
        return frames


ways = st.lists(
    st.builds(
        Way,
        sent_ns=st.integers(0, 900_000).map(lambda us: us * 1000),
        spine=st.sampled_from(["s1", "s2"]),
        held_ns=st.tuples(*[st.integers(0, 4_000_000)] * 4),
        crossed=st.integers(1, 4),
    ),
    min_size=1,
    max_size=30,
)


def trace_of(packets: Sequence[Way], run: CapturedRun = RUN) -> PacketTrace:
    frames = [each for number, way in enumerate(packets) for each in way.frames(number)]
    trace = captured_trace(frames, run, cut=False)
    assert trace is not None
    return trace


@given(ways)
def test_what_was_seen_crossing_a_link_is_a_hop_that_ends_then(packets: Sequence[Way]) -> None:
    trace = trace_of(packets)
    hops, ends = trace.hops, []
    for row, outcome in enumerate(hops["outcome"]):
        if OUTCOMES[outcome] == "sent":
            end = hops["offered_ps"][row] + hops["waited_ps"][row] + hops[FLIGHT][row]
            number = trace.packets["number"][hops["packet"][row]]
            ends.append((number, hops["link"][row], BEGIN_NS + end // 1000))
    seen = [
        (number, each.link, each.at_ns) for number, way in enumerate(packets) for each in way.frames(number)
    ]
    assert sorted(ends) == sorted(seen)
    assert trace.switches is not None
    assert trace.switches.left_out == 0


@given(ways)
def test_each_hop_begins_where_and_when_the_one_before_it_ended(packets: Sequence[Way]) -> None:
    trace = trace_of(packets)
    hops = trace.hops
    assert list(hops["offered_ps"]) == sorted(hops["offered_ps"])
    at: dict[int, tuple[str, int]] = {}
    for row, (packet, link) in enumerate(zip(hops["packet"], hops["link"], strict=True)):
        node, offered_ps = at.get(packet, ("h1", packets[trace.packets["number"][packet]].sent_ns * 1000))
        assert (LINKS[link].source, hops["offered_ps"][row]) == (node, offered_ps)
        assert 0 <= hops[FLIGHT][row] <= LINKS[link].crossing_ps(trace.packets["bytes"][packet])
        end_ps = offered_ps + hops["waited_ps"][row] + hops[FLIGHT][row]
        at[packet] = LINKS[link].destination, end_ps


@given(ways)
def test_what_was_seen_no_more_is_dropped_where_only_one_port_can_have_dropped_it(
    packets: Sequence[Way],
) -> None:
    trace = trace_of([replace(way, sent_ns=way.sent_ns // 2) for way in packets])
    lost = Counter(way.crossed for way in packets if way.crossed < 4)
    dropped = Counter(
        LINKS[link].source[0] + LINKS[link].destination[0]
        for link, outcome in zip(trace.hops["link"], trace.hops["outcome"], strict=True)
        if OUTCOMES[outcome] == "dropped"
    )
    assert trace.switches is not None
    assert dropped["sl"] == lost[2]
    assert dropped["lh"] == lost[3]
    # which spine a packet was meant for: known where another with its ports was seen on the way there
    assert dropped["ls"] + trace.switches.unplaced_drops == lost[1]
    assert (dropped["ls"] > 0) <= any(way.crossed > 1 for way in packets)


def test_what_was_seen_last_shortly_before_the_end_may_still_wait() -> None:
    trace = trace_of([Way(999_000_000, "s1", (100, 100, 100, 100), 2)])
    assert [OUTCOMES[outcome] for outcome in trace.hops["outcome"]] == ["sent", "sent", "pending"]


@given(ways)
def test_a_recording_comes_back_from_its_file(packets: Sequence[Way]) -> None:
    trace = trace_of(packets)
    again = parse_trace(trace_bytes(trace))
    assert (again.hops, again.packets, again.flows) == (trace.hops, trace.packets, trace.flows)
    assert again.switches == trace.switches


@given(ways, st.integers(1, 20))
def test_a_recording_that_is_full_ends_there(packets: Sequence[Way], most: int) -> None:
    whole = trace_of(packets)
    frames = [each for number, way in enumerate(packets) for each in way.frames(number)]
    trace = captured_trace(frames, replace(RUN, most_hops=most), cut=False)
    count = 0 if trace is None else len(trace.hops["packet"])
    assert count <= most
    if trace is not None:
        assert trace.cut == (len(whole.hops["packet"]) > most)
        assert trace.length_ps <= whole.length_ps


def test_packets_of_both_directions_belong_to_the_planned_flow() -> None:
    frames = [
        CapturedFrame(
            BEGIN_NS + 10_000, ROWS["h1", "l1"], frame(1, 5_000_000_000, flags=0x02, payload=0), 94
        ),
        CapturedFrame(BEGIN_NS + 20_000, ROWS["h1", "l1"], frame(2, 5_000_000_000), 1114),
        CapturedFrame(BEGIN_NS + 30_000, ROWS["h2", "l2"], frame(3, 5_000_000_000, back=True, payload=0), 94),
    ]
    trace = captured_trace(frames, RUN, cut=False)
    assert trace is not None
    sent = [
        (trace.packets["kind"][packet], trace.packets["flow"][packet], trace.packets["source"][packet])
        for packet in range(3)
    ]
    assert sorted(sent) == sorted([(OPENING, 0, 0), (DATA, 0, 0), (ACKNOWLEDGEMENT, 0, 1)])
    assert trace.flows["id"] == [7]


def test_modes_in_force_at_the_windows_begin_come_first() -> None:
    trace = trace_of([Way(0, "s1", (1, 1, 1, 1), 4)])
    assert trace.modes == {"at_ps": [0, 250 * 10**9], "leaf": [0, 1], "on": [True, True]}


def test_a_packet_with_a_gap_in_its_path_is_shown_up_to_there() -> None:
    frames = Way(0, "s1", (1000, 1000, 1000, 1000), 4).frames(1)
    del frames[1]
    trace = captured_trace(frames, RUN, cut=False)
    assert trace is not None
    assert trace.switches is not None
    assert trace.switches.left_out == 1
    assert [LINKS[link].destination for link in trace.hops["link"]] == ["l1"]


@given(st.binary(max_size=FRAME_BYTES))
def test_what_is_no_datagram_of_an_agent_is_none(noise: bytes) -> None:
    assert read_datagram(noise) is None


def test_a_capture_without_a_packet_gives_no_recording() -> None:
    assert captured_trace([], RUN, cut=False) is None
