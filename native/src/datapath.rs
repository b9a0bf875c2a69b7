//! What the host agents' shells move: datagrams between the underlay's sockets and Python, packets to the TUN device.
//!
//! Nothing here waits, so the interpreter is held throughout: to give it away costs more than a call takes.

use std::io;
use std::mem;
use std::net::Ipv4Addr;
use std::os::fd::RawFd;
use std::sync::{Arc, Mutex};

use agent::host::Bytes;
use datapath::checksum::{complete, field_of, pseudo_header_sum};
use datapath::coalesce::{coalesce, lone, Write, NEEDS_CHECKSUM, VNET_BYTES};
use datapath::header::HEADER_BYTES;
use datapath::inner::look;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::inbox::{self, Arrival, Inbox, FEW, MOST};
use crate::texts::{text_of, Texts};

const OUTER_BYTES: usize = 28;
const FRONT_BYTES: usize = OUTER_BYTES + HEADER_BYTES;
const OUTER_TTL: u8 = 64;
/// Pieces of one write.
const MOST_PIECES: usize = 1024;

#[pyclass]
pub struct DatagramReceiver {
    pub inbox: Arc<Mutex<Inbox>>,
    texts: Texts,
}

#[pymethods]
impl DatagramReceiver {
    #[new]
    fn new(datagram_bytes: usize) -> PyResult<Self> {
        if !(1..=65535).contains(&datagram_bytes) {
            return Err(PyValueError::new_err(format!("datagrams of {datagram_bytes} B cannot be")));
        }
        Ok(DatagramReceiver { inbox: Arc::new(Mutex::new(Inbox::new(datagram_bytes))), texts: Texts::new() })
    }

    /// Reads the datagrams that wait at a socket, each as data, source address, source port, TOS.
    fn datagrams<'py>(&mut self, py: Python<'py>, fd: RawFd) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        let mut inbox = inbox::open(&self.inbox);
        inbox.fetch(fd, true)?;
        let texts = &mut self.texts;
        let tuple = |(arrival, data): (Arrival, Bytes)| {
            (PyBytes::new(py, &data), text_of(py, texts, arrival.address), arrival.port, arrival.tos)
                .into_pyobject(py)
        };
        inbox.take().map(tuple).collect()
    }
}

/// A datagram that leaves.
pub struct Leaving<'a> {
    pub address: [u8; 4],
    /// Source and destination.
    pub ports: (u16, u16),
    pub tos: u8,
    /// Its first bytes, HEADER_BYTES at most.
    pub head: &'a [u8],
    pub body: &'a [u8],
}

/// Returns IPv4 and UDP headers; the kernel fills in the IPv4 checksum, UDP has none, for the datagram has its CRC.
fn outer(source: [u8; 4], leaving: &Leaving<'_>) -> [u8; OUTER_BYTES] {
    let Leaving { address, ports, tos, .. } = *leaving;
    let data_bytes = leaving.head.len() + leaving.body.len();
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

/// Sends datagrams; returns for how many of them there was room.
pub fn send<'a, T>(
    fd: RawFd,
    source: [u8; 4],
    datagrams: &'a [T],
    leaving: impl Fn(&'a T) -> Leaving<'a>,
) -> usize {
    let some = |some: &'a [T]| match some.len() {
        1 => send_some::<1, T>(fd, source, some, &leaving),
        2..=FEW => send_some::<FEW, T>(fd, source, some, &leaving),
        _ => send_some::<MOST, T>(fd, source, some, &leaving),
    };
    datagrams.chunks(MOST).map(some).sum()
}

fn send_some<'a, const N: usize, T>(
    fd: RawFd,
    source: [u8; 4],
    datagrams: &'a [T],
    leaving: &impl Fn(&'a T) -> Leaving<'a>,
) -> usize {
    // SAFETY: all of these are plain data, for which zeros are valid.
    let (mut names, mut messages, mut pieces): (
        [libc::sockaddr_in; N],
        [libc::mmsghdr; N],
        [[libc::iovec; 2]; N],
    ) = unsafe { (mem::zeroed(), mem::zeroed(), mem::zeroed()) };
    let mut fronts = [[0u8; FRONT_BYTES]; N];
    for (index, datagram) in datagrams.iter().enumerate() {
        let datagram = leaving(datagram);
        let front = &mut fronts[index][..OUTER_BYTES + datagram.head.len()];
        front[..OUTER_BYTES].copy_from_slice(&outer(source, &datagram));
        front[OUTER_BYTES..].copy_from_slice(datagram.head);
        names[index].sin_family = libc::AF_INET as u16;
        names[index].sin_addr.s_addr = u32::from_ne_bytes(datagram.address);
        names[index].sin_port = datagram.ports.1.to_be(); // which a raw socket does not look at
        pieces[index] = [piece(front), piece(datagram.body)];
        let header = &mut messages[index].msg_hdr;
        header.msg_name = (&raw mut names[index]).cast();
        header.msg_namelen = mem::size_of::<libc::sockaddr_in>() as u32;
        header.msg_iov = pieces[index].as_mut_ptr();
        header.msg_iovlen = 2;
    }
    send_messages(fd, &mut messages[..datagrams.len()])
}

/// Returns a vector of bytes that the kernel only reads.
fn piece(bytes: &[u8]) -> libc::iovec {
    libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() }
}

