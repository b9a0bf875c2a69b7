//! TCP segments: what of a header decides, and the packets of bytes that windows are written into.

use datapath::checksum::{checksum, ones_complement_sum};
use datapath::inner::TCP;
pub use datapath::inner::{ACK, FIN, PSH, RST, SYN};
use datapath::word::word;

use super::clamped::Clamped;
use crate::host::Bytes;

const HEADER_BYTES: usize = 20;
const LARGEST_SEGMENT: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;
const MOST_SACK_BLOCKS: usize = 4;

/// A TCP segment, or a super-packet of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Number of its first byte.
    pub sequence: u32,
    /// Bytes of its payload.
    pub payload: u32,
    /// FIN to ACK.
    pub flags: u8,
    /// Number behind what is acknowledged.
    pub ack: u32,
    /// Its window, not scaled.
    pub window: u16,
    /// Exponent of the windows that its sender advertises (RFC 7323).
    pub scale: Option<u64>,
    /// Most payload of a segment that its sender takes, bytes.
    pub largest_segment: Option<u64>,
    /// The sender's clock, and the echo of the other's, as one number (RFC 7323).
    pub timestamps: Option<u64>,
    /// What has arrived out of order, or twice.
    pub sack: SackBlocks,
}

/// Selective acknowledgements (RFC 2018): sequence numbers from the first up to, and without, the second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks {
    blocks: [(u32, u32); MOST_SACK_BLOCKS],
    count: u8,
}

impl SackBlocks {
    /// Returns the blocks of TCP options; what has no room in 40 bytes of them is left out.
    fn of(options: &[u8]) -> SackBlocks {
        let mut sack = SackBlocks::default();
        for value in
            values(options).filter(|(kind, _)| *kind == SACK).flat_map(|(_, value)| value.chunks_exact(8))
        {
            if let Some(place) = sack.blocks.get_mut(usize::from(sack.count)) {
                *place = (word(value, 0), word(value, 4));
                sack.count += 1;
            }
        }
        sack
    }

    /// Returns them in the order of the header.
    pub fn blocks(&self) -> &[(u32, u32)] {
        &self.blocks[..usize::from(self.count)]
    }
}

impl Segment {
    /// Reads the TCP header at `transport`, of a packet with so much payload; None if there is no whole header.
    pub fn read(packet: &[u8], transport: usize, payload: u32) -> Option<Segment> {
        let header = packet.get(transport..).filter(|header| header.len() >= HEADER_BYTES)?;
        let options =
            &header[HEADER_BYTES..(usize::from(header[12] >> 4) * 4).clamp(HEADER_BYTES, header.len())];
        Some(Segment {
            sequence: word(header, 4),
            payload,
            flags: header[13],
            ack: word(header, 8),
            window: u16::from_be_bytes([header[14], header[15]]),
            scale: option(options, WINDOW_SCALE),
            largest_segment: option(options, LARGEST_SEGMENT),
            timestamps: option(options, TIMESTAMPS),
            sack: SackBlocks::of(options),
        })
    }

    /// Returns true if any of these flags is set.
    pub fn has(&self, flags: u8) -> bool {
        self.flags & flags != 0
    }

    /// Returns how many sequence numbers its SYN and FIN take.
    pub fn extra(&self) -> u32 {
        u32::from(self.has(SYN)) + u32::from(self.has(FIN))
    }

    /// Returns the number behind it.
    pub fn end(&self) -> u32 {
        self.sequence.wrapping_add(self.payload).wrapping_add(self.extra())
    }
}

/// Returns the value of a TCP option, as one number (of a longer value: the last 8 bytes); None where there is none.
fn option(options: &[u8], kind: u8) -> Option<u64> {
    let (_, value) = values(options).find(|(other, _)| *other == kind)?;
    Some(value.iter().fold(0, |number, &byte| number << 8 | u64::from(byte)))
}

