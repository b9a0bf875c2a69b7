//! Packets between the kernel and the core, without the interpreter: what an agent does nearly all of the time.

use std::io;
use std::mem;
use std::os::fd::RawFd;
use std::sync::{Arc, Mutex};

use agent::host::{Bytes, Core, Datagram, FromUnderlay};
use datapath::checksum::{field_of, pseudo_header_sum};
use datapath::coalesce::{coalesce, Write, VNET_BYTES};
use datapath::header::HEADER_BYTES;
use datapath::inner::look;
use pyo3::prelude::*;

use crate::agent::core::{held, HostCore};
use crate::datapath::{outer, send_messages, DatagramReceiver, MOST, OUTER_BYTES};
use crate::inbox::{open, Inbox};
use crate::tun::{known, TunReader, Waiting};

const MOST_EVENTS: usize = 32;
const MOST_READS: u32 = 4;
/// Pieces of one write.
const MOST_PIECES: usize = 1024;
/// Less than a process takes to fall asleep and wake.
const AT_ONCE_S: f64 = 3e-6;
const LONGEST_MS: f64 = 1e9;
const FRONT_BYTES: usize = OUTER_BYTES + HEADER_BYTES;
const NEEDS_CHECKSUM: u8 = 1;

/// Moves packets between a TUN device with IFF_VNET_HDR, the underlay's sockets and the core.
#[pyclass]
pub struct Carrier {
    waiting: Arc<Mutex<Waiting>>,
    inbox: Arc<Mutex<Inbox>>,
    fds: Descriptors,
    source: [u8; 4],
    /// Whether more was waiting when the last wake-up was over. A lone packet goes on soonest if no second one is asked for:
    /// a read that finds nothing costs half of one that does.
    busy: bool,
    totals: Totals,
}

/// What packets pass through.
#[derive(Clone)]
struct Descriptors {
    epoll: RawFd,
    tun: RawFd,
    raw: RawFd,
    sockets: Vec<RawFd>,
}

#[derive(Clone, Copy, Default)]
struct Totals {
    unsent: usize,
    refused: usize,
}

#[pymethods]
impl Carrier {
    /// Of reader and descriptor of the device, receiver and descriptors of the underlay (`raw`, then `sockets`), our
    /// address there, and an epoll that knows all of them.
    #[new]
    fn new(
        device: (PyRef<'_, TunReader>, RawFd),
        underlay: (PyRef<'_, DatagramReceiver>, RawFd, Vec<RawFd>),
        source: [u8; 4],
        epoll: RawFd,
    ) -> Self {
        let (reader, tun) = device;
        let (receiver, raw, sockets) = underlay;
        let (waiting, inbox) = (reader.waiting.clone(), receiver.inbox.clone());
        Carrier {
            waiting,
            inbox,
            fds: Descriptors { epoll, tun, raw, sockets },
            source,
            busy: false,
            totals: Totals::default(),
        }
    }

    /// Carry packets until *deadline* (seconds of the monotonic clock), until another descriptor is ready, or until the
    /// controller is to be asked, and then without having sent what was decided. Returns the descriptors that are, and the
    /// device if it gave a packet of a rare kind, which is still to be read.
    fn carry(&mut self, core: &Bound<'_, HostCore>, deadline: f64) -> PyResult<Vec<RawFd>> {
        let mut borrowed = core.borrow_mut();
        let carried = {
            let core: &mut Core = held(&mut borrowed.core);
            core_py(|| self.until(core, deadline))
        };
        borrowed.raised()?;
        Ok(carried?)
    }

    /// Send and deliver what the core has decided elsewhere.
    fn flush(&mut self, core: &Bound<'_, HostCore>) {
        let mut borrowed = core.borrow_mut();
        self.put_out(held(&mut borrowed.core));
    }

    /// Datagrams that found no room in the socket, or no route.
    #[getter]
    fn unsent(&self) -> usize {
        self.totals.unsent
    }

    /// Writes that the kernel refused.
    #[getter]
    fn refused(&self) -> usize {
        self.totals.refused
    }
}

fn core_py<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    Python::attach(|py| py.detach(work))
}

/// Seconds of the clock that Python's `time.monotonic` reads, rounded as there.
fn monotonic() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes into `time`; this clock is always there.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    (time.tv_sec * 1_000_000_000 + time.tv_nsec) as f64 / 1e9
}

impl Carrier {
    fn until(&mut self, core: &mut Core, deadline: f64) -> io::Result<Vec<RawFd>> {
        let mut ready = Vec::new();
        loop {
            let due = deadline.min(core.timer());
            let begun = monotonic();
            let wait_ms = ((due - begun) * 1e3).ceil().clamp(0.0, LONGEST_MS);
            let mut events = [libc::epoll_event { events: 0, u64: 0 }; MOST_EVENTS];
            // SAFETY: the kernel writes at most as many events as there are.
            let count = unsafe {
                libc::epoll_wait(self.fds.epoll, events.as_mut_ptr(), MOST_EVENTS as i32, wait_ms as i32)
            };
            if count < 0 {
                let error = io::Error::last_os_error();
                return if error.raw_os_error() == Some(libc::EINTR) { Ok(ready) } else { Err(error) };
            }
            let now = monotonic();
            self.busy = now - begun < AT_ONCE_S;
            if now > due {
                core.gate.late(now - due, now);
            }
            for event in &events[..count as usize] {
                let fd = event.u64 as RawFd;
                let carried = if fd == self.fds.tun {
                    self.read(core, now)
                } else {
                    self.fds.sockets.contains(&fd) && self.receive(core, fd, now)
                };
                if !carried {
                    ready.push(fd);
                }
            }
            if now >= core.timer() {
                core.handle_timer(now);
            }
            if core.gate.has_messages() {
                return Ok(ready); // before the packets: while they wake others, the controller decides
            }
            self.put_out(core);
            if !ready.is_empty() || now >= deadline {
                return Ok(ready);
            }
        }
    }

