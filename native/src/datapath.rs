//! What the host agents' shells move: datagrams between the underlay's sockets and Python, packets to the TUN device.
//!
//! Nothing here waits, so the interpreter is held throughout: to give it away costs more than a call takes.

use std::collections::HashMap;
use std::io;
use std::mem;
use std::net::Ipv4Addr;
use std::os::fd::RawFd;

use datapath::coalesce::{self, Write};
use datapath::crc32c;
use datapath::header::Header;
use datapath::inner;
use datapath::runs::{Next, Run};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString, PyTuple, PyType};

/// Messages of one call of the kernel.
pub const MOST: usize = 64;
const CONTROL_BYTES: usize = 32;
const TOS_AT: usize = 16;
const MOST_TEXTS: usize = 4096;
pub const OUTER_BYTES: usize = 28;
const OUTER_TTL: u8 = 64;

/// One message of recvmmsg with its buffers.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
struct Control([u8; CONTROL_BYTES]);

#[pyclass]
pub struct DatagramReceiver {
    width: usize,
    data: Vec<u8>,
    texts: HashMap<[u8; 4], Py<PyString>>,
    /// Datagrams to ask for the next time: a lone one is passed on soonest if no more are asked for.
    ask: usize,
}

/// A run that may go on, with what Python gets of it.
struct Open<'py> {
    run: Run,
    ports: Vec<u16>,
    bodies: Vec<Bound<'py, PyBytes>>,
    /// Among sources: behind how many of them, position of the unit, bodies.
    repairs: Vec<(usize, u32, Vec<Bound<'py, PyBytes>>)>,
}

impl<'py> Open<'py> {
    fn add(&mut self, next: Next, port: u16, position: u32, body: Bound<'py, PyBytes>) {
        self.ports.push(port);
        match (next, self.repairs.last_mut()) {
            (Next::Repair { is_first: false }, Some((_, _, bodies))) => bodies.push(body),
            (Next::Repair { .. }, _) => self.repairs.push((self.bodies.len(), position, vec![body])),
            _ => self.bodies.push(body),
        }
    }
}

#[pymethods]
impl DatagramReceiver {
    #[new]
    fn new(datagram_bytes: usize) -> PyResult<Self> {
        if !(1..=65535).contains(&datagram_bytes) {
            return Err(PyValueError::new_err(format!("datagrams of {datagram_bytes} B cannot be")));
        }
        let width = (datagram_bytes + 1).next_multiple_of(64);
        Ok(DatagramReceiver { width, data: vec![0; MOST * width], texts: HashMap::new(), ask: 1 })
    }

    fn receive<'py>(&mut self, py: Python<'py>, fd: RawFd) -> PyResult<Bound<'py, PyList>> {
        let most = self.ask;
        // SAFETY: all of these are plain data, for which zeros are valid.
        let (mut names, mut messages, mut iovecs): (
            [libc::sockaddr_in; MOST],
            [libc::mmsghdr; MOST],
            [libc::iovec; MOST],
        ) = unsafe { (mem::zeroed(), mem::zeroed(), mem::zeroed()) };
        let mut controls = [Control([0; CONTROL_BYTES]); MOST];
        for (index, slot) in self.data.chunks_exact_mut(self.width).take(most).enumerate() {
            iovecs[index] = libc::iovec { iov_base: slot.as_mut_ptr().cast(), iov_len: slot.len() };
            let header = &mut messages[index].msg_hdr;
            header.msg_name = (&raw mut names[index]).cast();
            header.msg_namelen = mem::size_of::<libc::sockaddr_in>() as u32;
            header.msg_iov = &raw mut iovecs[index];
            header.msg_iovlen = 1;
            header.msg_control = controls[index].0.as_mut_ptr().cast();
            header.msg_controllen = CONTROL_BYTES as _;
        }
        // SAFETY: `most` messages point to buffers of the lengths that they say, all alive until this method ends.
        let count = unsafe {
            libc::recvmmsg(fd, messages.as_mut_ptr(), most as u32, libc::MSG_DONTWAIT, std::ptr::null_mut())
        };
        let got = PyList::empty(py);
        if count < 0 {
            let error = io::Error::last_os_error();
            return match error.raw_os_error() {
                Some(libc::EAGAIN | libc::EINTR) => Ok(got),
                _ => Err(error.into()),
            };
        }
        let count = count as usize;
        self.ask = if count == most { (most * 8).min(MOST) } else { count.max(1) };
        let mut open: Option<Open<'py>> = None;
        for index in 0..count {
            let length = (messages[index].msg_len as usize).min(self.width);
            let data = &self.data[index * self.width..][..length];
            let told = messages[index].msg_hdr.msg_controllen > TOS_AT;
            let tos = if told { controls[index].0[TOS_AT] } else { 0 };
            let address = names[index].sin_addr.s_addr.to_ne_bytes();
            let port = u16::from_be(names[index].sin_port);
            let Some((header, body)) = Header::decode(data) else {
                flush(py, &mut self.texts, &got, &mut open)?;
                let text = text_of(py, &mut self.texts, address);
                got.append((PyBytes::new(py, data), text, port, tos))?;
                continue;
            };
            let body_object = PyBytes::new(py, body);
            if let Some(current) = &mut open {
                let next = current.run.take(address, tos, &header, body);
                if next != Next::Not {
                    current.add(next, port, header.position, body_object);
                    continue;
                }
            }
            flush(py, &mut self.texts, &got, &mut open)?;
            open = Some(Open {
                run: Run::begin(address, tos, header, body),
                ports: vec![port],
                bodies: vec![body_object],
                repairs: Vec::new(),
            });
        }
        flush(py, &mut self.texts, &got, &mut open)?;
        Ok(got)
    }
}

