//! Units of packets: a symbol is a 2-byte length (network byte order), the packet, and zeros up to the unit's longest.
//!
//! Packets of one unit differ in length, so true lengths are part of what is coded. Length and zeros are checked when a
//! symbol is rebuilt: rebuilt garbage passes for a packet with a probability of about 2^-8 per byte of padding.

use crate::code::Code;
use crate::error::{invalid, Error};
use crate::kernels::Kernel;

pub const LENGTH_BYTES: usize = 2;
pub const MOST_PACKET_BYTES: usize = 0xFFFF;

/// Rows of a unit begin at multiples of this: blocks of the kernels, and lines of the cache.
const ALIGNMENT: usize = 64;

/// Symbols of one unit, each in a row of `width` bytes of which the first `length` may be other than 0.
pub struct Symbols {
    cells: Vec<u8>,
    width: usize,
    start: usize,
}

impl Symbols {
    /// `rows` rows of zeros for symbols of `length` bytes.
    pub fn zeros(rows: usize, length: usize) -> Symbols {
        let width = length.next_multiple_of(ALIGNMENT);
        let cells = vec![0; rows * width + ALIGNMENT - 1];
        let start = cells.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT - 1);
        Symbols { cells, width, start }
    }

    fn row_mut(&mut self, row: usize) -> &mut [u8] {
        &mut self.cells[self.start + row * self.width..][..self.width]
    }

    fn row(&self, row: usize) -> &[u8] {
        &self.cells[self.start + row * self.width..][..self.width]
    }

    /// Put a received symbol into a row; it fits.
    pub fn put(&mut self, row: usize, symbol: &[u8]) {
        self.row_mut(row)[..symbol.len()].copy_from_slice(symbol);
    }

    /// Put the symbol of a packet into a row; it fits, and is not above MOST_PACKET_BYTES.
    pub fn put_packet(&mut self, row: usize, packet: &[u8]) {
        let cells = self.row_mut(row);
        cells[..LENGTH_BYTES].copy_from_slice(&(packet.len() as u16).to_be_bytes());
        cells[LENGTH_BYTES..][..packet.len()].copy_from_slice(packet);
    }
}

/// Length of the symbols of a unit of those packets: of the longest one.
fn symbol_length(packets: &[&[u8]]) -> Result<usize, Error> {
    let mut longest = 0;
    for packet in packets {
        if packet.is_empty() || packet.len() > MOST_PACKET_BYTES {
            return invalid!(
                "a packet of {} B cannot be coded: it must be 1..{MOST_PACKET_BYTES} B",
                packet.len()
            );
        }
        longest = longest.max(packet.len());
    }
    Ok(LENGTH_BYTES + longest)
}

/// The packed sources of a unit, ready to be encoded without a look at the packets.
pub struct Sources {
    symbols: Symbols,
    k: usize,
    pub length: usize,
}

impl Sources {
    pub fn pack(packets: &[&[u8]]) -> Result<Sources, Error> {
        let length = symbol_length(packets)?;
        let mut symbols = Symbols::zeros(packets.len(), length);
        for (row, packet) in packets.iter().enumerate() {
            symbols.put_packet(row, packet);
        }
        Ok(Sources { symbols, k: packets.len(), length })
    }

    /// The r repairs; the first `length` bytes of each are its symbol.
    pub fn encode(&self, code: Code, kernel: Kernel, r: usize, seed: u32) -> Result<Repairs, Error> {
        code.check(self.k, r)?;
        let sources: Vec<&[u8]> = (0..self.k).map(|row| self.symbols.row(row)).collect();
        let mut symbols = Symbols::zeros(r, self.length);
        let width = symbols.width;
        code.encode(kernel, seed, &sources, width, &mut symbols.cells[symbols.start..][..r * width])?;
        Ok(Repairs { symbols, length: self.length })
    }
}

/// Repairs of a unit.
pub struct Repairs {
    symbols: Symbols,
    length: usize,
}

impl Repairs {
    pub fn symbol(&self, index: usize) -> &[u8] {
        &self.symbols.row(index)[..self.length]
    }
}

/// What has come of a unit, ready to be decoded without a look at the packets.
pub struct Received {
    symbols: Symbols,
    known: Vec<bool>,
    repairs: Vec<usize>,
    length: usize,
}

impl Received {
    /// `packets` are the unit's k packets, None where one has not come; `repairs` have one length each.
    pub fn pack(packets: &[Option<&[u8]>], repairs: &[(usize, &[u8])]) -> Result<Received, Error> {
        let Some(length) = repairs.first().map(|(_, symbol)| symbol.len()) else {
            return invalid!("a unit without repairs cannot be decoded");
        };
        if repairs.iter().any(|(_, symbol)| symbol.len() != length) {
            return invalid!("repairs of one unit differ in length");
        }
        if length <= LENGTH_BYTES || length > LENGTH_BYTES + MOST_PACKET_BYTES {
            return invalid!("a symbol of {length} B cannot be");
        }
        let fits = |packet: &[u8]| !packet.is_empty() && LENGTH_BYTES + packet.len() <= length;
        if let Some(wrong) = packets.iter().flatten().find(|packet| !fits(packet)) {
            let size = wrong.len();
            return Err(Error::Contradiction(format!(
                "a packet of {size} B does not fit its unit's symbols of {length} B"
            )));
        }
        let mut symbols = Symbols::zeros(packets.len() + repairs.len(), length);
        for (row, packet) in packets.iter().enumerate() {
            if let Some(packet) = packet {
                symbols.put_packet(row, packet);
            }
        }
        for (place, (_, symbol)) in repairs.iter().enumerate() {
            symbols.put(packets.len() + place, symbol);
        }
        Ok(Received {
            symbols,
            known: packets.iter().map(Option::is_some).collect(),
            repairs: repairs.iter().map(|&(index, _)| index).collect(),
            length,
        })
    }

    /// Rebuilt packets with their indices, ascending; what is not determined is absent.
    pub fn decode(
        &self,
        code: Code,
        kernel: Kernel,
        r: usize,
        seed: u32,
    ) -> Result<Vec<(usize, Vec<u8>)>, Error> {
        let k = self.known.len();
        let sources: Vec<Option<&[u8]>> =
            (0..k).map(|row| self.known[row].then(|| self.symbols.row(row))).collect();
        let repairs: Vec<(usize, &[u8])> = self
            .repairs
            .iter()
            .enumerate()
            .map(|(place, &index)| (index, self.symbols.row(k + place)))
            .collect();
        let width = self.symbols.width;
        let rebuilt = code.decode(kernel, seed, r, &sources, &repairs, width)?;
        let symbols = rebuilt.symbols.chunks_exact(width);
        rebuilt
            .indices
            .into_iter()
            .zip(symbols)
            .map(|(index, row)| Ok((index, self.unpack(row)?.to_vec())))
            .collect()
    }

    fn unpack<'a>(&self, row: &'a [u8]) -> Result<&'a [u8], Error> {
        let size = usize::from(u16::from_be_bytes([row[0], row[1]]));
        let end = LENGTH_BYTES + size;
        if size == 0 || end > self.length {
            return Err(Error::Contradiction(format!(
                "rebuilt length of {size} B does not fit a symbol of {} B",
                self.length
            )));
        }
        if row[end..].iter().any(|&byte| byte != 0) {
            return Err(Error::Contradiction(format!("rebuilt packet of {size} B is not followed by zeros")));
        }
        Ok(&row[LENGTH_BYTES..end])
    }
}
