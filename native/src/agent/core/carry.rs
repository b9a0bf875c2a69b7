//! Packets between the kernel and the core, without the interpreter: what an agent does nearly all of the time.

use std::io;
use std::os::fd::RawFd;
use std::sync::{Arc, Mutex};

use agent::host::{Core, Datagram, FromUnderlay};
use pyo3::prelude::*;

use crate::agent::core::{held, HostCore};
use crate::datapath::{deliver, send, DatagramReceiver, Leaving};
use crate::inbox::{open, Arrival, Inbox};
use crate::tun::{known, TunReader, Waiting};

const MOST_EVENTS: usize = 32;
const MOST_READS: u32 = 4;
/// After so many turns that have read the device without sleep the next one reads all that waits there.
const BUSY_TURNS: u32 = 2;
/// Less than a process takes to fall asleep and wake.
const AT_ONCE_S: f64 = 3e-6;
const LONGEST_MS: f64 = 1e9;

/// Moves packets between a TUN device with IFF_VNET_HDR, the underlay's sockets and the core.
#[pyclass]
pub struct Carrier {
    waiting: Arc<Mutex<Waiting>>,
    inbox: Arc<Mutex<Inbox>>,
    fds: Descriptors,
    source: [u8; 4],
    recent: Recent,
    totals: Totals,
}

/// What the last turns were. A lone packet goes on soonest if no second one is asked for: a read that finds nothing costs
/// half of one that does.
#[derive(Clone, Copy, Default)]
struct Recent {
    /// Turns in a row that have read the device, without sleep between them.
    device: u32,
    /// Whether a socket has been read since the last sleep.
    socket: bool,
    /// Whether the last turn has written to the device.
    wrote: bool,
    /// Whether the host's kernel had answered when the device was last written to: it answers a ping, or a segment, within
    /// the write.
    answers: bool,
}

impl Recent {
    /// Returns what counts after sleep.
    fn asleep(self) -> Recent {
        Recent { answers: self.answers, ..Recent::default() }
    }
}

/// What packets pass through.
#[derive(Clone)]
struct Descriptors {
    epoll: RawFd,
    tun: RawFd,
    raw: RawFd,
    /// By descriptor: whether it is a socket of the underlay that receives.
    sockets: Vec<bool>,
}

impl Descriptors {
    fn is_socket(&self, fd: RawFd) -> bool {
        usize::try_from(fd).is_ok_and(|fd| self.sockets.get(fd) == Some(&true))
    }
}

#[derive(Clone, Copy, Default)]
struct Totals {
    unsent: usize,
    refused: usize,
}

