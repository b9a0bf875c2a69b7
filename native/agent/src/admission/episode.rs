//! A retransmission episode, as agents report it (protocol/sent_again.py).

use datapath::inner::FlowKey;

use crate::Seconds;

/// What admission had decided of a flow (protocol/sent_again.py, `STATES`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowState {
    /// Below the threshold, or not asked yet.
    Small,
    /// Held, until it is granted.
    Waiting,
    /// Sends at its granted rate.
    Granted,
    /// Goes on because the controller did not answer.
    Unscheduled,
    /// Has sent all that it asked for.
    Done,
    /// Open before the agent or the scheme.
    Unknown,
    /// The scheme has none, or has none any more.
    NoAdmission,
}

impl FlowState {
    /// Returns its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            FlowState::Small => "small",
            FlowState::Waiting => "waiting",
            FlowState::Granted => "granted",
            FlowState::Unscheduled => "unscheduled",
            FlowState::Done => "done",
            FlowState::Unknown => "unknown",
            FlowState::NoAdmission => "no-admission",
        }
    }
}

/// Why something was retransmitted (protocol/sent_again.py, `TRIGGERS`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// The receiver said that it had later bytes.
    Gap,
    /// Nothing was acknowledged for a retransmission time-out.
    TimeOut,
    /// A tail loss probe: the newest bytes, before a time-out.
    Probe,
    /// They were acknowledged already: that was on its way to the host.
    Crossed,
}

impl Trigger {
    /// Returns its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Trigger::Gap => "gap",
            Trigger::TimeOut => "time-out",
            Trigger::Probe => "probe",
            Trigger::Crossed => "crossed",
        }
    }
}

/// Payload that a connection retransmitted, until all was acknowledged that had left by then.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Episode {
    /// Whose payload it is.
    pub flow: FlowKey,
    /// What had been decided of the flow when it began.
    pub state: FlowState,
    /// Why it began.
    pub trigger: Trigger,
    /// When it began.
    pub begun: Seconds,
    /// When its last byte left.
    pub last: Seconds,
    /// How long nothing new had been acknowledged when it began.
    pub quiet_s: Seconds,
    /// How late the agent's loop was at most in the last second or two.
    pub late_s: Seconds,
    /// What was not acknowledged when it began.
    pub in_flight_bytes: u32,
    /// Payload.
    pub bytes: u64,
    /// Of it, what the receiver had already.
    pub needless_bytes: u64,
    /// Of it, what had never reached the agent.
    pub queue_bytes: u64,
}
