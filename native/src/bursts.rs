//! Bursts: datagrams of one flow in rows of one matrix, cut from a super-packet, sealed and sent as one thing; of a
//! coded flow, with the repairs of each unit behind its last source.

use std::mem;
use std::net::Ipv4Addr;
use std::os::fd::RawFd;

use datapath::header::{Header, HEADER_BYTES, REPAIR, SOURCE};
use datapath::segments::Cut;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::datapath::{outer, send_messages, MOST, OUTER_BYTES};
use crate::repairs::Unit;

/// Rows of bytes in an array of numpy's, to be written.
pub struct Matrix(PyBuffer<u8>);

impl Matrix {
    pub fn of(array: &Bound<'_, PyAny>) -> PyResult<Matrix> {
        let buffer = PyBuffer::<u8>::get(array)?;
        if buffer.dimensions() != 2
            || !buffer.is_c_contiguous()
            || buffer.readonly()
            || buffer.item_count() == 0
        {
            return Err(PyValueError::new_err(
                "rows must be a contiguous, writable array (rows, bytes) that is not empty",
            ));
        }
        Ok(Matrix(buffer))
    }

    pub fn count(&self) -> usize {
        self.0.shape()[0]
    }

    pub fn width(&self) -> usize {
        self.0.shape()[1]
    }

    pub fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the buffer is contiguous, of bytes, writable, held as long as `self`, and the interpreter is held.
        unsafe { std::slice::from_raw_parts_mut(self.0.buf_ptr().cast(), self.0.item_count()) }
    }
}

#[pyfunction]
pub fn cut_segments(
    packet: &[u8],
    transport: usize,
    head: usize,
    size: usize,
    headroom: usize,
    rows: &Bound<'_, PyAny>,
) -> PyResult<usize> {
    let mut rows = Matrix::of(rows)?;
    let cut = Cut { transport, head, size, headroom };
    let fits = headroom.checked_add(head).and_then(|front| front.checked_add(size)) == Some(rows.width());
    if cut.count(packet) != Some(rows.count()) || !fits {
        return Err(PyValueError::new_err(format!(
            "a packet of {} B, {head} B of them headers, does not give {}x{} B in segments of {size} B",
            packet.len(),
            rows.count(),
            rows.width()
        )));
    }
    Ok(cut.write(packet, rows.bytes()))
}

/// Rows with room for headers before each body, the last of which has `last_bytes`.
struct Sealing {
    rows: Matrix,
    headroom: usize,
    last_bytes: usize,
}

impl Sealing {
    fn of(rows: &Bound<'_, PyAny>, headroom: usize, last_bytes: usize) -> PyResult<Sealing> {
        let rows = Matrix::of(rows)?;
        let (width, front) = (rows.width(), headroom.saturating_add(HEADER_BYTES));
        if front > width || last_bytes > width - front {
            return Err(PyValueError::new_err(format!(
                "rows of {width} B have no room for {front} B of headers and {last_bytes} B"
            )));
        }
        Ok(Sealing { rows, headroom, last_bytes })
    }

    /// Write the headers of rows `begin..end`, the first of which is `header`: numbers and positions go up by one.
    fn seal(&mut self, begin: usize, end: usize, header: Header) {
        let (count, width) = (self.rows.count(), self.rows.width());
        let (headroom, front, last) = (self.headroom, self.headroom + HEADER_BYTES, self.last_bytes);
        let rows = self.rows.bytes().chunks_exact_mut(width);
        for (index, row) in rows.enumerate().take(end).skip(begin) {
            let end = if index + 1 == count { front + last } else { width };
            let ahead = (index - begin) as u32;
            let header = Header {
                number: header.number.wrapping_add(ahead),
                position: header.position.wrapping_add(ahead),
                ..header
            };
            let head = header.encode(&row[front..end]);
            row[headroom..front].copy_from_slice(&head);
        }
    }
}

#[pyfunction]
#[allow(clippy::too_many_arguments)] // the header's fields
pub fn seal_rows(
    rows: &Bound<'_, PyAny>,
    headroom: usize,
    last_bytes: usize,
    kind: u8,
    flags: u8,
    session: u32,
    number: u32,
    sent_us: u32,
    flow: u32,
    position: u32,
) -> PyResult<()> {
    if kind > 0x0F {
        return Err(PyValueError::new_err(format!("kind {kind} does not fit four bits")));
    }
    let mut sealing = Sealing::of(rows, headroom, last_bytes)?;
    let count = sealing.rows.count();
    sealing.seal(0, count, Header { kind, flags, session, number, sent_us, flow, position });
    Ok(())
}

