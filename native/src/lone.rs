//! The wait for something to do, in which lone packets pass by what was planned (datapath/src/lone.rs).
//!
//! While nothing else happens, a packet from the host leaves, and one from a peer is delivered, without the
//! interpreter. It hears of them when something else happens or a short time has passed.

use std::collections::HashMap;
use std::io;
use std::mem;
use std::os::fd::RawFd;
use std::sync::{Arc, Mutex};

use datapath::coalesce::{self, Write};
use datapath::header::HEADER_BYTES;
use datapath::inner::{Key, Seen};
use datapath::lone::{Leaving, Peer, Plans, Ports, Receive, Send, Way};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyType};

use crate::datapath::{items_of, outer, send_messages, text_of, DatagramReceiver, Texts, OUTER_BYTES};
use crate::inbox::{open, Came, Inbox};
use crate::tun::{known, seen_by, TunReader, Waiting};

const MOST_EVENTS: usize = 32;
/// Passages of which the interpreter has not heard.
const MOST_PASSED: usize = 64;
const LONGEST_MS: f64 = 1e9;
/// A datagram so long after the one before is taken to be alone: to ask for more would delay it.
const APART_S: f64 = 1e-4;

/// What passed, and when.
enum Passed {
    Left { leaving: Leaving, seen: Seen, packet: Vec<u8>, sent: bool, now: f64 },
    Came { came: Came, datagram: Vec<u8>, written: bool, now: f64 },
}

impl Passed {
    fn now(&self) -> f64 {
        match self {
            Passed::Left { now, .. } | Passed::Came { now, .. } => *now,
        }
    }
}

#[pyclass]
pub struct LonePassage {
    plans: Plans,
    waiting: Arc<Mutex<Waiting>>,
    inbox: Arc<Mutex<Inbox>>,
    seen: Py<PyType>,
    tun: RawFd,
    raw: RawFd,
    sockets: Vec<RawFd>,
    source: [u8; 4],
    passed: Vec<Passed>,
    /// When the last datagram was received here.
    came: f64,
    texts: Texts,
}

type WayFields = (u8, u8, Option<u16>, usize);
type PeerFields = ([u8; 4], u32, u32, u32, u32);
type SendFields = (Key, usize, u32, u16, u32, u64, Option<WayFields>, Option<WayFields>);

fn way((flags, tos, port, turn): WayFields) -> Way {
    Way { flags, tos, ports: port.map_or(Ports::Turn(turn), Ports::Always) }
}

#[pymethods]
impl LonePassage {
    #[new]
    #[allow(clippy::too_many_arguments)] // what the agent has
    fn new(
        py: Python<'_>,
        reader: &TunReader,
        receiver: &DatagramReceiver,
        tun: RawFd,
        raw: RawFd,
        sockets: Vec<RawFd>,
        source: [u8; 4],
        session: u32,
        mtu: usize,
    ) -> Self {
        LonePassage {
            plans: Plans { session, mtu, ..Plans::default() },
            waiting: reader.waiting.clone(),
            inbox: receiver.inbox.clone(),
            seen: reader.seen.clone_ref(py),
            tun,
            raw,
            sockets,
            source,
            passed: Vec::with_capacity(MOST_PASSED),
            came: 0.0,
            texts: HashMap::new(),
        }
    }

