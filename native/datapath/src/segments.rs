//! The segments of a TCP super-packet that the kernel left to us to cut (TSO), cut as the kernel would cut it.
//!
//! Sequence numbers, lengths, identifications and IPv4 checksums are each segment's own; PSH and FIN go with the last, CWR
//! with the first. TCP checksums stay unfinished, as they are.

use crate::checksum::checksum;
use crate::inner::{FIN, PSH};
use crate::word::word;

const CWR: u8 = 0x80;

/// How a super-packet is to be cut.
#[derive(Clone, Copy, Debug)]
pub struct Cut {
    /// Offset of the TCP header.
    pub transport: usize,
    /// Bytes of all headers.
    pub head: usize,
    /// Bytes of payload of each segment but the last.
    pub size: usize,
}

impl Cut {
    /// Returns the number of segments; None: the packet cannot be cut so.
    fn count(&self, packet: &[u8]) -> Option<usize> {
        let ip = match packet.first()? >> 4 {
            4 => 20,
            6 => 40,
            _ => return None,
        };
        let sound = self.transport >= ip
            && self.head >= self.transport + 20
            && self.head <= packet.len()
            && self.size > 0
            && packet.len() > self.head;
        sound.then(|| (packet.len() - self.head).div_ceil(self.size))
    }

    /// Returns the segments in rows of head + size bytes, with zeros behind the last, and the bytes of that one; None: the
    /// packet cannot be cut so.
    pub fn rows(&self, packet: &[u8]) -> Option<(Vec<u8>, usize)> {
        let count = self.count(packet)?;
        let Cut { transport, head, size } = *self;
        let width = head + size;
        let mut cells = Vec::with_capacity(count * width);
        let first = word(packet, transport + 4);
        let number = u16::from_be_bytes([packet[4], packet[5]]);
        let flags = packet[transport + 13];
        let v4 = packet[0] >> 4 == 4;
        let mut last = 0;
        for (index, payload) in packet[head..].chunks(size).enumerate() {
            cells.extend_from_slice(&packet[..head]);
            cells.extend_from_slice(payload);
            let row = &mut cells[index * width..];
            let length = head + payload.len();
            let sequence = first.wrapping_add((index * size) as u32);
            row[transport + 4..transport + 8].copy_from_slice(&sequence.to_be_bytes());
            if count > 1 {
                row[transport + 13] = match index {
                    0 => flags & !(FIN | PSH),
                    _ if index + 1 == count => flags & !CWR,
                    _ => flags & !(FIN | PSH | CWR),
                };
            }
            if v4 {
                row[2..4].copy_from_slice(&(length as u16).to_be_bytes());
                row[4..6].copy_from_slice(&number.wrapping_add(index as u16).to_be_bytes());
                row[10..12].fill(0);
                let sum = checksum(&row[..transport], 0);
                row[10..12].copy_from_slice(&sum.to_be_bytes());
            } else {
                row[4..6].copy_from_slice(&((length - 40) as u16).to_be_bytes());
            }
            last = length;
        }
        cells.resize(count * width, 0);
        Some((cells, last))
    }
}
