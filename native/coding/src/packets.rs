//! Units of packets: a symbol is a 2-byte length (network byte order), the packet, and zeros up to the unit's longest.
//!
//! Packets of one unit differ in length, so true lengths are part of what is coded. Length and zeros are checked when a
//! symbol is rebuilt: rebuilt garbage passes for a packet with a probability of about 2^-8 per byte of padding.

use crate::code::Code;
use crate::error::{invalid, Error};
use crate::field::multiply;
use crate::kernels::{product, Kernel};

pub const LENGTH_BYTES: usize = 2;
pub const MOST_PACKET_BYTES: usize = 0xFFFF;

/// Rows of a unit begin at multiples of this: blocks of the kernels, and lines of the cache.
const ALIGNMENT: usize = 64;

/// Symbols of one unit, each in a row of `width` bytes: the symbol, then zeros.
struct Symbols {
    cells: Vec<u8>,
    width: usize,
    start: usize,
}

impl Symbols {
    /// Makes an empty list with room for so many symbols of `length` bytes.
    fn with_capacity(rows: usize, length: usize) -> Symbols {
        let width = length.next_multiple_of(ALIGNMENT);
        let mut cells: Vec<u8> = Vec::with_capacity(rows * width + ALIGNMENT - 1);
        let start = cells.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT - 1);
        cells.resize(start, 0);
        Symbols { cells, width, start }
    }

    /// Append a row of those parts, one after the other; they fit.
    fn push(&mut self, parts: &[&[u8]]) {
        let end = self.cells.len() + self.width;
        parts.iter().for_each(|part| self.cells.extend_from_slice(part));
        self.cells.resize(end, 0);
    }

    /// Append the symbol of a packet of at most MOST_PACKET_BYTES.
    fn push_packet(&mut self, packet: &[u8]) {
        self.push(&[&(packet.len() as u16).to_be_bytes(), packet]);
    }

    fn rows(&self) -> std::slice::ChunksExact<'_, u8> {
        self.cells[self.start..].chunks_exact(self.width)
    }
}

/// Returns the length of the symbols of a unit of those packets: of the longest packet.
pub fn symbol_length(packets: &[&[u8]]) -> Result<usize, Error> {
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

/// Repairs of a unit.
pub struct Repairs {
    /// What each has in the place of the length, and of the packet.
    lengths: Vec<u8>,
    packets: Vec<u8>,
    longest: usize,
}

impl Repairs {
    /// Returns the r repairs of a unit of packets, which are read in place: only packets that are shorter than the
    /// longest are copied, for the zeros behind them.
    pub fn encode(
        code: Code,
        kernel: Kernel,
        packets: &[&[u8]],
        r: usize,
        seed: u32,
    ) -> Result<Repairs, Error> {
        code.check(packets.len(), r)?;
        let longest = symbol_length(packets)? - LENGTH_BYTES;
        let short = packets.iter().filter(|packet| packet.len() < longest);
        let mut padded = vec![0; short.clone().count() * longest];
        for (row, packet) in padded.chunks_exact_mut(longest).zip(short) {
            row[..packet.len()].copy_from_slice(packet);
        }
        let mut padded = padded.chunks_exact(longest);
        let whole = |packet: &&[u8]| packet.len() == longest;
        let rows: Option<Vec<&[u8]>> =
            packets.iter().map(|packet| if whole(packet) { Some(*packet) } else { padded.next() }).collect();
        let rows = rows.unwrap_or_default();
        let mut repairs =
            Repairs { lengths: vec![0; r * LENGTH_BYTES], packets: vec![0; r * longest], longest };
        match code {
            Code::Rlc | Code::Mds => {
                let coefficients = code.rows(seed, 0..r, packets.len());
                product(kernel, &coefficients, &rows, longest, &mut repairs.packets)?;
                let lengths = repairs.lengths.chunks_exact_mut(LENGTH_BYTES);
                for (length, coefficients) in lengths.zip(coefficients.chunks_exact(packets.len())) {
                    length.copy_from_slice(&coded_length(coefficients, packets));
                }
            }
            Code::Xor | Code::Ldpc => {
                let lengths: Vec<[u8; LENGTH_BYTES]> =
                    packets.iter().map(|packet| (packet.len() as u16).to_be_bytes()).collect();
                let lengths: Vec<&[u8]> = lengths.iter().map(|length| &length[..]).collect();
                code.encode(kernel, seed, &rows, longest, &mut repairs.packets)?;
                code.encode(Kernel::Portable, seed, &lengths, LENGTH_BYTES, &mut repairs.lengths)?;
            }
        }
        Ok(repairs)
    }

    /// Returns the bytes of a symbol.
    pub fn symbol_bytes(&self) -> usize {
        LENGTH_BYTES + self.longest
    }

    /// Returns their symbols, in order, in two parts.
    pub fn symbols(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.lengths.chunks_exact(LENGTH_BYTES).zip(self.packets.chunks_exact(self.longest))
    }
}

/// Returns what a repair with these coefficients has in the place of the length: packets of one length, as nearly all of a
/// unit, are multiplied together.
fn coded_length(mut coefficients: &[u8], packets: &[&[u8]]) -> [u8; LENGTH_BYTES] {
    let mut coded = [0; LENGTH_BYTES];
    for alike in packets.chunk_by(|one, other| one.len() == other.len()) {
        let (these, behind) = coefficients.split_at(alike.len());
        let factor = these.iter().fold(0u8, |sum, &coefficient| sum ^ coefficient);
        for (coded, byte) in coded.iter_mut().zip((alike[0].len() as u16).to_be_bytes()) {
            *coded ^= multiply(factor, byte);
        }
        coefficients = behind;
    }
    coded
}

/// What has come of a unit, ready to be decoded without a look at the packets.
pub struct Received {
    /// Those of the sources that are there, then repairs.
    symbols: Symbols,
    known: Vec<bool>,
    repairs: Vec<usize>,
    length: usize,
}

impl Received {
    /// Copies what has arrived of a unit. `packets` are the unit's k packets, None where a packet has not arrived;
    /// `repairs` have one length each.
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
        let mut symbols = Symbols::with_capacity(packets.len() + repairs.len(), length);
        packets.iter().flatten().for_each(|packet| symbols.push_packet(packet));
        repairs.iter().for_each(|(_, symbol)| symbols.push(&[symbol]));
        Ok(Received {
            symbols,
            known: packets.iter().map(Option::is_some).collect(),
            repairs: repairs.iter().map(|&(index, _)| index).collect(),
            length,
        })
    }

    /// Returns rebuilt packets with their indices, ascending; what is not determined is absent.
    pub fn decode(
        &self,
        code: Code,
        kernel: Kernel,
        r: usize,
        seed: u32,
    ) -> Result<Vec<(usize, Vec<u8>)>, Error> {
        let mut rows = self.symbols.rows();
        let sources: Vec<Option<&[u8]>> =
            self.known.iter().map(|&known| if known { rows.next() } else { None }).collect();
        let repairs: Vec<(usize, &[u8])> = self.repairs.iter().copied().zip(rows).collect();
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