fn text_of<'py>(
    py: Python<'py>,
    texts: &mut HashMap<[u8; 4], Py<PyString>>,
    address: [u8; 4],
) -> Bound<'py, PyString> {
    if let Some(text) = texts.get(&address) {
        return text.bind(py).clone();
    }
    let text = PyString::new(py, &Ipv4Addr::from(address).to_string());
    if texts.len() < MOST_TEXTS {
        texts.insert(address, text.clone().unbind());
    }
    text
}

/// Give Python the run that ends here.
fn flush<'py>(
    py: Python<'py>,
    texts: &mut HashMap<[u8; 4], Py<PyString>>,
    got: &Bound<'py, PyList>,
    open: &mut Option<Open<'py>>,
) -> PyResult<()> {
    let Some(Open { run, ports, bodies, repairs }) = open.take() else { return Ok(()) };
    let key = match &run.key {
        Some(key) => PyBytes::new(py, key).into_any(),
        None => py.None().into_bound(py),
    };
    let fields = [
        text_of(py, texts, run.address).into_any(),
        run.tos.into_pyobject(py)?.into_any(),
        run.first.kind.into_pyobject(py)?.into_any(),
        run.first.flags.into_pyobject(py)?.into_any(),
        run.first.session.into_pyobject(py)?.into_any(),
        run.first.number.into_pyobject(py)?.into_any(),
        run.first.sent_us.into_pyobject(py)?.into_any(),
        run.first.flow.into_pyobject(py)?.into_any(),
        run.first.position.into_pyobject(py)?.into_any(),
        key,
        PyList::new(py, ports)?.into_any(),
        PyList::new(py, bodies)?.into_any(),
    ];
    let fields = PyTuple::new(py, fields)?;
    if repairs.is_empty() {
        got.append(fields)
    } else {
        got.append((fields, repairs))
    }
}

#[pyfunction]
fn crc32c_of(data: &[u8], value: u32) -> u32 {
    crc32c::crc32c(value, data)
}

#[pyfunction]
#[allow(clippy::too_many_arguments)] // the header's fields
fn encode_datagram<'py>(
    py: Python<'py>,
    kind: u8,
    flags: u8,
    session: u32,
    number: u32,
    sent_us: u32,
    flow: u32,
    position: u32,
    body: &[u8],
) -> PyResult<Bound<'py, PyBytes>> {
    if kind > 0x0F {
        return Err(PyValueError::new_err(format!("kind {kind} does not fit four bits")));
    }
    let head = Header { kind, flags, session, number, sent_us, flow, position }.encode(body);
    PyBytes::new_with(py, head.len() + body.len(), |datagram| {
        datagram[..head.len()].copy_from_slice(&head);
        datagram[head.len()..].copy_from_slice(body);
        Ok(())
    })
}

/// IPv4 and UDP headers; the kernel fills in the IPv4 checksum, UDP has none, for the datagram has its CRC.
pub fn outer(
    source: [u8; 4],
    address: [u8; 4],
    ports: (u16, u16),
    tos: u8,
    data_bytes: usize,
) -> [u8; OUTER_BYTES] {
    let mut head = [0u8; OUTER_BYTES];
    head[..2].copy_from_slice(&[0x45, tos]);
    head[2..4].copy_from_slice(&((OUTER_BYTES + data_bytes) as u16).to_be_bytes());
    head[6] = 0x40; // don't fragment
    head[8] = OUTER_TTL;
    head[9] = libc::IPPROTO_UDP as u8;
    head[12..16].copy_from_slice(&source);
    head[16..20].copy_from_slice(&address);
    head[20..22].copy_from_slice(&ports.0.to_be_bytes());
    head[22..24].copy_from_slice(&ports.1.to_be_bytes());
    head[24..26].copy_from_slice(&((8 + data_bytes) as u16).to_be_bytes());
    head
}

