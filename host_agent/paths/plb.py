"""One entropy value per flow until its path stays congested: PLB.

M. A. Qureshi, Y. Cheng, Q. Yin, Q. Fu, G. Kumar, M. Moshref, J. Yan, V. Jacobson, D. Wetherall, A. Kabbani: "PLB:
Congestion Signals are Simple and Effective for Network Load Balancing", ACM SIGCOMM 2022, section 3. A round is a
round-trip time; it is congested when the share of marked packets reaches a limit. After so many congested rounds in
succession a flow draws a new value; after fewer when it is idle, for then nothing can be overtaken. A
retransmission time-out draws one at once and keeps congestion from drawing for a while, lest the flow return into a
black hole. Defaults are those of Linux (tcp_plb_*): half the packets, 12 rounds, 3 when idle.

The paper's mark is ECN; ours is a one-way delay of more than *congested_s* above the least, since the fabric marks
nothing. An agent sees no time-outs of the inner TCP: it takes silence for one, in RFC 6298's terms, when packets
were sent and nothing was reported for four deviations above the smoothed round-trip time, or 200 ms (Linux's
least).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from host_agent.paths.base import Flow, PathPolicy, Report, Route, flow_entropy
from host_agent.paths.spray import Spray

LEAST_TIMEOUT_S: Final = 0.2


@dataclass(slots=True)
class _State:
    entropy: int
    round_began: float
    packets: int = 0
    """Reported in this round, and how many of them marked."""
    marked: int = 0
    rounds: int = 0
    """Congested ones in succession."""
    last: float = 0.0
    """When the newest packet left, and the newest one that was reported."""
    newest: float = -1.0
    waiting: float | None = None
    """Since when something is on its way and nothing is heard."""
    rtt: float = 0.0
    deviation: float = 0.0
    suspended_until: float = 0.0


class Plb(PathPolicy):
    """congested_s: delay that counts as a mark. congested_share: of a round's packets, makes it congested. rounds,
    idle_rounds: congested ones that move a flow. suspend_s: for one to two times that long after a time-out, congestion
    moves it no more.
    """

    learns: ClassVar[bool] = True

    def __init__(
        self,
        rng: np.random.Generator,
        congested_s: float,
        congested_share: float,
        rounds: int,
        idle_rounds: int,
        suspend_s: float,
    ) -> None:
        self._rng = rng
        self._spray = Spray(rng)
        self._congested_s = congested_s
        self._share = congested_share
        self._rounds = rounds
        self._idle_rounds = idle_rounds
        self._suspend_s = suspend_s
        self._flows: dict[int, _State] = {}

    def entropy(self, flow: Flow, route: Route, size: int, now: float) -> int:
        state = self._flows.get(flow.id)
        if state is None:
            state = self._flows[flow.id] = _State(flow_entropy(flow), now)
        elif state.waiting is not None and now - state.waiting > _timeout_s(state):
            self._move(state, now)
            state.suspended_until = now + self._suspend_s * (1.0 + float(self._rng.random()))
        elif now >= state.suspended_until and (
            state.rounds >= self._rounds or (state.rounds >= self._idle_rounds and state.newest >= state.last)
        ):
            self._move(state, now)
        if state.waiting is None:
            state.waiting = now
        state.last = now
        return state.entropy

    def entropies(self, flow: Flow, route: Route, size: int, count: int, last: int, now: float) -> list[int]:
        return [self.entropy(flow, route, size, now)] * count

    def reported(self, report: Report, now: float) -> None:
        state = self._flows.get(report.flow)
        if state is None:
            return
        _time(state, now - report.sent)
        state.newest = max(state.newest, report.sent)
        state.waiting = None if state.newest >= state.last else now
        if report.entropy != state.entropy:
            return  # it speaks of a path that the flow has left
        state.packets += 1
        state.marked += report.delay_s > self._congested_s
        if (
            report.sent >= state.round_began
        ):  # what left in this round has been heard of: a round trip is over
            congested = state.marked >= self._share * state.packets
            state.rounds = min(state.rounds + 1, self._rounds) if congested else 0
            state.packets = state.marked = 0
            state.round_began = now

    def forget(self, flow: int) -> None:
        self._flows.pop(flow, None)

    def _move(self, state: _State, now: float) -> None:
        state.entropy = self._spray.draw()
        state.packets = state.marked = state.rounds = 0
        state.round_began = now
        state.waiting = None


def _time(state: _State, rtt: float) -> None:
    """RFC 6298, 2.2 and 2.3."""
    if state.rtt == 0.0:
        state.rtt, state.deviation = rtt, rtt / 2
        return
    state.deviation += (abs(rtt - state.rtt) - state.deviation) / 4
    state.rtt += (rtt - state.rtt) / 8


def _timeout_s(state: _State) -> float:
    return max(LEAST_TIMEOUT_S, state.rtt + 4 * state.deviation)
