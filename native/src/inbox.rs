//! Datagrams as one call of the kernel gave them, until they are taken.

use std::collections::VecDeque;
use std::io;
use std::mem;
use std::os::fd::RawFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent::host::Bytes;
use agent::receiving::SOURCE_WINDOW;

/// Messages of one call of the kernel.
pub const MOST: usize = 64;
/// Messages for which a call's tables are small enough to be cleared each time.
pub const FEW: usize = 8;
const CONTROL_BYTES: usize = 32;
const TOS_AT: usize = 16;
/// Buffers that are lent, of which the oldest come back: what the decoder of a coded flow keeps, and a call's messages.
const MOST_LENT: usize = SOURCE_WINDOW as usize + MOST;

/// The ancillary data of one message.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
struct Control([u8; CONTROL_BYTES]);

/// What is known of a datagram beside its bytes.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    pub length: usize,
    pub address: [u8; 4],
    pub port: u16,
    pub tos: u8,
}

pub struct Inbox {
    width: usize,
    /// A datagram each. Packets are passed on in them, so one that is still held is replaced.
    slots: Vec<Arc<Vec<u8>>>,
    lent: Lent,
    arrivals: Vec<Arrival>,
    /// Datagrams to ask for the next time: a lone one is passed on soonest if no more are asked for.
    ask: usize,
}

/// Buffers that were passed on while others held their packets, the oldest first: decoders forget in that order.
#[derive(Default)]
struct Lent(VecDeque<Arc<Vec<u8>>>);

impl Lent {
    /// Returns a buffer that nothing holds: the oldest, or else a new one.
    fn spare(&mut self, width: usize) -> Arc<Vec<u8>> {
        if let Some(mut oldest) = self.0.pop_front() {
            if Arc::get_mut(&mut oldest).is_some() {
                return oldest;
            }
            if self.0.len() + 1 < MOST_LENT {
                self.0.push_back(oldest); // an idle flow has it: behind those of flows that go on
            }
        }
        Arc::new(vec![0; width])
    }
}

/// Locks an inbox, which only one thread uses at a time; a panic leaves nothing half done in it.
pub fn open<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Inbox {
    pub fn new(datagram_bytes: usize) -> Inbox {
        let width = (datagram_bytes + 1).next_multiple_of(64);
        let slots = (0..MOST).map(|_| Arc::new(vec![0; width])).collect();
        Inbox { width, slots, lent: Lent::default(), arrivals: Vec::with_capacity(MOST), ask: 1 }
    }

    /// Read what waits at a socket, unless there is something already. `again`: more than one datagram came at once.
    pub fn fetch(&mut self, fd: RawFd, again: bool) -> io::Result<()> {
        if !self.arrivals.is_empty() {
            return Ok(());
        }
        match self.ask {
            1 => self.fetch_most::<1>(fd, again),
            2..=FEW => self.fetch_most::<FEW>(fd, again),
            _ => self.fetch_most::<MOST>(fd, again),
        }
    }

    fn fetch_most<const N: usize>(&mut self, fd: RawFd, again: bool) -> io::Result<()> {
        let most = self.ask.min(N);
        // SAFETY: all of these are plain data, for which zeros are valid.
        let (mut names, mut messages, mut iovecs): (
            [libc::sockaddr_in; N],
            [libc::mmsghdr; N],
            [libc::iovec; N],
        ) = unsafe { (mem::zeroed(), mem::zeroed(), mem::zeroed()) };
        let mut controls = [Control([0; CONTROL_BYTES]); N];
        for (index, slot) in self.slots.iter_mut().take(most).enumerate() {
            if Arc::get_mut(slot).is_none() {
                let fresh = self.lent.spare(self.width);
                self.lent.0.push_back(mem::replace(slot, fresh));
            }
            let slot = Arc::make_mut(slot);
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
        if count < 0 {
            let error = io::Error::last_os_error();
            return match error.raw_os_error() {
                Some(libc::EAGAIN | libc::EINTR) => Ok(()),
                _ => Err(error),
            };
        }
        let count = count as usize;
        self.ask = match count {
            1 if most == 1 && !again => 1,
            _ if count == most => (most * FEW).min(MOST),
            _ => count.max(1),
        };
        for index in 0..count {
            let has_tos = messages[index].msg_hdr.msg_controllen > TOS_AT;
            self.arrivals.push(Arrival {
                length: (messages[index].msg_len as usize).min(self.width),
                address: names[index].sin_addr.s_addr.to_ne_bytes(),
                port: u16::from_be(names[index].sin_port),
                tos: if has_tos { controls[index].0[TOS_AT] } else { 0 },
            });
        }
        Ok(())
    }

    /// Takes all datagrams that have arrived. A slice of a datagram keeps its slot from others, so small ones are
    /// copied: nothing takes more than twice its size.
    pub fn take(&mut self) -> impl Iterator<Item = (Arrival, Bytes)> + '_ {
        let width = self.width;
        self.arrivals.drain(..).zip(&self.slots).map(move |(arrival, slot)| {
            let small = 2 * arrival.length < width;
            let data =
                if small { slot[..arrival.length].into() } else { Bytes::part(slot, 0, arrival.length) };
            (arrival, data)
        })
    }
}
