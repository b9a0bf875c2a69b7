//! One entropy value per flow until its path stays congested: PLB.
//!
//! M. A. Qureshi, Y. Cheng, Q. Yin, Q. Fu, G. Kumar, M. Moshref, J. Yan, V. Jacobson, D. Wetherall, A. Kabbani: "PLB:
//! Congestion Signals are Simple and Effective for Network Load Balancing", ACM SIGCOMM 2022, section 3. A round is a
//! round-trip time; it is congested when the share of marked packets reaches a limit. After so many congested rounds in
//! succession a flow draws a new value; after fewer when it is idle, for then nothing can be overtaken. A
//! retransmission time-out draws one at once and keeps congestion from drawing for a while, lest the flow return into a
//! black hole. Defaults are those of Linux (tcp_plb_*): half the packets, 12 rounds, 3 when idle.
//!
//! The paper's mark is ECN, which feedback carries; where switches mark nothing, or the packets inside cannot be marked,
//! it is a one-way delay of more than `congested_s` above the least: either counts. An agent sees no time-outs of the inner TCP: it takes silence for one, in RFC 6298's terms, when packets
//! were sent and nothing was reported for four deviations above the smoothed round-trip time, or 200 ms (Linux's
//! least).

use crate::hash::NumberMap;
use crate::paths::spray::entropy_value;
use crate::paths::{flow_entropy, PathPolicy, Report, Train};
use crate::random::Random;
use crate::route::{FlowRef, Route};
use crate::time::Seconds;

/// Silence is no time-out before.
pub const LEAST_TIMEOUT_S: Seconds = 0.2;

/// What the paper leaves to choose.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlbSettings {
    /// A delay above this counts as a mark, too.
    pub congested_s: Seconds,
    /// Marked packets of a round's, from which on the round is congested.
    pub congested_share: f64,
    /// Congested rounds in succession that move a flow.
    pub rounds: u32,
    /// The same for a flow that has nothing on its way.
    pub idle_rounds: u32,
    /// For one to two times that long after a time-out, congestion moves a flow no more.
    pub suspend_s: Seconds,
}

#[derive(Clone, Debug)]
struct State {
    port: u16,
    round_began: Seconds,
    /// Reported in this round, and how many of them marked.
    packets: u32,
    marked: u32,
    /// Congested rounds in succession.
    rounds: u32,
    /// When the newest packet left, and the newest that was reported.
    last: Seconds,
    newest: Seconds,
    /// Since when something is on its way and nothing is reported.
    waiting: Option<Seconds>,
    rtt: Seconds,
    deviation: Seconds,
    suspended_until: Seconds,
}

impl State {
    fn begun(flow: FlowRef, now: Seconds) -> State {
        State {
            port: flow_entropy(flow, 0),
            round_began: now,
            packets: 0,
            marked: 0,
            rounds: 0,
            last: 0.0,
            newest: -1.0,
            waiting: None,
            rtt: 0.0,
            deviation: 0.0,
            suspended_until: 0.0,
        }
    }

    fn moved(&mut self, port: u16, now: Seconds) {
        self.port = port;
        (self.packets, self.marked, self.rounds) = (0, 0, 0);
        self.round_began = now;
        self.waiting = None;
    }

    /// Updates the round-trip time and its deviation (RFC 6298, 2.2 and 2.3).
    fn time(&mut self, rtt: Seconds) {
        if self.rtt == 0.0 {
            (self.rtt, self.deviation) = (rtt, rtt / 2.0);
            return;
        }
        self.deviation += ((rtt - self.rtt).abs() - self.deviation) / 4.0;
        self.rtt += (rtt - self.rtt) / 8.0;
    }

    fn timeout_s(&self) -> Seconds {
        LEAST_TIMEOUT_S.max(self.rtt + 4.0 * self.deviation)
    }
}

/// Moves a flow when its path stays congested.
#[derive(Clone, Debug)]
pub struct Plb<R> {
    random: R,
    settings: PlbSettings,
    flows: NumberMap<i64, State>,
}

impl<R: Random> Plb<R> {
    /// Returns a policy that draws from `random`.
    pub fn new(random: R, settings: PlbSettings) -> Plb<R> {
        Plb { random, settings, flows: NumberMap::default() }
    }
}

impl<R: Random> PathPolicy for Plb<R> {
    fn learns(&self) -> bool {
        true
    }

    fn source_port(&mut self, flow: FlowRef, _route: &Route, _size: u32, now: Seconds) -> u16 {
        let settings = self.settings;
        let state = self.flows.entry(flow.id).or_insert_with(|| State::begun(flow, now));
        let idle = state.newest >= state.last;
        if state.waiting.is_some_and(|since| now - since > state.timeout_s()) {
            state.moved(entropy_value(&mut self.random), now);
            state.suspended_until = now + settings.suspend_s * (1.0 + self.random.unit());
        } else if now >= state.suspended_until
            && (state.rounds >= settings.rounds || (state.rounds >= settings.idle_rounds && idle))
        {
            state.moved(entropy_value(&mut self.random), now);
        }
        state.waiting.get_or_insert(now);
        state.last = now;
        state.port
    }

    fn source_ports(&mut self, train: Train, now: Seconds, ports: &mut Vec<u16>) {
        self.repeat(train, now, ports);
    }

    fn reported(&mut self, report: &Report, now: Seconds) {
        let settings = self.settings;
        let Some(state) = self.flows.get_mut(&report.flow) else { return };
        state.time(now - report.sent);
        state.newest = state.newest.max(report.sent);
        state.waiting = (state.newest < state.last).then_some(now);
        if report.port != state.port {
            return; // it speaks of a path that the flow has left
        }
        state.packets += 1;
        state.marked += u32::from(report.is_congested(settings.congested_s));
        if report.sent < state.round_began {
            return;
        }
        // what left in this round has been reported: a round trip is over
        let congested = f64::from(state.marked) >= settings.congested_share * f64::from(state.packets);
        state.rounds = if congested { (state.rounds + 1).min(settings.rounds) } else { 0 };
        (state.packets, state.marked) = (0, 0);
        state.round_began = now;
    }

    fn forget(&mut self, flow: i64) {
        self.flows.remove(&flow);
    }
}
