//! What the host agents' shells move: datagrams between the underlay's sockets and Python, packets to the TUN device.
//!
//! Nothing here waits, so the interpreter is held throughout: to give it away costs more than a call takes.

use std::io;
use std::mem;
use std::net::Ipv4Addr;
use std::os::fd::RawFd;
use std::sync::{Arc, Mutex};

use datapath::coalesce::{self, Write};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::inbox::{self, Came, Inbox};
use crate::texts::{text_of, Texts};

/// Messages of one call of the kernel.
pub const MOST: usize = 64;
pub const OUTER_BYTES: usize = 28;
const OUTER_TTL: u8 = 64;

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

    /// What waits at a socket, one by one: data, source address, source port, TOS.
    fn datagrams<'py>(&mut self, py: Python<'py>, fd: RawFd) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        let mut inbox = inbox::open(&self.inbox);
        inbox.fetch(fd)?;
        let texts = &mut self.texts;
        let tuple = |(came, data): (Came, &[u8])| {
            (PyBytes::new(py, data), text_of(py, texts, came.address), came.port, came.tos).into_pyobject(py)
        };
        inbox.take().map(tuple).collect()
    }
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
        // SAFETY: the caller keeps alive what they point to.
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

/// Add all of this to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<DatagramReceiver>()?;
    module.add_function(wrap_pyfunction!(send_datagrams, module)?)?;
    module.add_function(wrap_pyfunction!(write_packets, module)?)
}
