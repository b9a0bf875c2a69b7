//! What is said of a flow in reports.

use datapath::inner::FlowKey;

use crate::class::TrafficClass;
use crate::Seconds;

/// What was counted of a flow since the last report that forgot.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowRecord {
    /// Whose packets they were.
    pub key: FlowKey,
    /// The class of the last packet that is none of control.
    pub class: TrafficClass,
    /// Inner packets.
    pub packets: u64,
    /// Bytes of inner packets.
    pub bytes: u64,
    /// Repairs sent or received.
    pub repairs: u64,
    /// When its first packet was.
    pub first: Seconds,
    /// When its last packet was.
    pub last: Seconds,
    /// What only one of the two sides knows.
    pub side: Side,
}

/// What only one of the two sides of a flow knows.
#[derive(Clone, Debug, PartialEq)]
pub enum Side {
    /// Where it comes from.
    Sender {
        /// Of its next packet.
        priority: u8,
    },
    /// Where it goes.
    Receiver(Arrived),
}

/// What a receiver counts of a flow.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Arrived {
    /// Datagrams by class and path.
    pub ways: Vec<WayCount>,
    /// Packets rebuilt from repairs.
    pub recovered: u64,
    /// Positions given up since the last report that forgot, less those of them whose packet came late.
    pub lost: u64,
    /// Packets that came behind a newer one.
    pub reordered: u64,
    /// Packets that waited for others.
    pub held: u64,
    /// Gaps given up.
    pub timeouts: u64,
}

/// How many datagrams of one class took a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WayCount {
    /// Their class.
    pub class: TrafficClass,
    /// Stamp of the path; 0: it crossed no top tier.
    pub stamp: u16,
    /// How many they were.
    pub datagrams: u64,
}
