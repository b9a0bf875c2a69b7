//! The repairs of a unit as datagrams: packed, encoded and sealed in one call, from where its packets lie.

use std::slice;

use coding::packets::Sources;
use coding::{Code, Kernel};
use datapath::header::{Header, HEADER_BYTES, REPAIR};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::datapath::Matrix;
use crate::raised;

/// Code, k, r, index, seed, and four bytes that are kept.
const HEAD_BYTES: usize = 12;

/// Packets of one length but for the last, in rows behind `front` bytes of headers.
struct Piece {
    buffer: PyBuffer<u8>,
    front: usize,
    last_bytes: usize,
}

impl Piece {
    fn of(array: &Bound<'_, PyAny>, front: usize, last_bytes: usize) -> PyResult<Piece> {
        let buffer = PyBuffer::<u8>::get(array)?;
        let sound = buffer.dimensions() == 2 && buffer.is_c_contiguous() && buffer.item_count() > 0;
        if !sound || front > buffer.shape()[1] || last_bytes > buffer.shape()[1] - front {
            return Err(PyValueError::new_err(format!(
                "packets behind {front} B, the last of {last_bytes} B, are not in such rows"
            )));
        }
        Ok(Piece { buffer, front, last_bytes })
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: contiguous and of bytes (`of`), held as long as `self`; nobody writes while the interpreter is held.
        unsafe { slice::from_raw_parts(self.buffer.buf_ptr().cast(), self.buffer.item_count()) }
    }

    fn packets(&self) -> impl Iterator<Item = &[u8]> {
        let (count, width) = (self.buffer.shape()[0], self.buffer.shape()[1]);
        self.bytes().chunks_exact(width).enumerate().map(move |(index, row)| {
            let end = if index + 1 == count { self.front + self.last_bytes } else { width };
            &row[self.front..end]
        })
    }
}

#[pyfunction]
#[allow(clippy::too_many_arguments)] // the header's fields
pub fn seal_repairs(
    rows: &Bound<'_, PyAny>,
    headroom: usize,
    code: u8,
    packets: Vec<Bound<'_, PyAny>>,
    seed: u32,
    flags: u8,
    session: u32,
    number: u32,
    sent_us: u32,
    flow: u32,
    position: u32,
) -> PyResult<()> {
    let mut rows = Matrix::of(rows)?;
    let (r, width) = (rows.count(), rows.width());
    let mut singles: Vec<Option<&Bound<'_, PyBytes>>> = Vec::with_capacity(packets.len());
    let mut pieces: Vec<Piece> = Vec::new();
    for packet in &packets {
        let single = packet.cast::<PyBytes>().ok();
        if single.is_none() {
            let (array, front, last_bytes): (Bound<'_, PyAny>, usize, usize) = packet.extract()?;
            pieces.push(Piece::of(&array, front, last_bytes)?);
        }
        singles.push(single);
    }
    let written = rows.bytes().as_ptr_range();
    if pieces
        .iter()
        .map(|piece| piece.bytes().as_ptr_range())
        .any(|read| read.start < written.end && written.start < read.end)
    {
        return Err(PyValueError::new_err(
            "repairs must not be written over the packets that they are made of",
        ));
    }
    let mut slices: Vec<&[u8]> = Vec::with_capacity(64);
    let mut rest = pieces.iter();
    for single in singles {
        match single {
            Some(packet) => slices.push(packet.as_bytes()),
            None => slices.extend(rest.next().into_iter().flat_map(Piece::packets)),
        }
    }
    let code_number = code;
    let code = Code::numbered(code).map_err(raised)?;
    code.check(slices.len(), r).map_err(raised)?;
    let sources = Sources::pack(&slices).map_err(raised)?;
    let front = headroom.saturating_add(HEADER_BYTES + HEAD_BYTES);
    if front.checked_add(sources.length) != Some(width) {
        return Err(PyValueError::new_err(format!(
            "rows of {width} B are not {headroom} B, headers of {} B and symbols of {} B",
            HEADER_BYTES + HEAD_BYTES,
            sources.length
        )));
    }
    let repairs = sources.encode(code, Kernel::best(), r, seed).map_err(raised)?;
    for ((index, row), symbol) in rows.bytes().chunks_exact_mut(width).enumerate().zip(repairs.symbols()) {
        let (head, body) = row.split_at_mut(headroom + HEADER_BYTES);
        body[..4].copy_from_slice(&[code_number, slices.len() as u8, r as u8, index as u8]);
        body[4..8].copy_from_slice(&seed.to_be_bytes());
        body[8..HEAD_BYTES].fill(0);
        body[HEAD_BYTES..].copy_from_slice(symbol);
        let number = number.wrapping_add(index as u32);
        let header = Header { kind: REPAIR, flags, session, number, sent_us, flow, position };
        head[headroom..].copy_from_slice(&header.encode(body));
    }
    Ok(())
}
