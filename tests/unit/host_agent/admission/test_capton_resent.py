"""What is sent again is reported once, with its trigger and what became of it first."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.api.routes_capton import resent_view
from controller.capton.resent import ResentLog
from experiments.results.admissions import AdmissionCount, admission_entry, admission_note
from protocol.admission import AdmissionPolicy
from protocol.frames import FrameReader, encode
from protocol.limits import FROM_AGENT_BYTES
from protocol.sent_again import Resent, SentAgain, by_cause
from tests.unit.admission_agent import AdmittingAgent
from tests.unit.inner_packets import HOST1, HOST2, tcp

MSS = 1000
SETTLE_S, IDLE_S = 1.0, 60.0
FIN, SYN, RST, ACK = 0x01, 0x02, 0x04, 0x10
PORTS = (40000, 80)
ISN = 2**32 - 2 * MSS - 1
"""Numbers wrap within the third segment."""


class Watched:
    """A connection whose packets an agent sees; positions are bytes of payload."""

    def __init__(self, announced: float | None = None, opened: bool = True) -> None:
        self.agent = AdmittingAgent(AdmissionPolicy(threshold_bytes=1 << 30))
        if opened:
            syn = tcp(b"", HOST1, HOST2, ports=PORTS, sequence=ISN, flags=SYN)
            self.agent.sent(syn, announced, 0.0)

    def send(self, start: int, end: int, now: float) -> int:
        """Send these bytes from the host; return how many it has sent again, as the agent counts them."""
        before = self.agent.totals().get("bytes_sent_again", 0)
        number = (ISN + 1 + start) % 2**32
        packet = tcp(bytes(end - start), HOST1, HOST2, ports=PORTS, sequence=number, flags=ACK)
        self.agent.sent(packet, None, now, MSS)
        return int(self.agent.totals().get("bytes_sent_again", 0) - before)

    def ack(self, upto: int, now: float, sack: Sequence[tuple[int, int]] = (), flags: int = ACK) -> None:
        options = b""
        if sack:
            numbers = [(ISN + 1 + edge) % 2**32 for block in sack for edge in block]
            options = bytes((1, 1, 5, 2 + 4 * len(numbers))) + b"".join(n.to_bytes(4, "big") for n in numbers)
        packet = tcp(
            b"",
            HOST2,
            HOST1,
            ports=PORTS[::-1],
            sequence=77,
            ack=(ISN + 1 + upto) % 2**32,
            flags=flags,
            options=options,
        )
        self.agent.received([packet], now)

    def reported(self, now: float) -> list[Resent]:
        return self.agent.resent(now)


def sent(count: int = 4, announced: float | None = None) -> Watched:
    """Return a connection with so many segments in flight since 1.0."""
    watched = Watched(announced)
    for index in range(count):
        assert watched.send(index * MSS, (index + 1) * MSS, 1.0) == 0
    return watched


def test_after_a_time_out_all_that_goes_again_is_a_single_episode() -> None:
    watched = sent(announced=2.0**31)
    watched.ack(MSS, 1.1)
    assert watched.send(MSS, 2 * MSS, 1.4) == MSS
    watched.ack(2 * MSS, 1.5)
    assert watched.send(2 * MSS, 4 * MSS, 1.5) == 2 * MSS
    watched.ack(4 * MSS, 1.6)
    assert watched.reported(1.6) == []
    (episode,) = watched.reported(1.7 + SETTLE_S)
    assert (episode.source, episode.source_port, episode.destination_port) == (HOST1, *PORTS)
    assert (episode.state, episode.trigger, episode.bytes) == ("waiting", "time-out", 3 * MSS)
    assert episode.quiet_s == pytest.approx(0.3)
    assert episode.lasted_s == pytest.approx(0.1)
    assert episode.in_flight_bytes == 3 * MSS
    assert episode.verdicts() == {"lost": 3 * MSS}
    assert watched.reported(9.0) == []


def test_a_gap_is_what_selective_or_duplicate_acknowledgements_show() -> None:
    selective, duplicate = sent(), sent()
    selective.ack(0, 1.01, [(MSS, 4 * MSS)])
    for index in range(4):
        duplicate.ack(0, 1.01 + index / 1000)
    for watched in (selective, duplicate):
        watched.send(0, MSS, 1.02)
        watched.ack(4 * MSS, 1.04)
        (episode,) = watched.reported(3.0)
        assert (episode.trigger, episode.verdicts()) == ("gap", {"lost": MSS})
    late = sent()
    late.ack(0, 1.01, [(2 * MSS, 4 * MSS)])
    late.ack(MSS, 1.02, [(2 * MSS, 4 * MSS)])
    late.ack(4 * MSS, 1.03)
    late.send(4 * MSS, 5 * MSS, 1.03)
    late.send(3 * MSS, 5 * MSS, 1.04)
    assert [one.trigger for one in late.reported(3.0)] == ["gap"], "the host does not know that it is filled"


def test_the_newest_bytes_alone_are_a_probe() -> None:
    lonely = sent(1)
    lonely.send(0, MSS, 1.05)
    (early,) = lonely.reported(3.0)
    assert early.trigger == "probe", "too early for a time-out"
    watched = sent()
    watched.send(3 * MSS, 4 * MSS, 1.05)
    watched.ack(4 * MSS, 1.06, [(3 * MSS, 4 * MSS)])
    (episode,) = watched.reported(3.0)
    assert (episode.trigger, episode.verdicts()) == ("probe", {"needless": MSS})


def test_what_the_receiver_says_after_the_last_flow_has_ended_counts() -> None:
    watched = sent()
    watched.send(3 * MSS, 4 * MSS, 1.05)
    number = (ISN + 1 + 4 * MSS) % 2**32
    end = tcp(b"", HOST1, HOST2, ports=PORTS, sequence=number, flags=FIN | ACK)
    watched.agent.sent(end, None, 1.05)
    assert len(watched.agent) == 0
    watched.ack(4 * MSS, 1.06, [(3 * MSS, 4 * MSS)])
    (episode,) = watched.reported(3.0)
    assert episode.verdicts() == {"needless": MSS}


def test_a_repair_that_is_lost_itself_is_a_time_out_of_its_own() -> None:
    watched = sent()
    watched.ack(0, 1.01, [(MSS, 3 * MSS)])
    watched.send(0, MSS, 1.02)
    watched.ack(MSS, 1.03)
    watched.send(MSS, 2 * MSS, 1.3)  # the receiver has it, by its word; who resends it has given that up
    watched.ack(4 * MSS, 1.4)
    assert [one.bytes for one in watched.reported(3.0)] == [2 * MSS]
    again = sent()
    again.ack(0, 1.01, [(MSS, 2 * MSS)])
    again.send(0, MSS, 1.02)
    again.ack(2 * MSS, 1.03)
    again.send(2 * MSS, 3 * MSS, 1.3)
    again.ack(4 * MSS, 1.4)
    assert [one.trigger for one in again.reported(3.0)] == ["gap", "time-out"]


def test_what_never_reached_the_agent_was_dropped_before_it() -> None:
    watched = Watched()
    watched.send(0, MSS, 1.0)
    watched.send(3 * MSS, 4 * MSS, 1.0)
    watched.ack(MSS, 1.1, [(3 * MSS, 4 * MSS)])
    watched.send(MSS, 2 * MSS, 1.1)
    watched.send(2 * MSS, 3 * MSS, 1.1)
    watched.ack(4 * MSS, 1.2)
    (episode,) = watched.reported(3.0)
    assert episode.verdicts() == {"queue": 2 * MSS}


def test_of_an_open_connection_it_is_unknown_what_had_left() -> None:
    watched = Watched(opened=False)
    assert watched.send(MSS, 2 * MSS, 1.0) == 0
    watched.send(5 * MSS, 6 * MSS, 1.0)
    assert watched.send(2 * MSS, 3 * MSS, 1.0) == MSS
    watched.ack(6 * MSS, 1.1)
    (episode,) = watched.reported(3.0)
    assert episode.queue_bytes == 0


def test_duplicates_are_reported_below_or_within_what_is_acknowledged() -> None:
    watched = sent()
    watched.send(0, MSS, 1.3)
    watched.ack(MSS, 1.31, [(0, MSS)])
    (below,) = watched.reported(3.0)
    assert below.verdicts() == {"needless": MSS}
    watched = sent()
    watched.ack(0, 1.01, [(2 * MSS, 4 * MSS)])
    watched.send(0, MSS, 1.02)
    watched.send(2 * MSS, 3 * MSS, 1.02)
    watched.ack(0, 1.03, [(2 * MSS, 3 * MSS), (2 * MSS, 4 * MSS)])
    (within,) = watched.reported(3.0)
    assert within.verdicts() == {"needless": MSS, "lost": MSS}


def test_what_crosses_its_acknowledgement_and_a_late_agent_are_reported() -> None:
    watched = sent()
    watched.agent.core.gate.late(0.2, 1.0)
    watched.agent.core.gate.late(0.1, 1.2)
    watched.ack(4 * MSS, 1.3)
    watched.send(0, MSS, 1.3)
    (episode,) = watched.reported(3.0)
    assert (episode.trigger, episode.in_flight_bytes, episode.late_s) == ("crossed", 0, 0.2)
    watched.send(4 * MSS, 5 * MSS, 5.0)
    watched.send(4 * MSS, 5 * MSS, 5.3)
    (later,) = watched.reported(9.0)
    assert later.late_s == 0.0


def test_connections_that_end_report_at_once_and_idle_ones_are_forgotten() -> None:
    watched = sent()
    watched.send(0, MSS, 1.3)
    watched.ack(0, 1.4, flags=ACK | RST)
    assert [one.bytes for one in watched.reported(1.4)] == [MSS]
    watched = sent()
    watched.send(0, MSS, 1.3)
    assert len(watched.reported(1.3 + IDLE_S + 1)) == 1
    assert watched.send(0, MSS, 99.0) == 0, "another connection, for all that is known"


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 19), st.integers(1, 5), st.sampled_from("sa")), max_size=60))
def test_every_byte_that_left_before_is_counted_and_reported_once(steps: list[tuple[int, int, str]]) -> None:
    watched, now = Watched(), 1.0
    highest = acked = again = 0
    episodes: list[Resent] = []
    for start, count, kind in steps:
        now += 0.05
        begin, end = start * MSS, (start + count) * MSS
        if kind == "a":
            acked = max(acked, min(begin, highest))
            watched.ack(acked, now)
            continue
        expected = max(0, min(end, highest) - begin)
        assert watched.send(begin, end, now) == expected
        again += expected
        highest = max(highest, end)
        episodes += watched.reported(now)
    episodes += watched.reported(now + 2 * SETTLE_S)
    assert sum(one.bytes for one in episodes) == again
    assert all(sum(one.verdicts().values()) == one.bytes for one in episodes)
    assert sum(by_cause(episodes).values()) == again


def episode(size: int, needless: int, at: float) -> Resent:
    return Resent("10.1.0.1", 1, "10.1.0.2", 2, "granted", "gap", at, 0.01, 0.002, 0.0, 9000, size, needless)


def test_episodes_reach_a_result_with_their_cause() -> None:
    log = ResentLog()
    before = resent_view(log.view(100.0))
    assert (before["episodes"], before["by_cause"]) == (0, [])
    (message,) = FrameReader().feed(
        encode(SentAgain(50.0, [episode(3000, 1000, 49.0), episode(500, 0, 48.0)]))
    )
    assert isinstance(message, SentAgain)
    event = log.add("h7", message, 200.0)
    assert (event.host, event.bytes) == ("h7", 3500)
    view = json.loads(json.dumps(resent_view(log.view(202.0))))
    assert view["by_cause"][0] == {"state": "granted", "trigger": "gap", "verdict": "lost", "bytes": 2500}
    assert [one["s_ago"] for one in view["newest"]] == [4.0, 3.0], (
        "the newest first; the host's clock is its own"
    )
    count = AdmissionCount([{"counters": {}}], before)
    agents = [{"counters": {"bytes_sent_again": 4000}}]
    assert not count.explained(agents, view)
    assert count.explained([{"counters": {"bytes_sent_again": 3500}}], view)
    admitted = count.until(agents, view, 10.0)
    assert [one["at_s"] for one in admitted.resent] == [7.0, 6.0]
    entry = admission_entry([admitted], 3)
    assert entry is not None
    note = admission_note("capton", entry, 3500)
    assert (
        "3500 B retransmitted (by the agents: 2500 B granted, gap, lost; 1000 B granted, gap, needless)"
        in note
    )


def test_any_number_of_episodes_is_sent_in_frames_that_the_controller_takes() -> None:
    """An incast of 3200 flows in one message ended the agent's channel, which is what such a moment needs least."""
    text, much = "ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255", 1 << 62
    longest = Resent(
        text,
        65535,
        text,
        65535,
        "no-admission",
        "time-out",
        123456.78901234567,
        1 / 3e5,
        1 / 3e5,
        1 / 3e5,
        much,
        much,
        much,
        much,
    )
    reported = [replace(longest, source_port=number) for number in range(20_000)]
    parts = SentAgain.parts(9.0, reported)
    assert [one for part in parts for one in part.resent] == reported
    assert max(len(encode(part)) for part in parts) < FROM_AGENT_BYTES["sent-again"]
    assert SentAgain.parts(9.0, []) == []
