//! Packets of hosts as agents see them: names and numbers, without bytes.

use std::sync::Arc;

use agent::packet::{Packet as Inside, Packets};
use agent::receiving::{Contradiction, Payload, UnitShape};
use coding::packets::LENGTH_BYTES;
use coding::Kernel;
use datapath::inner::{FlowKey, Key, Malformed, Seen, TCP, TRANSPORT};
use datapath::tunnel::{CE, ECT0, NOT_ECT};

use crate::packets::{Cargo, Marks};
use crate::time::Time;
use crate::transport::Answer;

/// A packet of a host.
#[derive(Clone, Debug)]
pub struct Inner {
    /// The flow's place among those under way, and its row in the workload: places are used again.
    pub place: u32,
    pub row: u32,
    /// Protocol, addresses and ports, all in the direction of the packet.
    pub key: Key,
    pub cargo: Cargo,
    pub marks: Marks,
    /// For queues that order packets by what is left of their flows: the smaller, the sooner.
    pub rank: u32,
    /// Nothing follows at once.
    pub push: bool,
    pub number: u32,
    /// TCP's number: of the first byte, or of the first that is missing.
    pub sequence: u32,
    /// Bytes of the packet inside the tunnel, and those of them that are data.
    pub bytes: u32,
    pub payload: u32,
    pub stamp: Time,
    /// What an acknowledgement says; None in one that only carries a window.
    pub answer: Option<Arc<Answer>>,
    /// The window that the host is to get, not scaled; None: as its peer has room.
    pub window: Option<u16>,
}

impl Inner {
    pub fn seen(&self) -> Seen {
        Seen {
            flow: FlowKey::V4(self.key),
            protocol: TCP,
            transport: TRANSPORT,
            payload: self.payload as usize,
            control: self.cargo != Cargo::Data,
            push: self.push,
            opening: matches!(self.cargo, Cargo::Opening | Cargo::Opened),
            ending: false,
            finishing: false,
        }
    }
}

/// What a repair is made of: its unit's packets, one of which may be rebuilt from it.
#[derive(Clone, Debug)]
pub struct Symbol {
    pub packets: Arc<[Inner]>,
    /// With the length of a packet.
    pub bytes: u32,
}

impl Payload for Inner {
    type Symbol = Symbol;

    fn bytes(&self) -> usize {
        self.bytes as usize
    }

    fn symbol_bytes(symbol: &Symbol) -> usize {
        symbol.bytes as usize
    }

    /// Rebuild what the code's coefficients determine. Which packets those are does not depend on their bytes, so each
    /// is decoded as one byte of zero.
    fn rebuild(
        unit: UnitShape,
        packets: &[Option<&Inner>],
        repairs: &[(u32, Symbol)],
    ) -> Result<Vec<(u32, Inner)>, Contradiction> {
        const ZERO: &[u8] = &[0];
        let Some((_, symbol)) = repairs.first() else { return Ok(Vec::new()) };
        let sources: Vec<Option<&[u8]>> = packets.iter().map(|packet| packet.map(|_| ZERO)).collect();
        let rows: Vec<(usize, &[u8])> = repairs.iter().map(|&(index, _)| (index as usize, ZERO)).collect();
        let rebuilt = unit.code.decode(Kernel::best(), unit.seed, unit.r as usize, &sources, &rows, 1);
        let rebuilt = rebuilt.map_err(|_| Contradiction)?;
        let places = rebuilt.indices.into_iter();
        Ok(places.filter_map(|place| Some((place as u32, symbol.packets.get(place)?.clone()))).collect())
    }
}

impl Inside for Inner {
    fn look(&self) -> Result<Seen, Malformed> {
        Ok(self.seen())
    }

    fn ecn(&self) -> u8 {
        match self.marks {
            Marks { capable: false, .. } => NOT_ECT,
            Marks { congested: true, .. } => CE,
            _ => ECT0,
        }
    }

    fn with_ecn(&self, ecn: u8) -> Inner {
        Inner { marks: Marks { congested: ecn == CE, ..self.marks }, ..self.clone() }
    }

    fn acknowledges(&self, _seen: &Seen) -> u32 {
        self.sequence
    }
}

impl Packets for Inner {
    fn part(&self, _begin: u32, _end: u32) -> Inner {
        self.clone() // it is one
    }
}

/// Return the key of packets the other way, as `FlowKey::reverse` has it: agents find by that what an ACK acknowledges.
pub fn back(key: Key) -> Key {
    let mut back = key;
    back[1..5].copy_from_slice(&key[5..9]);
    back[5..9].copy_from_slice(&key[1..5]);
    back[9..11].copy_from_slice(&key[11..]);
    back[11..].copy_from_slice(&key[9..11]);
    back
}

/// Return what the repairs of a unit are made of.
pub fn symbol(packets: &[Inner], symbol_bytes: u32) -> Symbol {
    debug_assert!(symbol_bytes > LENGTH_BYTES as u32);
    Symbol { packets: packets.into(), bytes: symbol_bytes }
}

#[cfg(test)]
mod tests;
