//! What both ends of a connection agree on, and their packets as admission reads them.

use agent::admission::{Clamped, SackBlocks, Segment, ACK, SYN};

use super::inner::Inner;
use crate::config::Config;
use crate::packets::Cargo;
use crate::transport::Transport;
use crate::Error;

/// What a peer advertises: as much as its window field can say.
const WINDOW: u16 = u16::MAX;
/// Of windows (RFC 7323).
const MOST_SCALE: u32 = 14;

/// What the ends of all connections agree on when they open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Connection {
    /// Data in a full packet.
    pub segment_bytes: u32,
    /// Of windows: the least by which the largest window of a sender can be advertised.
    pub scale: u32,
}

impl Connection {
    /// Return what hosts agree on.
    ///
    /// # Errors
    /// A transport other than TCP, which heeds no window.
    pub fn of(config: &Config) -> Result<Connection, Error> {
        let Transport::Tcp(tcp) = &config.transport else {
            return Err(Error("flows that ask are held by TCP's window: give a TCP transport".to_string()));
        };
        let segment_bytes = config.lengths.payload;
        let largest = u64::from(tcp.largest_window) * u64::from(segment_bytes);
        let holds = |&scale: &u32| u64::from(WINDOW) << scale >= largest;
        Ok(Connection { segment_bytes, scale: (0..MOST_SCALE).find(holds).unwrap_or(MOST_SCALE) })
    }

    /// Return a packet as admission reads it: a connection's beginning has the number before its first byte.
    pub fn segment(&self, inner: &Inner) -> Segment {
        let (begins, answers) = match inner.cargo {
            Cargo::Opening => (true, false),
            Cargo::Opened => (true, true),
            Cargo::Acknowledgement => (false, true),
            _ => (false, false),
        };
        let after = inner.sequence.wrapping_add(1);
        Segment {
            sequence: match inner.cargo {
                Cargo::Data => after,
                _ => u32::from(!begins),
            },
            payload: inner.payload,
            flags: if begins { SYN } else { 0 } | if answers { ACK } else { 0 },
            ack: if answers { after } else { 0 },
            window: WINDOW,
            scale: begins.then_some(u64::from(self.scale)),
            largest_segment: begins.then_some(u64::from(self.segment_bytes)),
            timestamps: None,
            sack: SackBlocks::default(),
        }
    }

    /// Return from which packet on a host of a flow of so many bytes may send nothing new, by a packet of its peer.
    pub fn limit(&self, inner: &Inner, bytes: u64) -> Option<u32> {
        let scale = if inner.cargo == Cargo::Opened { 0 } else { self.scale };
        let room = u64::from(inner.window?) << scale;
        let segment = u64::from(self.segment_bytes);
        if u64::from(inner.number) * segment + room >= bytes {
            return Some(u32::MAX);
        }
        Some(inner.number + (room / segment) as u32)
    }
}

impl Clamped for Inner {
    fn set_window(&mut self, window: u16) {
        self.window = Some(window);
    }

    fn bare_ack(&self) -> Inner {
        Inner { cargo: Cargo::Acknowledgement, answer: None, ..self.clone() }
    }
}
