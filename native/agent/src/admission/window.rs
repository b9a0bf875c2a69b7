//! Holding, pacing and stopping a TCP sender by the receive window that its agent advertises.
//!
//! The agent sees every acknowledgement before its host does. By its window field it says how far the host may send: to
//! a *right edge* that stands while the flow waits and moves on at the granted rate. The edge is never behind what the
//! host has sent: whatever has left is acknowledged as usual, so nothing times out and nothing is sent twice; the host
//! finds a window that closes, as from a receiver that reads slowly (RFC 9293, 3.8.6). When the edge moves and no
//! acknowledgement comes that could carry it, the last one is given to the host again with the new window.
//!
//! Windows are scaled (RFC 7323) by what the SYNs say, or, where those were not seen, the kernel (`join`).

use super::clamped::Clamped;
use super::segment::{Segment, ACK, RST, SYN};
use crate::serial::serial_difference;
use crate::Seconds;

const MOST_SCALE: u64 = 14;
const TIMESTAMPS_BYTES: i64 = 12;
const DEFAULT_SEGMENT_BYTES: u64 = 536;
const LEAST_GRAINS: i64 = 2;
/// No window is larger: twice that is below half of all sequence numbers.
const LARGEST_WINDOW: i64 = (u16::MAX as i64) << MOST_SCALE;

/// The newest packet of the peer.
#[derive(Clone, Debug)]
struct Newest<P> {
    packet: P,
    segment: Segment,
    /// Bytes that the peer has room for.
    window: u32,
}

/// The sending side of one TCP connection of the host.
#[derive(Clone, Debug)]
pub struct WindowClamp<P> {
    burst_s: Seconds,
    /// Of the windows that the peer advertises; None: not known.
    scale: Option<u32>,
    /// Our host's SYN: None if it was not seen, else its own scale, if it had one.
    offered: Option<Option<u64>>,
    /// The peer opened the connection: its SYN came before ours, and was not seen.
    answering: bool,
    /// Sequence number behind all that the host has sent.
    highest: Option<u32>,
    sent_bytes: u64,
    segment_bytes: i64,
    /// The same where the peer's windows have room for two; 0: the same.
    most_segment_bytes: i64,
    /// Our host's SYN has left, and the peer's has not come: an answer that comes twice takes timestamps off once.
    is_opening: bool,
    stamped: bool,
    rate: f64,
    right_edge: u32,
    /// Bytes that are not whole yet, of the right edge.
    part: f64,
    at: Seconds,
    /// Sequence number up to which the host may send, by the last window that it got.
    advertised: Option<u32>,
    newest: Option<Newest<P>>,
}

impl<P: Clamped> WindowClamp<P> {
    /// Returns the clamp of a connection that may send as it likes. `burst_s`: how far the right edge may be ahead of what was
    /// sent, in seconds of the granted rate; at least two segments, or two steps of the window.
    pub fn new(burst_s: Seconds) -> WindowClamp<P> {
        WindowClamp {
            burst_s,
            scale: None,
            offered: None,
            answering: false,
            highest: None,
            sent_bytes: 0,
            segment_bytes: DEFAULT_SEGMENT_BYTES as i64,
            most_segment_bytes: 0,
            is_opening: false,
            stamped: false,
            rate: f64::INFINITY,
            right_edge: 0,
            part: 0.0,
            at: 0.0,
            advertised: None,
            newest: None,
        }
    }

    /// Returns the payload that has left, each byte once.
    pub fn sent_bytes(&self) -> u64 {
        self.sent_bytes
    }

    /// Returns the most payload of a packet, bytes.
    pub fn segment_bytes(&self) -> i64 {
        self.segment_bytes
    }

    /// Returns true if both SYNs were seen, or the kernel was asked, so that the connection can be held.
    pub fn is_known(&self) -> bool {
        self.scale.is_some() && self.highest.is_some()
    }

    /// Returns true if the peer opened the connection and the kernel was not asked yet what its SYN said.
    pub fn is_answering(&self) -> bool {
        self.answering && self.scale.is_none()
    }

    /// Notes what the SYNs of an open connection agreed, and its segments now; after the first `left`.
    ///
    /// `most_segment_bytes`: of its segments once its peer advertises windows with room for two of them. A host that waits
    /// for the room of a whole segment must not get less, again and again.
    pub fn join(&mut self, scale: u32, segment_bytes: u32, most_segment_bytes: u32) {
        self.scale = Some(scale.min(MOST_SCALE as u32));
        (self.segment_bytes, self.is_opening) = (segment_bytes.into(), false);
        self.most_segment_bytes = most_segment_bytes.into();
    }

