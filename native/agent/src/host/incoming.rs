//! Datagrams from the underlay, read.

use coding::Code;
use datapath::header::{Header, RepairHead, CLASS_MASK, REPAIR_HEAD_BYTES};

use crate::class::TrafficClass;
use crate::departure::{Head, UnderlayAddress};
use crate::host::bytes::Bytes;
use crate::host::datagrams::FLAG_CODED;
use crate::peers::PeerId;
use crate::receiving::{Incoming, Repair, UnitShape};
use crate::underlay::is_stamp;

/// Bits of the type of service that mark congestion (RFC 3168, 5).
const ECN: u8 = 0b11;

/// A datagram from the underlay.
#[derive(Clone, Debug)]
pub struct FromUnderlay {
    /// UDP payload.
    pub data: Bytes,
    /// Where it says that it comes from.
    pub address: UnderlayAddress,
    /// Path stamp, or what it left with.
    pub source_port: u16,
    /// Type of service of the outer header.
    pub tos: u8,
}

/// Returns what the headers of a datagram say, which `from` sent in its present session.
pub(super) fn incoming(from: PeerId, header: &Header, datagram: &FromUnderlay) -> Incoming {
    Incoming {
        from,
        head: Head {
            number: header.number,
            sent_us: header.sent_us,
            class: TrafficClass::of(header.flags & CLASS_MASK).unwrap_or(TrafficClass::None),
            coded: header.flags & FLAG_CODED != 0,
            flow: header.flow,
            position: header.position,
        },
        stamp: if is_stamp(datagram.source_port) { datagram.source_port } else { 0 },
        ecn: datagram.tos & ECN,
    }
}

/// Returns the repair in the body of a datagram; None: it is none.
pub(super) fn repair_of(position: u32, body: Bytes) -> Option<Repair<Bytes>> {
    let (head, _) = RepairHead::decode(&body)?;
    let RepairHead { code, k, r, index, seed } = head;
    let unit = UnitShape { code: Code::numbered(code).ok()?, k: k.into(), r: r.into(), seed };
    Some(Repair { position, unit, index: index.into(), symbol: body.behind(REPAIR_HEAD_BYTES) })
}
