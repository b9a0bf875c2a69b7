//! The repairs of a unit as datagrams: packed, encoded and sealed in one call, from where its packets lie.

use std::slice;

use coding::packets::{symbol_length, Repairs};
use coding::{Code, Kernel};
use datapath::header::{Header, HEADER_BYTES, REPAIR};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::bursts::Matrix;
use crate::raised;

/// Code, k, r, index, seed, and four bytes that are kept.
const HEAD_BYTES: usize = 12;

/// Packets of a unit: one alone, or rows `begin..end`, behind `front` bytes of headers, the last of which has
/// `last_bytes`.
enum Piece<'py> {
    Single(Bound<'py, PyBytes>),
    Rows { buffer: PyBuffer<u8>, begin: usize, end: usize, front: usize, last_bytes: usize },
}

impl<'py> Piece<'py> {
    fn of(piece: &Bound<'py, PyAny>) -> PyResult<Piece<'py>> {
        if let Ok(packet) = piece.cast::<PyBytes>() {
            return Ok(Piece::Single(packet.clone()));
        }
        let (array, begin, end, front, last_bytes): (Bound<'_, PyAny>, usize, usize, usize, usize) =
            piece.extract()?;
        let buffer = PyBuffer::<u8>::get(&array)?;
        let sound = buffer.dimensions() == 2 && buffer.is_c_contiguous();
        if !sound
            || begin >= end
            || end > buffer.shape()[0]
            || front > buffer.shape()[1]
            || last_bytes > buffer.shape()[1] - front
        {
            return Err(PyValueError::new_err(format!(
                "packets in rows {begin} to {end} behind {front} B, the last of {last_bytes} B, are not in such rows"
            )));
        }
        Ok(Piece::Rows { buffer, begin, end, front, last_bytes })
    }

    /// The memory that it is read from, where that may be written to.
    fn memory(&self) -> Option<&[u8]> {
        match self {
            Piece::Single(_) => None,
            // SAFETY: contiguous and of bytes (`of`), held as long as `self`; nobody writes while the interpreter is
            // held.
            Piece::Rows { buffer, .. } => {
                Some(unsafe { slice::from_raw_parts(buffer.buf_ptr().cast(), buffer.item_count()) })
            }
        }
    }

    fn add_to<'a>(&'a self, slices: &mut Vec<&'a [u8]>) {
        match (self, self.memory()) {
            (Piece::Single(packet), _) => slices.push(packet.as_bytes()),
            (Piece::Rows { buffer, begin, end, front, last_bytes }, Some(memory)) => {
                let (width, packet_bytes) = (buffer.shape()[1], buffer.shape()[1] - front);
                slices.extend((*begin..*end).map(|row| {
                    let length = if row + 1 == *end { *last_bytes } else { packet_bytes };
                    &memory[row * width + front..][..length]
                }));
            }
            _ => {}
        }
    }
}

/// A closed unit, and the rows that its repairs are to be written into, behind the headroom.
pub struct Unit<'py> {
    rows: Matrix,
    headroom: usize,
    code: Code,
    /// What all of its repairs begin with, but for their index.
    head: [u8; HEAD_BYTES],
    seed: u32,
    position: u32,
    pieces: Vec<Piece<'py>>,
}

impl<'py> Unit<'py> {
    /// From rows, number of the code, seed, position of the first packet, and packets. Nothing is written yet, and
    /// all that can be wrong is found here.
    pub fn of(unit: &Bound<'py, PyAny>, headroom: usize) -> PyResult<Unit<'py>> {
        type Fields<'py> = (Bound<'py, PyAny>, u8, u32, u32, Vec<Bound<'py, PyAny>>);
        let (rows, number, seed, position, pieces): Fields<'_> = unit.extract()?;
        let mut rows = Matrix::of(&rows)?;
        let pieces: Vec<Piece<'py>> = pieces.iter().map(Piece::of).collect::<PyResult<_>>()?;
        let written = rows.bytes().as_ptr_range();
        if pieces
            .iter()
            .filter_map(Piece::memory)
            .map(<[u8]>::as_ptr_range)
            .any(|read| read.start < written.end && written.start < read.end)
        {
            return Err(PyValueError::new_err(
                "repairs must not be written over the packets that they are made of",
            ));
        }
        let packets = packets_of(&pieces);
        let (k, r, width) = (packets.len(), rows.count(), rows.width());
        let code = Code::numbered(number).map_err(raised)?;
        code.check(k, r).map_err(raised)?;
        let symbol_bytes = symbol_length(&packets).map_err(raised)?;
        let front = headroom.saturating_add(HEADER_BYTES + HEAD_BYTES);
        if front.checked_add(symbol_bytes) != Some(width) {
            return Err(PyValueError::new_err(format!(
                "rows of {width} B are not {headroom} B, headers of {} B and symbols of {symbol_bytes} B",
                HEADER_BYTES + HEAD_BYTES
            )));
        }
        let mut head = [number, k as u8, r as u8, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        head[4..8].copy_from_slice(&seed.to_be_bytes());
        Ok(Unit { rows, headroom, code, head, seed, position, pieces })
    }

    /// Write the repairs as datagrams, the first with this header, numbers going up by one; how many there are.
    pub fn seal(mut self, header: Header) -> PyResult<usize> {
        let (r, width) = (self.rows.count(), self.rows.width());
        let repairs = Repairs::encode(self.code, Kernel::best(), &packets_of(&self.pieces), r, self.seed);
        let repairs = repairs.map_err(raised)?;
        let rows = self.rows.bytes().chunks_exact_mut(width).enumerate();
        for ((index, row), (length, packet)) in rows.zip(repairs.symbols()) {
            let (front, body) = row.split_at_mut(self.headroom + HEADER_BYTES);
            let (head, symbol) = body.split_at_mut(HEAD_BYTES);
            head.copy_from_slice(&self.head);
            head[3] = index as u8;
            symbol[..length.len()].copy_from_slice(length);
            symbol[length.len()..].copy_from_slice(packet);
            let number = header.number.wrapping_add(index as u32);
            let header = Header { number, position: self.position, ..header };
            front[self.headroom..].copy_from_slice(&header.encode(body));
        }
        Ok(r)
    }
}

fn packets_of<'a>(pieces: &'a [Piece<'_>]) -> Vec<&'a [u8]> {
    let mut packets = Vec::with_capacity(64);
    pieces.iter().for_each(|piece| piece.add_to(&mut packets));
    packets
}

#[pyfunction]
#[allow(clippy::too_many_arguments)] // the header's fields
pub fn seal_repairs(
    headroom: usize,
    flags: u8,
    session: u32,
    number: u32,
    sent_us: u32,
    flow: u32,
    unit: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let unit = Unit::of(unit, headroom)?;
    let header = Header { kind: REPAIR, flags, session, number, sent_us, flow, position: unit.position };
    unit.seal(header)?;
    Ok(())
}