/// Sends messages, which must point to what lives until after the call; returns how many were sent.
fn send_messages(fd: RawFd, messages: &mut [libc::mmsghdr]) -> usize {
    let (mut position, mut sent) = (0, 0);
    while position < messages.len() {
        let (rest, count) = (messages[position..].as_mut_ptr(), messages.len() - position);
        // SAFETY: the caller keeps alive what they point to.
        let done = unsafe { libc::sendmmsg(fd, rest, count as u32, libc::MSG_DONTWAIT) };
        if done > 0 {
            position += done as usize;
            sent += done as usize;
            continue;
        }
        match io::Error::last_os_error().raw_os_error() {
            Some(libc::EINTR) => {}
            Some(libc::EAGAIN | libc::ENOBUFS) => break,
            _ => position += 1, // this one cannot be sent at all
        }
    }
    sent
}

#[pyfunction]
fn send_datagrams(fd: RawFd, source: [u8; 4], datagrams: Vec<Bound<'_, PyTuple>>) -> PyResult<usize> {
    let datagrams: Vec<(Ipv4Addr, u16, u16, u8, Bound<'_, PyBytes>)> =
        datagrams.iter().map(read_datagram).collect::<PyResult<_>>()?;
    Ok(send(fd, source, &datagrams, |(address, source_port, destination_port, tos, data)| Leaving {
        address: address.octets(),
        ports: (*source_port, *destination_port),
        tos: *tos,
        head: &[],
        body: data.as_bytes(),
    }))
}

fn read_datagram<'py>(
    datagram: &Bound<'py, PyTuple>,
) -> PyResult<(Ipv4Addr, u16, u16, u8, Bound<'py, PyBytes>)> {
    let (address, source_port, destination_port, tos, data): (String, _, _, _, Bound<'py, PyBytes>) =
        datagram.extract()?;
    let address =
        address.parse().map_err(|_| PyValueError::new_err(format!("{address:?} is no IPv4 address")))?;
    let length = data.as_bytes().len();
    if length > 65535 - OUTER_BYTES {
        return Err(PyValueError::new_err(format!("{length} B do not fit a datagram")));
    }
    Ok((address, source_port, destination_port, tos, data))
}

#[pyfunction]
fn write_packets(fd: RawFd, packets: Vec<Bound<'_, PyBytes>>) -> usize {
    let slices: Vec<&[u8]> = packets.iter().map(|packet| packet.as_bytes()).collect();
    deliver(fd, &slices)
}

#[pyfunction]
fn complete_checksum<'py>(py: Python<'py>, packet: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    let seen = look(packet).map_err(|malformed| PyValueError::new_err(malformed.text))?;
    PyBytes::new_with(py, packet.len(), |bytes| {
        bytes.copy_from_slice(packet);
        complete(bytes, &seen);
        Ok(())
    })
}

/// Write sound packets to a TUN device with IFF_VNET_HDR; return how many writes the kernel refused.
pub fn deliver(fd: RawFd, packets: &[&[u8]]) -> usize {
    if let [packet] = packets {
        if let Some(lone) = lone(packet) {
            return usize::from(!write_pieces(fd, &[piece(lone.front()), piece(&packet[lone.rest..])]));
        }
    }
    let mut refused = 0;
    let mut pieces: Vec<libc::iovec> = Vec::with_capacity(packets.len() + 1);
    for write in coalesce(packets) {
        let (front, parts) = match write {
            Write::Packets { front, parts } => (front, parts),
            Write::Other(index) => (whole(packets[index]), Vec::new()),
        };
        pieces.clear();
        pieces.push(piece(&front));
        let parts = parts.iter().map(|&(index, offset)| &packets[index][offset..]);
        let joined: Vec<u8>;
        if parts.len() < MOST_PIECES {
            pieces.extend(parts.map(piece));
        } else {
            joined = [&*front].into_iter().chain(parts).collect::<Vec<_>>().concat();
            pieces[0] = piece(&joined);
        }
        refused += usize::from(!write_pieces(fd, &pieces));
    }
    refused
}

/// Writes pieces, which must point to what lives until after the call; returns false if the kernel refuses.
fn write_pieces(fd: RawFd, pieces: &[libc::iovec]) -> bool {
    // SAFETY: the caller keeps alive what they point to.
    unsafe { libc::writev(fd, pieces.as_ptr(), pieces.len() as i32) >= 0 }
}

/// Returns header and packet for the device, of a packet of a rare kind whose checksum the datagram's CRC has made
/// needless.
fn whole(packet: &[u8]) -> Vec<u8> {
    let mut data = vec![0; VNET_BYTES];
    data.extend_from_slice(packet);
    let Ok(seen) = look(packet) else { return data };
    let Some(field) = field_of(&seen) else { return data };
    let transport = seen.transport;
    data[0] = NEEDS_CHECKSUM;
    data[6..8].copy_from_slice(&(transport as u16).to_ne_bytes());
    data[8..10].copy_from_slice(&(field as u16).to_ne_bytes());
    let sum = pseudo_header_sum(&seen.flow, packet.len() - transport);
    let place = VNET_BYTES + transport + field;
    data[place..place + 2].copy_from_slice(&sum.to_be_bytes());
    data
}

/// Add all of this to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<DatagramReceiver>()?;
    module.add_function(wrap_pyfunction!(send_datagrams, module)?)?;
    module.add_function(wrap_pyfunction!(complete_checksum, module)?)?;
    module.add_function(wrap_pyfunction!(write_packets, module)?)
}