    fn plan(
        &mut self,
        peers: Vec<PeerFields>,
        turns: Vec<Vec<u16>>,
        sends: Vec<SendFields>,
        receives: Vec<(usize, u32, Key, u32)>,
    ) -> PyResult<()> {
        let turned = |way: &Option<WayFields>| way.is_some_and(|way| way.2.is_none() && way.3 >= turns.len());
        if sends.iter().any(|send| send.1 >= peers.len() || turned(&send.6) || turned(&send.7))
            || receives.iter().any(|receive| receive.0 >= peers.len())
        {
            return Err(PyValueError::new_err("a plan names a peer or a turn that is not there"));
        }
        let plans = &mut self.plans;
        plans.clear();
        plans.peers.extend(peers.into_iter().map(|(address, number, session, newest, room)| Peer {
            address,
            number,
            session,
            newest,
            room,
        }));
        plans.turns.extend(turns.into_iter().map(Into::into));
        plans.sends.extend(sends.into_iter().map(
            |(key, peer, flow, destination_port, position, budget, control, data)| Send {
                key,
                peer,
                flow,
                destination_port,
                position,
                budget,
                control: control.map(way),
                data: data.map(way),
            },
        ));
        plans.receives.extend(receives.into_iter().map(|(peer, flow, key, position)| Receive {
            peer,
            flow,
            key,
            position,
        }));
        Ok(())
    }

    fn wait(&mut self, py: Python<'_>, epoll: RawFd, timeout_s: f64, grace_s: f64) -> PyResult<Vec<RawFd>> {
        Ok(py.detach(|| self.ready(epoll, timeout_s, grace_s))?)
    }

    fn tell(&mut self, py: Python<'_>, left: &Bound<'_, PyAny>, came: &Bound<'_, PyAny>) -> PyResult<usize> {
        let passed = mem::take(&mut self.passed);
        let count = passed.len();
        for one in passed {
            match one {
                Passed::Left { leaving, seen, packet, sent, now } => {
                    let bytes = HEADER_BYTES + packet.len();
                    let datagram = PyBytes::new_with(py, bytes, |datagram| {
                        datagram[..HEADER_BYTES].copy_from_slice(&leaving.header.encode(&packet));
                        datagram[HEADER_BYTES..].copy_from_slice(&packet);
                        Ok(())
                    })?;
                    let outgoing = (
                        text_of(py, &mut self.texts, leaving.address),
                        leaving.source_port,
                        leaving.destination_port,
                        leaving.tos,
                        datagram,
                    );
                    let seen = seen_by(py, self.seen.bind(py), &packet, &seen)?;
                    left.call1((PyBytes::new(py, &packet), seen, outgoing, sent, now))?;
                }
                Passed::Came { came: known, datagram, written, now } => {
                    let packet = PyBytes::new(py, &datagram[HEADER_BYTES..]);
                    let one = [(known, &datagram[..])].into_iter();
                    let items = items_of(py, &mut self.texts, one)?;
                    came.call1((items.get_item(0)?, packet, written, now))?;
                }
            }
        }
        Ok(count)
    }
}

/// Seconds of the clock that Python's `time.monotonic` reads, rounded as there.
fn monotonic() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes into `time`; this clock is always there.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    (time.tv_sec * 1_000_000_000 + time.tv_nsec) as f64 / 1e9
}

impl LonePassage {
    /// Descriptors at which Python has something to do.
    fn ready(&mut self, epoll: RawFd, timeout_s: f64, grace_s: f64) -> io::Result<Vec<RawFd>> {
        let deadline = monotonic() + timeout_s;
        let mut ready = Vec::new();
        loop {
            let until = self.passed.first().map_or(deadline, |first| deadline.min(first.now() + grace_s));
            let wait_ms = ((until - monotonic()) * 1e3).ceil().clamp(0.0, LONGEST_MS);
            let mut events = [libc::epoll_event { events: 0, u64: 0 }; MOST_EVENTS];
            // SAFETY: the kernel writes at most as many events as there are.
            let count =
                unsafe { libc::epoll_wait(epoll, events.as_mut_ptr(), MOST_EVENTS as i32, wait_ms as i32) };
            if count < 0 {
                let error = io::Error::last_os_error();
                return if error.raw_os_error() == Some(libc::EINTR) { Ok(ready) } else { Err(error) };
            }
            let now = monotonic();
            for event in &events[..count as usize] {
                let fd = event.u64 as RawFd;
                let passed = if fd == self.tun {
                    self.leave(now)
                } else {
                    self.sockets.contains(&fd) && self.come(fd, now)
                };
                if !passed {
                    ready.push(fd);
                }
            }
            if !ready.is_empty() || count == 0 || now >= until || self.passed.len() >= MOST_PASSED {
                return Ok(ready);
            }
        }
    }