#[pymethods]
impl Carrier {
    /// Makes a carrier of reader and descriptor of the device, receiver and descriptors of the underlay (`raw`, then
    /// `sockets`), our address there, and an epoll that watches all of them.
    #[new]
    fn new(
        device: (PyRef<'_, TunReader>, RawFd),
        underlay: (PyRef<'_, DatagramReceiver>, RawFd, Vec<RawFd>),
        source: [u8; 4],
        epoll: RawFd,
    ) -> Self {
        let (reader, tun) = device;
        let (receiver, raw, receiving) = underlay;
        let last = receiving.iter().copied().max().unwrap_or(-1);
        let sockets = (0..=last).map(|fd| receiving.contains(&fd)).collect();
        let (waiting, inbox) = (reader.waiting.clone(), receiver.inbox.clone());
        Carrier {
            waiting,
            inbox,
            fds: Descriptors { epoll, tun, raw, sockets },
            source,
            recent: Recent::default(),
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

    /// Returns the number of datagrams for which the socket had no room, or no route.
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

/// Returns the seconds of the clock that Python's `time.monotonic` reads, rounded as there.
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
            let due = deadline.min(core.latest_timer());
            let begun = monotonic();
            let mut events = [libc::epoll_event { events: 0, u64: 0 }; MOST_EVENTS];
            let expected = self.recent.wrote && self.recent.answers;
            let count = if expected {
                events[0].u64 = self.fds.tun as u64; // without asking whether the answer is there
                1
            } else {
                match wait(self.fds.epoll, &mut events, due - begun) {
                    Ok(count) => count,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(ready),
                    Err(error) => return Err(error),
                }
            };
            let now = if expected { begun } else { monotonic() };
            if now > due {
                core.gate.late(now - due, now);
            }
            let before = if now - begun < AT_ONCE_S { self.recent } else { self.recent.asleep() };
            self.recent = Recent { device: 0, wrote: false, ..before };
            for event in &events[..count] {
                let fd = event.u64 as RawFd;
                let carried = if fd == self.fds.tun {
                    self.recent.device = before.device + 1;
                    self.recent.answers |= before.wrote;
                    self.read(core, if before.device < BUSY_TURNS { 1 } else { MOST_READS }, now)
                } else if self.fds.is_socket(fd) {
                    self.recent.socket = true;
                    self.receive(core, fd, before.socket, now)
                } else {
                    false
                };
                if !carried {
                    ready.push(fd);
                }
            }
            if now >= core.latest_timer() || core.sends() && now >= core.timer() {
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

    /// Passes what the host sends to the core, `most` reads of it. Returns false if a packet of a rare kind is still to be
    /// read.
    fn read(&mut self, core: &mut Core, most: u32, now: f64) -> bool {
        let mut waiting = open(&self.waiting);
        for reads in 0..most {
            if waiting.fetch(self.fds.tun).is_err() {
                return false; // Python meets the error again
            }
            let Some(data) = waiting.data() else {
                if reads == 0 {
                    self.recent.answers = false; // it was expected, and is not there
                }
                return true;
            };
            match known(data) {
                // what was announced of a connection was announced before it opens, and Python reads that first
                Some((_, _, seen)) if seen.opening => return false,
                Some((packet, 0, seen)) => core.packet_seen(packet, &seen, now),
                Some((packet, size, seen)) => core.super_packet_seen(packet, &seen, size as usize, now),
                None => return false,
            }
            waiting.clear();
        }
        true
    }

    /// Passes what waits at a socket to the core. `again`: one was read since the last sleep.
    fn receive(&mut self, core: &mut Core, fd: RawFd, again: bool, now: f64) -> bool {
        let mut inbox = open(&self.inbox);
        if inbox.fetch(fd, again).is_err() {
            return true; // an error about something that we sent, which is raised once
        }
        for (arrival, data) in inbox.take() {
            let Arrival { address, port: source_port, tos, .. } = arrival;
            core.receive_datagram(FromUnderlay { data, address, source_port, tos }, now);
        }
        true
    }

    fn put_out(&mut self, core: &mut Core) {
        let datagrams = core.datagrams_to_send();
        self.totals.unsent += datagrams.len() - send(self.fds.raw, self.source, &datagrams, Leaving::from);
        let packets = core.packets_to_deliver();
        self.recent.wrote = !packets.is_empty();
        self.totals.refused += match &packets[..] {
            [] => 0,
            [packet] => deliver(self.fds.tun, &[&packet[..]]),
            _ => deliver(self.fds.tun, &packets.iter().map(|packet| &**packet).collect::<Vec<_>>()),
        };
    }
}

/// Waits for events, `wait_s` at most. Returns how many there are.
fn wait(epoll: RawFd, events: &mut [libc::epoll_event; MOST_EVENTS], wait_s: f64) -> io::Result<usize> {
    let wait_ms = (wait_s * 1e3).ceil().clamp(0.0, LONGEST_MS);
    // SAFETY: the kernel writes at most as many events as there are.
    let count = unsafe { libc::epoll_wait(epoll, events.as_mut_ptr(), MOST_EVENTS as i32, wait_ms as i32) };
    usize::try_from(count).map_err(|_| io::Error::last_os_error())
}

impl<'a> From<&'a Datagram> for Leaving<'a> {
    fn from(datagram: &'a Datagram) -> Leaving<'a> {
        Leaving {
            address: datagram.address,
            ports: (datagram.source_port, datagram.destination_port),
            tos: datagram.tos,
            head: &datagram.header,
            body: &datagram.body,
        }
    }
}
