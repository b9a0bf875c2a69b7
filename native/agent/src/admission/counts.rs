//! What the gate counts.

use super::requests::RequestCounters;

/// What was counted, as totals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AdmissionCounts {
    /// Payload that left again.
    pub bytes_sent_again: u64,
    /// Flows that have asked.
    pub flows_scheduled: u64,
    /// Flows that ended without having asked.
    pub flows_small: u64,
    /// Grants given back because nothing was sent.
    pub flows_stalled: u64,
    /// What was decided.
    pub requests: RequestCounters,
}

impl AdmissionCounts {
    pub(super) fn add(&mut self, other: &AdmissionCounts) {
        let AdmissionCounts { bytes_sent_again, flows_scheduled, flows_small, flows_stalled, requests } =
            other;
        self.bytes_sent_again += bytes_sent_again;
        self.flows_scheduled += flows_scheduled;
        self.flows_small += flows_small;
        self.flows_stalled += flows_stalled;
        self.requests.add(requests);
    }

    /// Returns names and totals.
    pub fn totals(&self) -> [(&'static str, u64); 8] {
        let RequestCounters { decisions_late, grants, stops, flows_unscheduled_by_fail_safe } = self.requests;
        [
            ("bytes_sent_again", self.bytes_sent_again),
            ("flows_scheduled", self.flows_scheduled),
            ("flows_small", self.flows_small),
            ("flows_stalled", self.flows_stalled),
            ("decisions_late", decisions_late),
            ("grants", grants),
            ("stops", stops),
            ("flows_unscheduled_by_fail_safe", flows_unscheduled_by_fail_safe),
        ]
    }
}
