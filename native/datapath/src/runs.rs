//! Datagrams that follow each other: host_agent/wire.py, `Run`, in one pass over what a call of the kernel gave.

use crate::header::{Header, CLASS_MASK, CONTROL, REPAIR, SOURCE};
use crate::inner::{look_plain, tcp_key, FlowKey, Key};

/// Bytes of a REPAIR's body that all repairs of a unit have in common: code, k and r.
const COMMON: usize = 3;
/// Code, k, r, index, seed, and four bytes that are kept.
const REPAIR_HEAD_BYTES: usize = 12;

/// The first datagram of a run, and what every further one has to continue.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    pub address: [u8; 4],
    pub tos: u8,
    pub first: Header,
    /// The flow of all inner packets, where it was looked at.
    pub key: Option<Key>,
    /// Whether others may follow: segments of TCP do, and repairs of the same unit.
    open: bool,
    /// Datagrams, and those of them that are of the first one's kind.
    count: u32,
    alike: u32,
    /// Position, length and beginning of the repairs that came last, where they are among sources.
    repairs: Option<(u32, usize, [u8; COMMON])>,
}

/// How a datagram continues a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// As another of the same kind.
    Alike,
    /// Among sources: as the first repair of a unit, or as one more of the same unit behind it, alike in length, code, k
    /// and r, and with an index below r.
    Repair {
        is_first: bool,
    },
    Not,
}

fn v4(flow: FlowKey) -> Option<Key> {
    match flow {
        FlowKey::V4(key) => Some(key),
        FlowKey::V6(_) => None,
    }
}

impl Run {
    pub fn begin(address: [u8; 4], tos: u8, header: Header, body: &[u8]) -> Run {
        let source = header.kind == SOURCE;
        let key = if source { look_plain(body).and_then(|seen| v4(seen.flow)) } else { None };
        let segment = source && header.flags & CLASS_MASK != CONTROL && tcp_key(body).is_some();
        let open = segment || header.kind == REPAIR;
        Run { address, tos, first: header, key, open, count: 1, alike: 1, repairs: None }
    }

    /// Take the datagram in if it is the next of this run.
    pub fn take(&mut self, address: [u8; 4], tos: u8, header: &Header, body: &[u8]) -> Next {
        let of_repairs = self.first.kind == REPAIR;
        let ahead = if of_repairs { 0 } else { self.alike };
        let expected = Header {
            number: self.first.number.wrapping_add(self.count),
            position: self.first.position.wrapping_add(ahead),
            ..self.first
        };
        if !self.open || address != self.address || tos != self.tos {
            return Next::Not;
        }
        if *header == expected && (of_repairs || tcp_key(body) == self.key) {
            self.count += 1;
            self.alike += 1;
            self.repairs = None;
            return Next::Alike;
        }
        let repair = Header { kind: REPAIR, position: header.position, ..expected };
        if of_repairs
            || *header != repair
            || body.len() < REPAIR_HEAD_BYTES
            || body[COMMON] >= body[COMMON - 1]
        {
            return Next::Not;
        }
        let this = (header.position, body.len(), [body[0], body[1], body[2]]);
        let is_first = match self.repairs.replace(this) {
            None => true,
            Some(before) if before == this => false,
            Some(before) if before.0 != this.0 => true,
            before => {
                self.repairs = before;
                return Next::Not;
            }
        };
        self.count += 1;
        Next::Repair { is_first }
    }
}
