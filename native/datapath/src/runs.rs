//! Datagrams that follow each other: host_agent/runs.py, in one pass over what a call of the kernel gave.

use crate::header::{Header, CLASS_MASK, CONTROL, REPAIR, SOURCE};
use crate::inner::{look, tcp_key, Key};

/// The first datagram of a run, and what every further one has to continue.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    pub address: [u8; 4],
    pub tos: u8,
    pub first: Header,
    /// The flow of all inner packets, where it was looked at.
    pub key: Option<Key>,
    /// Whether others may follow: segments of TCP do, and repairs of the same unit.
    pub open: bool,
    pub count: u32,
}

impl Run {
    pub fn begin(address: [u8; 4], tos: u8, header: Header, body: &[u8]) -> Run {
        let source = header.kind == SOURCE;
        let key = if source { look(body).map(|seen| seen.flow) } else { None };
        let segment = source && header.flags & CLASS_MASK != CONTROL && tcp_key(body).is_some();
        let open = segment || header.kind == REPAIR;
        Run { address, tos, first: header, key, open, count: 1 }
    }

    /// Take the datagram in if it is the next of this run.
    pub fn take(&mut self, address: [u8; 4], tos: u8, header: &Header, body: &[u8]) -> bool {
        let repair = self.first.kind == REPAIR;
        let ahead = if repair { 0 } else { self.count };
        let expected = Header {
            number: self.first.number.wrapping_add(self.count),
            position: self.first.position.wrapping_add(ahead),
            ..self.first
        };
        let next = self.open
            && *header == expected
            && address == self.address
            && tos == self.tos
            && (repair || tcp_key(body) == self.key);
        self.count += u32::from(next);
        next
    }
}
