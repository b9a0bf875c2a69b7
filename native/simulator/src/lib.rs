//! A packet-level simulator of data-centre fabrics: links, queues, hosts' transport and paths, in integer picoseconds.
//! The same seed gives the same result to the last bit on every machine. Without Python, input, output and threads.
//!
//! `events` orders what happens, `port` and `queue` are a link's sending end, `topology` says where packets go,
//! `paths` which way, `transport` what hosts send and when, `simulation` brings them together.

pub mod config;
mod conservation;
mod endpoints;
pub mod events;
pub mod flow;
mod lookahead;
mod opening;
mod outgoing;
pub mod overlay;
pub mod packets;
pub mod paths;
pub mod port;
pub mod queue;
pub mod random;
mod recorded_hops;
pub mod recording;
pub mod sharing;
pub mod simulation;
pub mod time;
pub mod topology;
pub mod transport;

use std::fmt;

/// What cannot be simulated, or went wrong; the text says what, where, and what to do.
#[derive(Debug, PartialEq, Eq)]
pub struct Error(pub String);

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Error {}