    /// Processes a packet, or a super-packet, that the host has sent.
    pub fn left(&mut self, segment: &Segment) {
        let start = segment.sequence;
        if segment.has(SYN) {
            self.offered = Some(segment.scale);
            self.answering = segment.has(ACK);
            self.stamped = segment.timestamps.is_some();
            (self.segment_bytes, self.is_opening) = (largest_of(segment), true);
            self.highest = Some(start);
            (self.right_edge, self.part) = (start.wrapping_add(1), 0.0);
            (self.advertised, self.newest) = (None, None);
        }
        let highest = *self.highest.get_or_insert(start);
        let new = i64::from(serial_difference(segment.end(), highest));
        if new > 0 {
            self.highest = Some(segment.end());
            self.sent_bytes += (new - i64::from(segment.extra())).max(0) as u64;
        }
    }

    /// Lets the host send so much payload per second from now on; 0: nothing, infinity: whatever TCP lets it.
    pub fn set_rate(&mut self, bytes_per_s: f64, now: Seconds) {
        self.advance(now);
        if let Some(highest) = self.highest {
            if self.rate.is_infinite() {
                (self.right_edge, self.part) = (highest, 0.0);
            } else if self.rate == 0.0 && bytes_per_s > 0.0 {
                self.right_edge = highest.wrapping_add(self.grain() as u32); // a segment may go at once
            }
        }
        self.rate = bytes_per_s;
    }

    /// Processes a packet of the peer, and writes the window into it that the host is to get.
    pub fn arrived(&mut self, packet: &mut P, segment: &Segment, now: Seconds) {
        if segment.has(SYN) {
            if std::mem::take(&mut self.is_opening) {
                let stamped = self.stamped && segment.timestamps.is_some();
                let options = if stamped { TIMESTAMPS_BYTES } else { 0 };
                self.segment_bytes = (self.segment_bytes.min(largest_of(segment)) - options).max(1);
            }
            if let Some(offered) = self.offered {
                let both = segment.scale.filter(|_| offered.is_some());
                self.scale = Some(both.map_or(0, |scale| scale.min(MOST_SCALE) as u32));
            }
        }
        let (Some(scale), Some(mut highest)) = (self.scale, self.highest) else { return };
        if !segment.has(ACK) || segment.has(RST) {
            return;
        }
        let scale = if segment.has(SYN) { 0 } else { scale };
        let window = u32::from(segment.window) << scale;
        if i64::from(window) >= 2 * self.most_segment_bytes {
            self.segment_bytes = self.segment_bytes.max(self.most_segment_bytes);
        }
        if serial_difference(segment.ack, highest) > 0 {
            highest = segment.ack; // sent before we knew of it
        }
        self.highest = Some(highest);
        if self.is_overtaken(segment) {
            let advertised = self.advertised;
            packet.set_window(self.limited(segment.ack, window, scale, now));
            self.advertised = advertised;
            return;
        }
        self.newest = Some(Newest { packet: packet.clone(), segment: *segment, window });
        packet.set_window(self.limited(segment.ack, window, scale, now));
    }

    /// Returns a packet with a window that no acknowledgement has advertised to the host yet; None if there is no need.
    pub fn update(&mut self, now: Seconds) -> Option<P> {
        let newest = self.newest.as_ref()?;
        let (mut bare, ack, window) = (newest.packet.bare_ack(), newest.segment.ack, newest.window);
        let open = self.open()?;
        if i64::from(serial_difference(self.limit(ack, window, now), open)) < self.grain() {
            return None;
        }
        bare.set_window(self.limited(ack, window, self.scale.unwrap_or(0), now));
        Some(bare)
    }

    /// Returns when `update` may have a window, if nothing comes of the peer by then.
    pub fn deadline(&self) -> Option<Seconds> {
        let (newest, advertised, highest) = (self.newest.as_ref()?, self.advertised?, self.highest?);
        let open = self.open()?;
        if self.rate <= 0.0 || self.rate.is_infinite() {
            return None;
        }
        if i64::from(serial_difference(advertised, highest)) >= self.segment_bytes {
            return None; // it has not used what was advertised
        }
        let end = newest.segment.ack.wrapping_add(newest.window);
        if i64::from(serial_difference(end, open)) < self.grain() {
            return None; // nor has the peer room for more
        }
        let missing = (i64::from(serial_difference(open, self.right_edge)) + self.grain() + 1).max(0);
        Some(self.at + missing as f64 / self.rate)
    }

