//! What a run is made of.

use crate::flow::Demand;
use crate::paths::Balancing;
use crate::queue::Buffer;
use crate::topology::{Change, Shape};
use crate::transport::Transport;
use crate::Error;

/// Lengths of packets, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lengths {
    /// Data in a full packet.
    pub payload: u32,
    /// Headers before the data.
    pub header: u32,
    pub acknowledgement: u32,
}

impl Lengths {
    /// Return the bytes on the wire of a flow's packet, the last of which may be shorter.
    pub fn wire(&self, bytes: u64, number: u32) -> u32 {
        let before = u64::from(number) * u64::from(self.payload);
        let rest = bytes.saturating_sub(before).min(u64::from(self.payload));
        self.header + rest as u32
    }

    /// Return the most bytes that a flow may have: its packets have numbers of 32 bits.
    pub fn largest_flow(&self) -> u64 {
        u64::from(self.payload) * u64::from(u32::MAX)
    }

    /// Return how many packets a flow of at most so many bytes has.
    pub fn packets(&self, bytes: u64) -> u32 {
        u32::try_from(bytes.div_ceil(u64::from(self.payload))).unwrap_or(u32::MAX)
    }
}

#[derive(Clone, Debug)]
pub struct Config {
    pub shape: Shape,
    pub changes: Vec<Change>,
    pub buffer: Buffer,
    pub lengths: Lengths,
    pub transport: Transport,
    pub balancing: Balancing,
    pub seed: u64,
}

impl Config {
    pub fn check(&self) -> Result<(), Error> {
        let lengths = &self.lengths;
        if lengths.payload == 0 || lengths.acknowledgement == 0 || lengths.payload > 1 << 20 {
            return Err(Error("packets carry 1 B to 1 MiB, acknowledgements have at least 1 B".to_string()));
        }
        if lengths.header > 1 << 16 || lengths.acknowledgement > 1 << 16 {
            return Err(Error("headers and acknowledgements have at most 65536 B".to_string()));
        }
        self.buffer.check(lengths.payload + lengths.header)?;
        self.transport.check()
    }
}

/// Return an error unless every flow can be: ends that differ and are there, and at least a byte, at most `largest`.
pub fn check_demands(demands: &[Demand], hosts: u32, largest: u64) -> Result<(), Error> {
    if demands.is_empty() {
        return Err(Error("there are no flows, so the run would carry nothing".to_string()));
    }
    for (row, demand) in demands.iter().enumerate() {
        let (source, destination) = (demand.source, demand.destination);
        if source >= hosts || destination >= hosts {
            return Err(Error(format!(
                "flow {row} goes from host {source} to host {destination}: hosts are 0 to {}",
                hosts - 1
            )));
        }
        if source == destination {
            return Err(Error(format!("flow {row} goes from host {source} to itself: give it two ends")));
        }
        if !(1..=largest).contains(&demand.bytes) {
            return Err(Error(format!("flow {row} has {} B: give it 1 to {largest}", demand.bytes)));
        }
    }
    Ok(())
}