/// Returns kinds and values of TCP options, up to the end of the list or the first malformed option.
fn values(options: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    let mut rest = options;
    std::iter::from_fn(move || loop {
        match rest {
            [1, more @ ..] => rest = more,
            [kind, size, ..] if *kind != 0 && (2..=rest.len()).contains(&usize::from(*size)) => {
                let (option, more) = rest.split_at(usize::from(*size));
                rest = more;
                return Some((*kind, &option[2..]));
            }
            _ => return None,
        }
    })
}

/// A sound TCP packet over IPv4 or IPv6, as it is on the wire.
#[derive(Clone, Debug)]
pub struct TcpBytes {
    /// All of it.
    pub data: Bytes,
    /// Where its TCP header begins.
    pub transport: usize,
    /// Bytes of its payload.
    pub payload: u32,
}

impl TcpBytes {
    /// Returns the segment that it is; None if its header is not whole.
    pub fn segment(&self) -> Option<Segment> {
        Segment::read(&self.data, self.transport, self.payload)
    }

    fn is_v4(&self) -> bool {
        self.data[0] >> 4 == 4
    }
}

impl Clamped for TcpBytes {
    /// Writes another window, and a checksum that fits as the old one did (RFC 1624, Eq. 3).
    fn set_window(&mut self, window: u16) {
        let header = &self.data[self.transport..];
        let old = [header[14], header[15]];
        let new = window.to_be_bytes();
        if old == new {
            return;
        }
        let inverted = |high: u8, low: u8| u32::from(!u16::from_be_bytes([high, low]));
        let sum = folded(inverted(header[16], header[17]) + inverted(old[0], old[1]) + u32::from(window));
        let mut data = self.data.to_vec();
        data[self.transport + 14..][..2].copy_from_slice(&new);
        data[self.transport + 16..][..2].copy_from_slice(&(!sum).to_be_bytes());
        self.data = data.into();
    }

    /// Returns a pure ACK that says what this packet said: without its payload, of its options with the timestamps.
    fn bare_ack(&self) -> Self {
        let (head, header) = self.data.split_at(self.transport);
        let segment = self.segment();
        let sequence = segment.map_or(0, |segment| segment.end());
        let mut bare = header[..4].to_vec();
        bare.extend_from_slice(&sequence.to_be_bytes());
        bare.extend_from_slice(&header[8..12]);
        let stamps = segment.and_then(|segment| segment.timestamps);
        let options = if stamps.is_some() { 12 } else { 0 };
        bare.extend_from_slice(&[((HEADER_BYTES + options) as u8 / 4) << 4, ACK]);
        bare.extend_from_slice(&header[14..16]);
        bare.extend_from_slice(&[0; 4]);
        if let Some(stamps) = stamps {
            bare.extend_from_slice(&[1, 1, TIMESTAMPS, 10]);
            bare.extend_from_slice(&stamps.to_be_bytes());
        }
        let mut data = head.to_vec();
        let addresses = if self.is_v4() { 12..20 } else { 8..40 };
        let pseudo = ones_complement_sum(&head[addresses], u32::from(TCP) + bare.len() as u32);
        let check = checksum(&bare, pseudo.into());
        bare[16..18].copy_from_slice(&check.to_be_bytes());
        if self.is_v4() {
            let total = (head.len() + bare.len()) as u16;
            data[2..4].copy_from_slice(&total.to_be_bytes());
            data[10..12].fill(0);
            let check = checksum(&data, 0);
            data[10..12].copy_from_slice(&check.to_be_bytes());
        } else {
            let length = (head.len() - IPV6_HEADER_BYTES + bare.len()) as u16;
            data[4..6].copy_from_slice(&length.to_be_bytes());
        }
        data.append(&mut bare);
        TcpBytes { data: data.into(), transport: self.transport, payload: 0 }
    }
}

const IPV6_HEADER_BYTES: usize = 40;

fn folded(sum: u32) -> u16 {
    let once = (sum & 0xFFFF) + (sum >> 16);
    ((once & 0xFFFF) + (once >> 16)) as u16
}