#[pyfunction]
fn send_datagrams(fd: RawFd, source: [u8; 4], datagrams: Vec<Bound<'_, PyTuple>>) -> PyResult<usize> {
    let mut sent = 0;
    for some in datagrams.chunks(MOST) {
        sent += send_some(fd, source, some)?;
    }
    Ok(sent)
}

fn send_some(fd: RawFd, source: [u8; 4], datagrams: &[Bound<'_, PyTuple>]) -> PyResult<usize> {
    // SAFETY: all of these are plain data, for which zeros are valid.
    let (mut names, mut messages, mut iovecs): (
        [libc::sockaddr_in; MOST],
        [libc::mmsghdr; MOST],
        [[libc::iovec; 2]; MOST],
    ) = unsafe { (mem::zeroed(), mem::zeroed(), mem::zeroed()) };
    let mut heads = [[0u8; OUTER_BYTES]; MOST];
    let mut bodies: Vec<Bound<'_, PyBytes>> = Vec::with_capacity(datagrams.len());
    for (index, datagram) in datagrams.iter().enumerate() {
        let (address, source_port, destination_port, tos, data): (String, u16, u16, u8, Bound<'_, PyBytes>) =
            datagram.extract()?;
        let address: Ipv4Addr =
            address.parse().map_err(|_| PyValueError::new_err(format!("{address:?} is no IPv4 address")))?;
        let length = data.as_bytes().len();
        if length > 65535 - OUTER_BYTES {
            return Err(PyValueError::new_err(format!("{length} B do not fit a datagram")));
        }
        heads[index] = outer(source, address.octets(), (source_port, destination_port), tos, length);
        names[index].sin_family = libc::AF_INET as u16;
        names[index].sin_addr.s_addr = u32::from_ne_bytes(address.octets());
        iovecs[index] = [
            libc::iovec { iov_base: heads[index].as_mut_ptr().cast(), iov_len: OUTER_BYTES },
            libc::iovec { iov_base: data.as_bytes().as_ptr().cast_mut().cast(), iov_len: length },
        ];
        let header = &mut messages[index].msg_hdr;
        header.msg_name = (&raw mut names[index]).cast();
        header.msg_namelen = mem::size_of::<libc::sockaddr_in>() as u32;
        header.msg_iov = iovecs[index].as_mut_ptr();
        header.msg_iovlen = 2;
        bodies.push(data);
    }
    let sent = send_messages(fd, &mut messages[..datagrams.len()]);
    drop(bodies);
    Ok(sent)
}

/// How many of the messages were sent. They point to what lives until after the call.
pub fn send_messages(fd: RawFd, messages: &mut [libc::mmsghdr]) -> usize {
    let (mut at, mut sent) = (0, 0);
    while at < messages.len() {
        let (rest, count) = (messages[at..].as_mut_ptr(), messages.len() - at);
        // SAFETY: whoever fills in messages keeps alive what they point to.
        let done = unsafe { libc::sendmmsg(fd, rest, count as u32, libc::MSG_DONTWAIT) };
        if done > 0 {
            at += done as usize;
            sent += done as usize;
            continue;
        }
        match io::Error::last_os_error().raw_os_error() {
            Some(libc::EINTR) => {}
            Some(libc::EAGAIN | libc::ENOBUFS) => break,
            _ => at += 1, // this one cannot be sent at all
        }
    }
    sent
}

#[pyfunction]
fn coalesce_packets<'py>(
    py: Python<'py>,
    packets: Vec<Bound<'py, PyBytes>>,
    other: &Bound<'py, PyAny>,
) -> PyResult<Vec<Bound<'py, PyBytes>>> {
    let slices: Vec<&[u8]> = packets.iter().map(|packet| packet.as_bytes()).collect();
    let written = |write| match write {
        Write::Other(index) => {
            let packet: &Bound<'py, PyBytes> = &packets[index];
            Ok(other.call1((packet,))?.cast_into::<PyBytes>()?)
        }
        Write::Packets { mut front, parts } => {
            for (index, offset) in parts {
                front.extend_from_slice(&slices[index][offset..]);
            }
            Ok(PyBytes::new(py, &front))
        }
    };
    coalesce::coalesce(&slices).into_iter().map(written).collect()
}

