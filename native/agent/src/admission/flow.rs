//! A TCP flow of a host, as admission sees it: what it has left, and what that takes on a link.

use datapath::header::HEADER_BYTES;

use super::clamped::Clamped;
use super::window::WindowClamp;
use crate::departure::UnderlayAddress;
use crate::Seconds;

/// A flow that is granted a rate and sends nothing new for so long gives it back: its receiver does not read, or is dead.
const STALLED_S: Seconds = 1.0;

const INNER_HEADERS_BYTES: usize = 52;
const OUTER_HEADERS_BYTES: usize = 28 + 14;
const HEADERS_BYTES: usize = INNER_HEADERS_BYTES + HEADER_BYTES + OUTER_HEADERS_BYTES;
/// What a segment takes besides its payload: its headers (IPv4, TCP with timestamps; ours, UDP, IPv4, Ethernet), and half an
/// acknowledgement the other way (RFC 9293, 3.8.6.3: one for two segments), for links that are granted whole both ways
/// would else have no room for those, and their queues would grow for as long as that lasts.
pub const OVERHEAD_BYTES: usize = HEADERS_BYTES + HEADERS_BYTES / 2;
/// More than any flow sends.
const NEVER: u64 = 1 << 62;
/// Most that is asked for, bytes.
const MOST_LEFT: f64 = 1e15;

/// What a socket holds that has not been sent, and what its connection agreed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backlog {
    /// Payload.
    pub bytes: u64,
    /// The buffer is so full that the program is being kept waiting: it has more.
    pub more: bool,
    /// Of the windows that the peer advertises (RFC 7323).
    pub scale: u32,
    /// Most payload of a segment now; 0: nothing new can be sent, or not yet. Linux makes segments of half the largest
    /// window that was ever advertised to it, at most, and goes on with that for a while when windows have become large.
    pub segment_bytes: u32,
    /// The same once windows are large; more only if the peer wants smaller ones.
    pub most_segment_bytes: u32,
}

impl Backlog {
    /// Returns true if there is nothing that it could send.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0 && !self.more
    }
}

/// A TCP flow of the host, as admission sees it.
#[derive(Clone, Debug)]
pub struct Flow<P> {
    pub number: u32,
    pub peer: UnderlayAddress,
    pub clamp: WindowClamp<P>,
    /// Payload that it was announced with, bytes.
    pub size: Option<f64>,
    pub last: Seconds,
    /// It asks once it has sent more than that.
    pub free_bytes: u64,
    /// When something new left last, or a rate was granted.
    pub moved: Seconds,
    /// It has asked, at any time.
    pub asked: bool,
    /// It was open before we knew of it.
    pub preexisting: bool,
    /// What its socket held when it asked last; None: it was announced, or its socket cannot be asked.
    pub backlog: Option<Backlog>,
}

impl<P: Clamped> Flow<P> {
    /// Returns true if its announced size makes it ask although it has sent less; not where the kernel has to be asked.
    pub fn is_announced_large(&self) -> bool {
        !self.clamp.is_answering() && self.size.is_some_and(|size| size > self.free_bytes as f64)
    }

    /// Returns what it has left to send, in bytes on the link.
    pub fn bytes_left(&self) -> u64 {
        let done = self.clamp.sent_bytes();
        let payload_bytes = match (self.size, &self.backlog) {
            (Some(size), _) => size - done as f64,
            (None, None) => done as f64,
            (None, Some(backlog)) => (backlog.bytes + if backlog.more { done } else { 0 }) as f64,
        };
        (payload_bytes.clamp(1.0, MOST_LEFT) * self.on_the_link()).round_ties_even() as u64
    }

    /// Returns the bytes on the link for each byte of payload, in full segments.
    pub fn on_the_link(&self) -> f64 {
        let segment = self.clamp.segment_bytes();
        (segment + OVERHEAD_BYTES as i64) as f64 / segment as f64
    }

    /// Returns after how long without anything new it gives its grant back, in seconds: at a rate at which a window takes
    /// longer than `STALLED_S`, it may be that window that its host waits for.
    pub fn stalled_s(&self) -> Seconds {
        STALLED_S.max(2.0 * self.clamp.window_s())
    }

    /// Keeps it going: it cannot be held.
    pub fn set_free(&mut self) {
        self.free_bytes = NEVER;
    }
}