#[pyfunction]
#[allow(clippy::too_many_arguments)] // the header's fields
pub fn seal_coded(
    rows: &Bound<'_, PyAny>,
    headroom: usize,
    last_bytes: usize,
    flags: u8,
    session: u32,
    number: u32,
    sent_us: u32,
    flow: u32,
    position: u32,
    units: Vec<(usize, Bound<'_, PyAny>)>,
) -> PyResult<()> {
    let mut sealing = Sealing::of(rows, headroom, last_bytes)?;
    let count = sealing.rows.count();
    let mut header = Header { kind: SOURCE, flags, session, number, sent_us, flow, position };
    let mut made: Vec<(usize, Unit<'_>)> = Vec::with_capacity(units.len());
    for (end, unit) in &units {
        let begin = made.last().map_or(0, |&(end, _)| end);
        if *end < begin || *end > count {
            return Err(PyValueError::new_err(format!(
                "a unit that ends behind row {end} is not behind row {begin} of {count}"
            )));
        }
        made.push((*end, Unit::of(unit, headroom)?));
    }
    let mut at = 0;
    for (end, unit) in made {
        sealing.seal(at, end, header);
        let sealed = (end - at) as u32;
        header.number = header.number.wrapping_add(sealed);
        header.position = header.position.wrapping_add(sealed);
        at = end;
        let repairs = unit.seal(Header { kind: REPAIR, ..header })?;
        header.number = header.number.wrapping_add(repairs as u32);
    }
    sealing.seal(at, count, header);
    Ok(())
}

#[pyfunction]
#[pyo3(signature = (fd, source, address, source_ports, destination_port, tos, rows, last_bytes, repairs=Vec::new(), repair_tos=0))]
#[allow(clippy::too_many_arguments)] // the outer header's fields
pub fn send_rows(
    fd: RawFd,
    source: [u8; 4],
    address: &str,
    source_ports: Vec<u16>,
    destination_port: u16,
    tos: u8,
    rows: &Bound<'_, PyAny>,
    last_bytes: usize,
    repairs: Vec<(usize, Bound<'_, PyAny>)>,
    repair_tos: u8,
) -> PyResult<usize> {
    let address: Ipv4Addr =
        address.parse().map_err(|_| PyValueError::new_err(format!("{address:?} is no IPv4 address")))?;
    let mut rows = Matrix::of(rows)?;
    let mut repairs: Vec<(usize, Matrix)> = repairs
        .iter()
        .map(|(behind, repairs)| Ok((*behind, Matrix::of(repairs)?)))
        .collect::<PyResult<_>>()?;
    let (count, width) = (rows.count(), rows.width());
    let total = count + repairs.iter().map(|(_, repairs)| repairs.count()).sum::<usize>();
    let fits = |width: usize| (OUTER_BYTES..=65535).contains(&width);
    if source_ports.len() != total
        || !fits(width)
        || last_bytes > width - OUTER_BYTES
        || repairs.iter().any(|(behind, repairs)| *behind > count || !fits(repairs.width()))
        || !repairs.is_sorted_by_key(|&(behind, _)| behind)
    {
        return Err(PyValueError::new_err(format!(
            "{count} rows of {width} B, the last of {last_bytes} B, and {} repairs with {} ports do not fit",
            total - count,
            source_ports.len()
        )));
    }
    let mut ports = source_ports.into_iter();
    let mut iovecs: Vec<libc::iovec> = Vec::with_capacity(total);
    let mut address_row = |row: &mut [u8], tos: u8, length: usize| {
        let ports = (ports.next().unwrap_or_default(), destination_port);
        row[..OUTER_BYTES].copy_from_slice(&outer(source, address.octets(), ports, tos, length));
        iovecs.push(libc::iovec { iov_base: row.as_mut_ptr().cast(), iov_len: OUTER_BYTES + length });
    };
    let mut following = repairs.iter_mut().peekable();
    let mut sources = rows.bytes().chunks_exact_mut(width).enumerate();
    for index in 0..=count {
        while let Some((_, repairs)) = following.next_if(|(behind, _)| *behind == index) {
            let width = repairs.width();
            for row in repairs.bytes().chunks_exact_mut(width) {
                address_row(row, repair_tos, width - OUTER_BYTES);
            }
        }
        if let Some((index, row)) = sources.next() {
            address_row(row, tos, if index + 1 == count { last_bytes } else { width - OUTER_BYTES });
        }
    }
    // SAFETY: plain data, for which zeros are valid.
    let mut name: libc::sockaddr_in = unsafe { mem::zeroed() };
    name.sin_family = libc::AF_INET as u16;
    name.sin_addr.s_addr = u32::from_ne_bytes(address.octets());
    let mut sent = 0;
    for some in iovecs.chunks_mut(MOST) {
        // SAFETY: as above.
        let mut messages: [libc::mmsghdr; MOST] = unsafe { mem::zeroed() };
        for (message, iovec) in messages.iter_mut().zip(some.iter_mut()) {
            let header = &mut message.msg_hdr;
            header.msg_name = (&raw mut name).cast();
            header.msg_namelen = mem::size_of::<libc::sockaddr_in>() as u32;
            header.msg_iov = iovec;
            header.msg_iovlen = 1;
        }
        // the rows and the name live until this function ends
        sent += send_messages(fd, &mut messages[..some.len()]);
    }
    Ok(sent)
}