#[pyfunction]
fn write_packets(fd: RawFd, packets: Vec<Bound<'_, PyBytes>>, other: &Bound<'_, PyAny>) -> PyResult<usize> {
    let slices: Vec<&[u8]> = packets.iter().map(|packet| packet.as_bytes()).collect();
    let mut refused = 0;
    for write in coalesce::coalesce(&slices) {
        let mut iovecs = Vec::with_capacity(50);
        let piece =
            |bytes: &[u8]| libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        // SAFETY (all): writev reads what the iovecs point to, which lives until after the call.
        let done = match write {
            Write::Packets { front, parts } => {
                iovecs.push(piece(&front));
                iovecs.extend(parts.iter().map(|&(index, offset)| piece(&slices[index][offset..])));
                if iovecs.len() > 1024 {
                    // more pieces than one call takes: many tiny segments
                    let whole: Vec<u8> = parts.iter().fold(front, |mut whole, &(index, offset)| {
                        whole.extend_from_slice(&slices[index][offset..]);
                        whole
                    });
                    unsafe { libc::write(fd, whole.as_ptr().cast(), whole.len()) }
                } else {
                    unsafe { libc::writev(fd, iovecs.as_ptr(), iovecs.len() as i32) }
                }
            }
            Write::Other(index) => {
                let whole = other.call1((&packets[index],))?.cast_into::<PyBytes>()?;
                let whole = whole.as_bytes();
                unsafe { libc::write(fd, whole.as_ptr().cast(), whole.len()) }
            }
        };
        refused += usize::from(done < 0);
    }
    Ok(refused)
}

/// Reads what the host sends from a TUN device with IFF_VNET_HDR.
#[pyclass]
pub struct TunReader {
    buffer: Vec<u8>,
    /// The class of what tells of an inner packet: a named tuple.
    seen: Py<PyType>,
}

const GSO_ECN: u8 = 0x80;
const NEEDS_CHECKSUM: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;

/// Whether the checksum that the kernel left unfinished is of a kind that is finished when the packet is written.
fn is_known_checksum(packet: &[u8]) -> bool {
    packet.len() >= inner::TRANSPORT
        && matches!(packet[9], TCP | UDP)
        && packet[6] & 0x3F == 0
        && packet[7] == 0
}

#[pymethods]
impl TunReader {
    #[new]
    fn new(seen: &Bound<'_, PyType>) -> PyResult<Self> {
        if !seen.is_subclass_of::<PyTuple>()? {
            return Err(PyValueError::new_err("what tells of a packet must be a tuple"));
        }
        Ok(TunReader { buffer: vec![0; coalesce::VNET_BYTES + 65536], seen: seen.clone().unbind() })
    }

    fn read<'py>(&mut self, py: Python<'py>, fd: RawFd) -> PyResult<Option<Bound<'py, PyTuple>>> {
        // SAFETY: the kernel writes at most as many bytes as there are.
        let length = unsafe { libc::read(fd, self.buffer.as_mut_ptr().cast(), self.buffer.len()) };
        if length < 0 {
            let error = io::Error::last_os_error();
            return match error.raw_os_error() {
                Some(libc::EAGAIN | libc::EINTR) => Ok(None),
                _ => Err(error.into()),
            };
        }
        let data = &self.buffer[..length as usize];
        let known = data.split_at_checked(coalesce::VNET_BYTES).and_then(|(header, packet)| {
            let size = i32::from(u16::from_ne_bytes([header[4], header[5]]));
            let size = match header[1] & !GSO_ECN {
                coalesce::GSO_NONE if header[0] & NEEDS_CHECKSUM != 0 && !is_known_checksum(packet) => {
                    return None
                }
                coalesce::GSO_NONE => 0,
                coalesce::GSO_TCP4 if size > 0 => size,
                _ => return None,
            };
            Some((packet, size, inner::look(packet)?))
        });
        let Some((packet, size, seen)) = known else {
            return Ok(Some((PyBytes::new(py, data), -1, py.None()).into_pyobject(py)?));
        };
        let fields = (
            4,
            PyBytes::new(py, &seen.flow),
            PyBytes::new(py, &packet[16..20]),
            packet[9],
            inner::TRANSPORT,
            seen.payload,
            seen.control,
            seen.push,
            seen.opening,
        );
        let seen = py.get_type::<PyTuple>().call_method1("__new__", (self.seen.bind(py), fields))?;
        Ok(Some((PyBytes::new(py, packet), size, seen).into_pyobject(py)?))
    }
}

/// Add all of this to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<DatagramReceiver>()?;
    module.add_class::<TunReader>()?;
    module.add_function(wrap_pyfunction!(crc32c_of, module)?)?;
    module.add_function(wrap_pyfunction!(encode_datagram, module)?)?;
    module.add_function(wrap_pyfunction!(send_datagrams, module)?)?;
    module.add_function(wrap_pyfunction!(coalesce_packets, module)?)?;
    module.add_function(wrap_pyfunction!(write_packets, module)?)
}