    /// Whether all that the host had to send is with the core; if not, something rare is still to be read.
    fn read(&mut self, core: &mut Core, now: f64) -> bool {
        let mut waiting = open(&self.waiting);
        for _ in 0..if self.busy { MOST_READS } else { 1 } {
            if waiting.fetch(self.fds.tun).is_err() {
                return false; // Python meets the error again
            }
            let Some(data) = waiting.data() else { return true };
            match known(data) {
                // what was announced of a connection was announced before it opens, and Python reads that first
                Some((_, _, seen)) if seen.opening => return false,
                Some((packet, 0, _)) => core.packet_from_host(packet, now),
                Some((packet, size, _)) => core.super_packet_from_host(packet, size as usize, now),
                None => return false,
            }
            waiting.clear();
        }
        true
    }

    fn receive(&mut self, core: &mut Core, fd: RawFd, now: f64) -> bool {
        let mut inbox = open(&self.inbox);
        if inbox.fetch(fd).is_err() {
            return true; // an error about something that we sent, which is raised once
        }
        for (came, data) in inbox.take() {
            let datagram =
                FromUnderlay { data, address: came.address, source_port: came.port, tos: came.tos };
            core.receive_datagram(datagram, now);
        }
        true
    }

    fn put_out(&mut self, core: &mut Core) {
        let datagrams = core.datagrams_to_send();
        for some in datagrams.chunks(MOST) {
            let sent = match some.len() {
                1 => send::<1>(self.fds.raw, self.source, some),
                _ => send::<MOST>(self.fds.raw, self.source, some),
            };
            self.totals.unsent += some.len() - sent;
        }
        let packets = core.packets_to_deliver();
        if !packets.is_empty() {
            self.totals.refused += deliver(self.fds.tun, &packets);
        }
    }
}

/// Returns how many datagrams, N at most, found room.
fn send<const N: usize>(fd: RawFd, source: [u8; 4], datagrams: &[Datagram]) -> usize {
    // SAFETY: all of these are plain data, for which zeros are valid.
    let (mut names, mut messages, mut pieces): (
        [libc::sockaddr_in; N],
        [libc::mmsghdr; N],
        [[libc::iovec; 2]; N],
    ) = unsafe { (mem::zeroed(), mem::zeroed(), mem::zeroed()) };
    let mut fronts = [[0u8; FRONT_BYTES]; N];
    for (index, datagram) in datagrams.iter().enumerate() {
        let ports = (datagram.source_port, datagram.destination_port);
        let bytes = HEADER_BYTES + datagram.body.len();
        let head = outer(source, datagram.address, ports, datagram.tos, bytes);
        fronts[index][..OUTER_BYTES].copy_from_slice(&head);
        fronts[index][OUTER_BYTES..].copy_from_slice(&datagram.header);
        names[index].sin_family = libc::AF_INET as u16;
        names[index].sin_addr.s_addr = u32::from_ne_bytes(datagram.address);
        names[index].sin_port = datagram.destination_port.to_be(); // which a raw socket does not look at
        let body = &datagram.body;
        pieces[index] = [
            libc::iovec { iov_base: fronts[index].as_mut_ptr().cast(), iov_len: FRONT_BYTES },
            libc::iovec { iov_base: body.as_ptr().cast_mut().cast(), iov_len: body.len() },
        ];
        let header = &mut messages[index].msg_hdr;
        header.msg_name = (&raw mut names[index]).cast();
        header.msg_namelen = mem::size_of::<libc::sockaddr_in>() as u32;
        header.msg_iov = pieces[index].as_mut_ptr();
        header.msg_iovlen = 2;
    }
    send_messages(fd, &mut messages[..datagrams.len()])
}

/// How many writes the kernel refused.
fn deliver(fd: RawFd, packets: &[Bytes]) -> usize {
    let slices: Vec<&[u8]> = packets.iter().map(|packet| &**packet).collect();
    let mut refused = 0;
    for write in coalesce(&slices) {
        let (front, parts) = match write {
            Write::Packets { front, parts } => (front, parts),
            Write::Other(index) => (whole(slices[index]), Vec::new()),
        };
        let mut pieces: Vec<&[u8]> = vec![&front];
        pieces.extend(parts.iter().map(|&(index, offset)| &slices[index][offset..]));
        let joined: Vec<u8>;
        if pieces.len() > MOST_PIECES {
            joined = pieces.concat();
            pieces = vec![&joined];
        }
        let iovecs: Vec<libc::iovec> = pieces
            .iter()
            .map(|piece| libc::iovec { iov_base: piece.as_ptr().cast_mut().cast(), iov_len: piece.len() })
            .collect();
        // SAFETY: writev reads what the iovecs point to, which lives until after the call.
        refused += usize::from(unsafe { libc::writev(fd, iovecs.as_ptr(), iovecs.len() as i32) } < 0);
    }
    refused
}

/// Header and packet for the device, of a packet of a rare kind whose checksum the datagram's CRC has made needless.
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