    /// Returns how long the least that can be advertised takes at the rate, in seconds.
    pub fn window_s(&self) -> Seconds {
        self.grain() as f64 / self.rate
    }

    /// Returns the sequence number beyond which the host may not send yet. A window in steps may end before what has
    /// left; another update that ends there would have no effect.
    fn open(&self) -> Option<u32> {
        let (advertised, highest) = (self.advertised?, self.highest?);
        Some(if serial_difference(advertised, highest) > 0 { advertised } else { highest })
    }

    /// Returns the least number of bytes that can be advertised: a segment, or a step of the window.
    fn grain(&self) -> i64 {
        self.segment_bytes.max(1 << self.scale.unwrap_or(0))
    }

    /// Returns true if a newer packet of the peer was faster on another path: the host takes no window from an old
    /// packet (RFC 9293, 3.10.7.4; RFC 7323, 5).
    fn is_overtaken(&self, segment: &Segment) -> bool {
        let Some(newest) = &self.newest else { return false };
        let ahead = serial_difference(segment.ack, newest.segment.ack);
        if ahead != 0 || !self.stamped {
            return ahead < 0;
        }
        let clock = |segment: &Segment| (segment.timestamps.unwrap_or(0) >> 32) as u32;
        serial_difference(clock(segment), clock(&newest.segment)) < 0
    }

    /// Moves the right edge to where it is by now.
    fn advance(&mut self, now: Seconds) {
        let Some(highest) = self.highest else {
            self.at = now;
            return;
        };
        if self.rate > 0.0 && self.rate.is_finite() {
            // at 20 Gbit/s a second's bytes are more than half of all sequence numbers, which would be behind
            let moved = (self.part + self.rate * (now - self.at).max(0.0)).min(LARGEST_WINDOW as f64);
            self.right_edge = self.right_edge.wrapping_add(moved as u32);
            self.part = moved - moved.trunc();
            let burst = ((self.rate * self.burst_s) as i64).min(LARGEST_WINDOW);
            let most = burst.max(LEAST_GRAINS * self.grain());
            if i64::from(serial_difference(self.right_edge, highest)) > most {
                (self.right_edge, self.part) = (highest.wrapping_add(most as u32), 0.0);
            }
        }
        if serial_difference(self.right_edge, highest) < 0 {
            self.right_edge = highest;
        }
        self.at = self.at.max(now);
    }

    /// Returns the sequence number up to which the host may send: the peer's, or the right edge if that is nearer.
    fn limit(&mut self, ack: u32, window: u32, now: Seconds) -> u32 {
        self.advance(now);
        let end = ack.wrapping_add(window);
        if self.rate.is_infinite() || serial_difference(end, self.right_edge) <= 0 {
            return end;
        }
        self.right_edge
    }

    /// Returns the window to write, not scaled.
    fn limited(&mut self, ack: u32, window: u32, scale: u32, now: Seconds) -> u16 {
        let (limit, step) = (self.limit(ack, window, now), 1i64 << scale);
        let highest = self.highest.unwrap_or(limit);
        let segment_bytes = self.segment_bytes.max(1);
        let segments = i64::from(serial_difference(limit, highest)).max(0) / segment_bytes;
        let most = i64::from(window >> scale);
        let field = if limit == ack.wrapping_add(window) {
            most
        } else if step > segment_bytes {
            i64::from(serial_difference(limit, ack)).max(0) / step
        } else {
            // Whole segments: Linux sends a piece of one where a window ends amid it, and pieces wait for delayed ACKs.
            let room = i64::from(serial_difference(highest, ack)) + segments * segment_bytes;
            let rounded = if segments > 0 { -(-room).div_euclid(step) } else { room.div_euclid(step) };
            rounded.max(0)
        };
        let field = field.min(most);
        self.advertised = Some(ack.wrapping_add((field as u32) << scale));
        field as u16
    }
}

/// Returns the most payload of a segment by a SYN, bytes: its option may be longer than TCP's, and say anything.
fn largest_of(syn: &Segment) -> i64 {
    syn.largest_segment.unwrap_or(DEFAULT_SEGMENT_BYTES).clamp(1, u16::MAX.into()) as i64
}
