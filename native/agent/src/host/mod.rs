//! One host's agent, on bytes: packets and datagrams in, datagrams and packets out, time passed in.

mod admission;
mod bytes;
mod core;
mod datagrams;
mod icmp;
mod incoming;

pub use bytes::{Bytes, Rows};
pub use core::{Core, HostPolicy, Identity};
pub use datagrams::{seal, Datagram, FLAG_CODED};
pub use incoming::FromUnderlay;
