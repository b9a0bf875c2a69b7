//! One host's agent, on bytes: packets and datagrams in, datagrams and packets out, time passed in.

mod admission;
mod bytes;
mod core;
mod datagrams;

pub use bytes::{Bytes, Rows};
pub use core::{Core, FromUnderlay, HostPolicy, Identity};
pub use datagrams::{seal, Datagram, FLAG_CODED};
