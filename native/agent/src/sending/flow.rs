//! A flow that this host sends.

use datapath::crc32c::crc32c;
use datapath::inner::FlowKey;

use crate::class::TrafficClass;
use crate::coding::{UnitEncoder, UnitId, WindowEstimate};
use crate::flow_record::{FlowRecord, Side};
use crate::flow_table::Flow;
use crate::hash::mixed;
use crate::peers::PeerId;
use crate::priority::FlowPriority;
use crate::route::FlowRef;
use crate::sending::round_trips::RoundTrips;
use crate::underlay::{BASE_PORT, FLOW_KEYS};
use crate::Seconds;

/// The coding of a flow's packets, while its class is coded.
#[derive(Debug)]
pub struct Coded<P> {
    /// Its units.
    pub encoder: UnitEncoder<P>,
    /// Of the packets.
    pub class: TrafficClass,
    /// The open unit, where outcomes are learned from.
    pub unit: Option<UnitId>,
    /// Where it goes to.
    pub peer: PeerId,
    /// Its place among the flows whose unit is open; None: it is not.
    pub open: Option<u64>,
}

/// A flow that this host sends. `payload` decides its class; the rest is counted since the last report.
#[derive(Debug)]
pub struct SendFlow<P> {
    /// Whose packets they are.
    pub key: FlowKey,
    /// Its number on the wire.
    pub id: u32,
    /// A function of the key, all bits of which are mixed.
    pub hash: u32,
    /// UDP destination port: the flow key, what ECMP hashes of the flow beside the hosts.
    pub port: u16,
    /// When its first packet was.
    pub first: Seconds,
    /// When its last packet was.
    pub last: Seconds,
    /// Bytes sent since the connection began.
    pub payload: u64,
    /// Of its next packet.
    pub position: u32,
    /// Of its last packet that is none of control.
    pub class: TrafficClass,
    /// It is short while it has sent less payload than this.
    pub short_bytes: u64,
    /// Payload that it was announced with, bytes; infinite where it has no end. None: it was not.
    pub announced: Option<f64>,
    /// What decides its type of service.
    pub priority: FlowPriority,
    /// While its class is coded.
    pub coded: Option<Coded<P>>,
    /// Where units are windows.
    pub window: Option<WindowEstimate>,
    /// TCP: what times its coded packets' acknowledgements.
    pub round_trips: RoundTrips,
    /// Whether the controller has been or will be informed that it has ended.
    pub reported: bool,
    /// Packets since the last report.
    pub packets: u64,
    /// Bytes of inner packets since the last report.
    pub bytes: u64,
    /// Repairs since the last report.
    pub repairs: u64,
}

impl<P> SendFlow<P> {
    /// Returns a flow that has sent nothing yet.
    pub fn new(key: FlowKey, id: u32, now: Seconds) -> SendFlow<P> {
        let hash = flow_hash(&key);
        SendFlow {
            key,
            id,
            hash,
            port: flow_port(hash),
            first: now,
            last: 0.0,
            payload: 0,
            position: 0,
            class: TrafficClass::Short,
            short_bytes: 0,
            announced: None,
            priority: FlowPriority::default(),
            coded: None,
            window: None,
            round_trips: RoundTrips::default(),
            reported: false,
            packets: 0,
            bytes: 0,
            repairs: 0,
        }
    }

    /// Returns what path policies know of it.
    pub fn for_paths(&self) -> FlowRef {
        FlowRef { id: self.id.into(), hash: self.hash }
    }

    /// Returns what is said of it, whether or not anything was counted.
    pub fn entry(&self) -> FlowRecord {
        FlowRecord {
            key: self.key,
            class: self.class,
            packets: self.packets,
            bytes: self.bytes,
            repairs: self.repairs,
            first: self.first,
            last: self.last,
            side: Side::Sender { priority: self.priority.level(self.class) },
        }
    }
}

impl<P> Flow for SendFlow<P> {
    type Record = FlowRecord;

    fn last(&self) -> Seconds {
        self.last
    }

    fn record(&self) -> Option<FlowRecord> {
        (self.packets > 0 || self.repairs > 0).then(|| self.entry())
    }

    fn forget(&mut self) {
        (self.packets, self.bytes, self.repairs) = (0, 0, 0);
    }
}

/// Returns the UDP destination port of a flow's datagrams: what switches' hash of the flow sees of it.
pub fn hashed_port(key: &FlowKey) -> u16 {
    flow_port(flow_hash(key))
}

/// Returns a hash whose bits are mixed: CRC is linear, so flows whose ports differ in one bit would differ in the same
/// bits.
fn flow_hash(key: &FlowKey) -> u32 {
    mixed(crc32c(0, key.bytes()))
}

fn flow_port(hash: u32) -> u16 {
    BASE_PORT + (hash % u32::from(FLOW_KEYS)) as u16
}
