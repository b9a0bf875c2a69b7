//! A flow that this host receives from one peer.

use datapath::inner::FlowKey;
use datapath::prefetch::prefetch;

use crate::class::TrafficClass;
use crate::flow_record::{Arrived, FlowRecord, Side, WayCount};
use crate::flow_table::Flow;
use crate::packet::Packet;
use crate::receiving::{Release, UnitDecoder};
use crate::Seconds;

/// Paths, by class, that a flow's datagrams are counted by: more than a fabric has between two leaves.
const MOST_WAYS: usize = 1024;
/// Of those, so many are fetched ahead.
const PREFETCHED: usize = 16;

/// A flow that this host receives from one peer. Counted since the last report.
pub struct ReceiveFlow<P: Packet> {
    /// Whose packets they are.
    pub key: FlowKey,
    /// The flow in the other direction.
    pub reverse: FlowKey,
    /// When its first packet came.
    pub first: Seconds,
    /// When its last packet came.
    pub last: Seconds,
    /// What holds packets back.
    pub release: Release<P>,
    /// Of a flow that was coded.
    pub decoder: Option<UnitDecoder<P>>,
    /// The newest position that came itself.
    pub newest: Option<u32>,
    /// Of the last packet that is none of control.
    pub class: TrafficClass,
    /// Its place among the flows that hold packets back; None: it holds none.
    pub holding: Option<u64>,
    /// Packets that came themselves.
    pub packets: u64,
    /// Bytes of those.
    pub bytes: u64,
    /// Repairs that came.
    pub repairs: u64,
    /// Packets rebuilt from repairs.
    pub recovered: u64,
    /// Packets that came behind a newer one.
    pub reordered: u64,
    /// Bytes of its longest packet.
    pub longest: usize,
    /// What it is charged for in its peer's budget, in bytes.
    pub charged: usize,
    ways: Vec<WayCount>,
}

impl<P: Packet> ReceiveFlow<P> {
    /// Returns a flow of which nothing has come yet.
    pub fn new(key: FlowKey, release: Release<P>, now: Seconds) -> ReceiveFlow<P> {
        ReceiveFlow {
            key,
            reverse: key.reverse(),
            first: now,
            last: 0.0,
            release,
            decoder: None,
            newest: None,
            class: TrafficClass::Short,
            holding: None,
            packets: 0,
            bytes: 0,
            repairs: 0,
            recovered: 0,
            reordered: 0,
            longest: 0,
            charged: 0,
            ways: Vec::new(),
        }
    }

    /// Has the processor fetch where the next datagram is counted.
    pub fn prefetch(&self) {
        prefetch(&self.ways[..self.ways.len().min(PREFETCHED)]);
    }

    /// Counts a datagram by its class and the path that it took.
    pub fn took(&mut self, class: TrafficClass, stamp: u16, now: Seconds) {
        self.last = now;
        match self.ways.iter_mut().find(|way| way.class == class && way.stamp == stamp) {
            Some(way) => way.datagrams += 1,
            None => {
                if self.ways.len() < MOST_WAYS {
                    self.ways.push(WayCount { class, stamp, datagrams: 1 });
                }
            }
        }
    }

    /// Returns the bytes of what is counted by path.
    pub fn ways_bytes(&self) -> usize {
        self.ways.len() * size_of::<WayCount>()
    }

    /// Returns what is said of it, whether or not anything was counted.
    pub fn entry(&self) -> FlowRecord {
        let release = &self.release;
        FlowRecord {
            key: self.key,
            class: self.class,
            packets: self.packets,
            bytes: self.bytes,
            repairs: self.repairs,
            first: self.first,
            last: self.last,
            side: Side::Receiver(Arrived {
                ways: self.ways.clone(),
                recovered: self.recovered,
                lost: release.abandoned,
                reordered: self.reordered,
                held: release.held_total,
                timeouts: release.timeouts,
            }),
        }
    }
}

impl<P: Packet> Flow for ReceiveFlow<P> {
    type Record = FlowRecord;

    fn last(&self) -> Seconds {
        self.last
    }

    fn record(&self) -> Option<FlowRecord> {
        (self.packets > 0 || self.repairs > 0).then(|| self.entry())
    }

    fn record_bytes(record: &FlowRecord) -> usize {
        let ways = match &record.side {
            Side::Receiver(arrived) => arrived.ways.len(),
            Side::Sender { .. } => 0,
        };
        size_of::<FlowRecord>() + ways * size_of::<WayCount>()
    }

    fn forget(&mut self) {
        (self.packets, self.bytes, self.repairs) = (0, 0, 0);
        (self.recovered, self.reordered) = (0, 0);
        self.ways.clear();
        self.release.count_anew();
    }
}
