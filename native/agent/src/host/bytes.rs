//! Packets that have bytes: those of a host.

use std::ops::{Deref, Range};
use std::sync::Arc;

use coding::packets::Received;
use coding::Kernel;
use datapath::inner::{look, Malformed, Seen};
use datapath::segments::Cut;
use datapath::tunnel;

use crate::packet::{Packet, Packets, Sizes};
use crate::receiving::{Contradiction, Payload, UnitShape};

/// Bytes that several may hold.
#[derive(Clone, Debug)]
pub struct Bytes {
    shared: Arc<Vec<u8>>,
    begin: u32,
    end: u32,
}

impl Bytes {
    /// Returns these bytes, of which another one may hold other parts.
    pub fn part(shared: &Arc<Vec<u8>>, begin: usize, end: usize) -> Bytes {
        Bytes { shared: shared.clone(), begin: begin as u32, end: end as u32 }
    }

    /// Returns what lies from `from` on.
    pub fn behind(self, from: usize) -> Bytes {
        let begin = self.end.min(self.begin + from as u32);
        Bytes { begin, ..self }
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Bytes {
        let end = bytes.len() as u32;
        Bytes { shared: Arc::new(bytes), begin: 0, end }
    }
}

impl From<&[u8]> for Bytes {
    fn from(bytes: &[u8]) -> Bytes {
        Bytes { shared: Arc::new(bytes.to_vec()), begin: 0, end: bytes.len() as u32 }
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.shared[self.begin as usize..self.end as usize]
    }
}

impl Payload for Bytes {
    type Symbol = Bytes;

    fn bytes(&self) -> usize {
        self.len()
    }

    fn symbol_bytes(symbol: &Bytes) -> usize {
        symbol.len()
    }

    fn rebuild(
        unit: UnitShape,
        packets: &[Option<&Bytes>],
        repairs: &[(u32, Bytes)],
    ) -> Result<Vec<(u32, Bytes)>, Contradiction> {
        let packets: Vec<Option<&[u8]>> =
            packets.iter().map(|packet| packet.map(|packet| &**packet)).collect();
        let repairs: Vec<(usize, &[u8])> =
            repairs.iter().map(|(index, symbol)| (*index as usize, &**symbol)).collect();
        let received = Received::pack(&packets, &repairs).map_err(|_| Contradiction)?;
        let rebuilt = received.decode(unit.code, Kernel::best(), unit.r as usize, unit.seed);
        let rebuilt = rebuilt.map_err(|_| Contradiction)?;
        Ok(rebuilt.into_iter().map(|(place, packet)| (place as u32, packet.into())).collect())
    }
}

impl Packet for Bytes {
    fn look(&self) -> Result<Seen, Malformed> {
        look(self)
    }

    fn ecn(&self) -> u8 {
        tunnel::ecn_of(self)
    }

    fn with_ecn(&self, ecn: u8) -> Bytes {
        let mut bytes = self.to_vec();
        tunnel::set_ecn(&mut bytes, ecn);
        bytes.into()
    }

    fn acknowledges(&self, seen: &Seen) -> u32 {
        word(self, seen.transport + 8)
    }
}

/// Returns the number in network byte order at `at`; 0 if that lies outside.
pub fn word(bytes: &[u8], offset: usize) -> u32 {
    let word = bytes.get(offset..offset + 4).and_then(|four| four.try_into().ok());
    word.map_or(0, u32::from_be_bytes)
}

/// Packets in rows of one length: one alone, or the segments of a super-packet.
#[derive(Clone, Debug)]
pub struct Rows {
    shared: Arc<Vec<u8>>,
    width: u32,
    begin: u32,
    end: u32,
    /// Bytes of the last row's packet.
    last: u32,
}

impl Rows {
    /// Returns one packet.
    pub fn alone(packet: &[u8]) -> Rows {
        let size = packet.len() as u32;
        Rows { shared: Arc::new(packet.to_vec()), width: size, begin: 0, end: 1, last: size }
    }

    /// Returns the segments of a TCP super-packet, of `size` bytes of payload each but the last; None: it cannot be cut
    /// so.
    pub fn cut(packet: &[u8], seen: &Seen, size: usize) -> Option<Rows> {
        let head = packet.len() - seen.payload;
        let cut = Cut { transport: seen.transport, head, size };
        let (cells, last) = cut.rows(packet)?;
        let width = head + size;
        let end = (cells.len() / width) as u32;
        Some(Rows { shared: Arc::new(cells), width: width as u32, begin: 0, end, last: last as u32 })
    }

    /// Returns how large its packets are.
    pub fn sizes(&self) -> Sizes {
        Sizes { count: self.end - self.begin, each: self.width, last: self.last }
    }

    /// Returns the packets.
    pub fn packets(&self) -> impl Iterator<Item = Bytes> + '_ {
        self.bounds().map(|Range { start, end }| Bytes::part(&self.shared, start, end))
    }

    /// Appends the packets where they lie.
    pub fn slices<'a>(&'a self, out: &mut Vec<&'a [u8]>) {
        out.extend(self.bounds().map(|bounds| &self.shared[bounds]));
    }

    fn bounds(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        (self.begin..self.end).map(|row| {
            let begin = row as usize * self.width as usize;
            let size = if row + 1 == self.end { self.last } else { self.width };
            begin..begin + size as usize
        })
    }
}

impl Packets for Rows {
    fn part(&self, begin: u32, end: u32) -> Rows {
        let (first, behind) = (self.begin + begin, self.begin + end);
        let last = if behind == self.end { self.last } else { self.width };
        Rows { shared: self.shared.clone(), width: self.width, begin: first, end: behind, last }
    }
}

/// Returns parts of one buffer of rows of `width` bytes.
pub fn rows_of(bytes: Vec<u8>, width: usize) -> impl Iterator<Item = Bytes> {
    let count = bytes.len() / width.max(1);
    let shared: Arc<Vec<u8>> = Arc::new(bytes);
    (0..count).map(move |row| Bytes::part(&shared, row * width, (row + 1) * width))
}
