//! What an agent counts, by the names that its counters have everywhere.

macro_rules! counts {
    ($($count:ident $name:literal)*) => {
        /// Something that is counted.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Count {
            $(#[doc = $name] $count,)*
        }

        const NAMES: &[&str] = &[$($name),*];
    };
}

counts! {
    PacketsSent "packets_sent"
    PacketsReceived "packets_received"
    PacketsRecovered "packets_recovered"
    RepairsSent "repairs_sent"
    RepairsReceived "repairs_received"
    RepairsWithoutFlow "repairs_without_flow"
    DecodersOverBudget "decoders_over_budget"
    FlowsOverBudget "flows_over_budget"
    UnitsSent "units_sent"
    UnitsInTime "units_in_time"
    UnitsNotInTime "units_not_in_time"
    FeedbacksSent "feedbacks_sent"
    RecoveredAtPeers "recovered_at_peers"
    LostAtPeers "lost_at_peers"
    FlowsAnnounced "flows_announced"
    FlowTypesRefused "flow_types_refused"
    FlowsOfKnownType "flows_of_known_type"
    FlowsOfUnknownType "flows_of_unknown_type"
    Fragmented "fragmented"
    IcmpErrorsSent "icmp_errors_sent"
    InnerTruncated "inner_truncated"
    InnerLength "inner_length"
    InnerNotIp "inner_not_ip"
    DroppedInnerTruncated "dropped_inner_truncated"
    DroppedInnerLength "dropped_inner_length"
    DroppedInnerNotIp "dropped_inner_not_ip"
    DroppedInnerNotForUs "dropped_inner_not_for_us"
    DroppedRecoveredMalformed "dropped_recovered_malformed"
    DroppedEcn "dropped_ecn"
    DroppedGroupAddress "dropped_group_address"
    DroppedNoDirectory "dropped_no_directory"
    DroppedNoSuchHost "dropped_no_such_host"
    DroppedTooBig "dropped_too_big"
    DroppedUnknownPeer "dropped_unknown_peer"
    DroppedOtherSession "dropped_other_session"
    DroppedReplayed "dropped_replayed"
    DroppedTruncated "dropped_truncated"
    DroppedForeign "dropped_foreign"
    DroppedVersion "dropped_version"
    DroppedKind "dropped_kind"
    DroppedCrc "dropped_crc"
    DroppedUnauthenticated "dropped_unauthenticated"
    DroppedKey "dropped_key"
    DroppedCode "dropped_code"
    DroppedBody "dropped_body"
}

/// Totals since the start.
#[derive(Clone, Debug)]
pub struct Counts([u64; NAMES.len()]);

impl Default for Counts {
    fn default() -> Counts {
        Counts([0; NAMES.len()])
    }
}

impl Counts {
    /// Counts `many` more.
    pub fn add(&mut self, count: Count, many: u64) {
        self.0[count as usize] += many;
    }

    /// Counts one more under the name that `prefix` and `reason` make; what has no such name is not counted.
    pub fn refused(&mut self, prefix: &str, reason: &str) {
        let named = |name: &&str| name.strip_prefix(prefix) == Some(reason);
        if let Some(index) = NAMES.iter().position(named) {
            self.0[index] += 1;
        }
    }

    /// Returns a total.
    pub fn of(&self, count: Count) -> u64 {
        self.0[count as usize]
    }

    /// Returns names and totals of what was counted at all.
    pub fn totals(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        NAMES.iter().copied().zip(self.0).filter(|&(_, total)| total > 0)
    }
}
