//! Departures as datagrams: headers, bodies and repairs, in the order in which they leave.

use coding::packets::Repairs as Coded;
use coding::{Error, Kernel};
use datapath::header::{Header, RepairHead, FEEDBACK, HEADER_BYTES, REPAIR, REPAIR_HEAD_BYTES, SOURCE};
use datapath::mac::NumberedKey;

use crate::coding::ClosedUnit;
use crate::departure::{Content, Departure, Head, UnderlayAddress};
use crate::host::bytes::{rows_of, Bytes, Rows};

/// Set in a header's flags for a source of a coding unit, and for repairs.
pub const FLAG_CODED: u8 = 0x04;

/// A datagram for the underlay.
#[derive(Clone, Debug)]
pub struct Datagram {
    /// Of the peer.
    pub address: UnderlayAddress,
    /// UDP source port: entropy value or path label.
    pub source_port: u16,
    /// UDP destination port: base port and flow key.
    pub destination_port: u16,
    /// DSCP and ECN.
    pub tos: u8,
    /// Its first bytes.
    pub header: [u8; HEADER_BYTES],
    /// The rest.
    pub body: Bytes,
}

/// Appends the datagrams of a departure, authenticated by `key` where there is one.
pub fn seal(departure: &Departure<Rows>, session: u32, key: Option<NumberedKey>, out: &mut Vec<Datagram>) {
    let mut sealing = Sealing { departure, session, key, sealed: 0, out };
    match &departure.content {
        Content::Feedback(feedback) => sealing.push(FEEDBACK, 0, feedback.encode().into()),
        Content::Packets { sources, repairs } => {
            let mut repairs = repairs.iter().peekable();
            let position = sources.as_ref().map_or(0, |sources| sources.position);
            let packets = sources.iter().flat_map(|sources| sources.packets.packets());
            for (index, packet) in (0u32..).zip(packets) {
                while let Some(before) = repairs.next_if(|repairs| repairs.behind <= index) {
                    sealing.repairs(&before.unit);
                }
                sealing.push(SOURCE, position.wrapping_add(index), packet);
            }
            repairs.for_each(|behind| sealing.repairs(&behind.unit));
        }
    }
}

struct Sealing<'a> {
    departure: &'a Departure<Rows>,
    session: u32,
    key: Option<NumberedKey>,
    sealed: u32,
    out: &'a mut Vec<Datagram>,
}

impl Sealing<'_> {
    fn push(&mut self, kind: u8, position: u32, body: Bytes) {
        let departure = self.departure;
        let Head { number, sent_us, class, coded, flow, .. } =
            departure.head(self.sealed, kind == REPAIR, position);
        let flags = class as u8 | if coded { FLAG_CODED } else { 0 };
        let header = Header { kind, flags, session: self.session, number, sent_us, flow, position };
        let outer = departure.outer;
        let ecn = if kind == SOURCE { outer.ecn } else { 0 };
        self.out.push(Datagram {
            address: outer.address,
            source_port: departure.ports.get(self.sealed as usize).copied().unwrap_or_default(),
            destination_port: outer.port,
            tos: outer.tos | ecn,
            header: match &self.key {
                Some(key) => header.authenticate(&body, key),
                None => header.encode(&body),
            },
            body,
        });
        self.sealed += 1;
    }

    fn repairs(&mut self, unit: &ClosedUnit<Rows>) {
        let Ok(bodies) = bodies(unit) else {
            self.sealed += unit.r; // no unit of ours is so
            return;
        };
        for body in bodies {
            self.push(REPAIR, unit.position, body);
        }
    }
}

/// Returns the bodies of a unit's repairs.
fn bodies(unit: &ClosedUnit<Rows>) -> Result<impl Iterator<Item = Bytes>, Error> {
    let mut packets = Vec::with_capacity(unit.k as usize);
    unit.payloads.iter().for_each(|rows| rows.slices(&mut packets));
    let r = unit.r as usize;
    let coded = Coded::encode(unit.code, Kernel::best(), &packets, r, unit.seed)?;
    let width = REPAIR_HEAD_BYTES + coded.symbol_bytes();
    let mut bytes = Vec::with_capacity(r * width);
    for (index, (length, packet)) in coded.symbols().enumerate() {
        let (k, r) = (unit.k as u8, unit.r as u8);
        let head = RepairHead { code: unit.code.number(), k, r, index: index as u8, seed: unit.seed };
        bytes.extend_from_slice(&head.encode());
        bytes.extend_from_slice(length);
        bytes.extend_from_slice(packet);
    }
    Ok(rows_of(bytes, width))
}