    /// Whether what the host had to send is on its way; if not, it is still to be read.
    fn leave(&mut self, now: f64) -> bool {
        if self.plans.sends.is_empty() {
            return false;
        }
        let mut waiting = open(&self.waiting);
        if waiting.fetch(self.tun).is_err() {
            return false; // Python meets the error again
        }
        let Some(data) = waiting.data() else { return true };
        let Some((packet, 0, _)) = known(data) else { return false };
        let Some((leaving, seen)) = self.plans.leave(packet, (now * 1e6) as u64 as u32) else { return false };
        let sent = send_one(self.raw, self.source, &leaving, packet);
        self.passed.push(Passed::Left { leaving, seen, packet: packet.to_vec(), sent, now });
        waiting.clear();
        true
    }

    /// Whether what came to a socket is delivered; if not, it is still to be received.
    fn come(&mut self, fd: RawFd, now: f64) -> bool {
        if self.plans.receives.is_empty() {
            return false;
        }
        let mut inbox = open(&self.inbox);
        if now - self.came > APART_S {
            inbox.expect_one();
        }
        self.came = now;
        if inbox.fetch(fd).is_err() {
            return true; // an error about something that we sent, which is told once
        }
        if inbox.is_empty() {
            return true;
        }
        let Some((came, datagram)) = inbox.lone() else { return false };
        let Some(packet) = self.plans.come(came.address, came.tos, datagram) else { return false };
        let written = write_one(self.tun, packet);
        self.passed.push(Passed::Came { came, datagram: datagram.to_vec(), written, now });
        inbox.clear();
        true
    }
}

fn send_one(fd: RawFd, source: [u8; 4], leaving: &Leaving, packet: &[u8]) -> bool {
    let mut head = [0; OUTER_BYTES + HEADER_BYTES];
    let ports = (leaving.source_port, leaving.destination_port);
    let bytes = HEADER_BYTES + packet.len();
    head[..OUTER_BYTES].copy_from_slice(&outer(source, leaving.address, ports, leaving.tos, bytes));
    head[OUTER_BYTES..].copy_from_slice(&leaving.header.encode(packet));
    // SAFETY (both): plain data, for which zeros are valid.
    let mut name: libc::sockaddr_in = unsafe { mem::zeroed() };
    let mut message: libc::mmsghdr = unsafe { mem::zeroed() };
    name.sin_family = libc::AF_INET as u16;
    name.sin_addr.s_addr = u32::from_ne_bytes(leaving.address);
    name.sin_port = leaving.destination_port.to_be(); // which a raw socket does not look at
    let mut pieces = [
        libc::iovec { iov_base: head.as_mut_ptr().cast(), iov_len: head.len() },
        libc::iovec { iov_base: packet.as_ptr().cast_mut().cast(), iov_len: packet.len() },
    ];
    message.msg_hdr.msg_name = (&raw mut name).cast();
    message.msg_hdr.msg_namelen = mem::size_of::<libc::sockaddr_in>() as u32;
    message.msg_hdr.msg_iov = pieces.as_mut_ptr();
    message.msg_hdr.msg_iovlen = 2;
    send_messages(fd, &mut [message]) == 1
}

fn write_one(fd: RawFd, packet: &[u8]) -> bool {
    let writes = coalesce::coalesce(&[packet]);
    let [Write::Packets { front, parts }] = &writes[..] else { return false };
    let behind = parts.first().map_or(&[][..], |&(_, offset)| &packet[offset..]);
    let piece =
        |bytes: &[u8]| libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let pieces = [piece(front), piece(behind)];
    // SAFETY: writev reads what the pieces point to, which lives until after the call.
    unsafe { libc::writev(fd, pieces.as_ptr(), 2) >= 0 }
}

/// Add this to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<TunReader>()?;
    module.add_class::<LonePassage>()
}
