//! CAPTON's scheduler (Zhou and Lee, "CAPTON: Centralized All-Path Transmission for Over-Subscribed Datacenter
//! Networks", IEEE Access 10, 2022, Sections IV and V): flows in increasing order of what they have left, each at the
//! rate of its slowest link if all its links still hold it.
//!
//! All of it is whole numbers (bit/s, ns, 1e-9 bit), so what follows depends on no rounding and on no history:
//! `scheduler` repairs its decisions at each event, `plain` makes all of them anew, and both decide the same.

pub mod fabric;
pub mod plain;
pub mod scheduler;

use std::fmt;

/// A flow's rate has changed: bit/s of the link; 0 is a stop.
pub type Decision = (u64, i64);

/// 1e-9 bit in a byte.
pub const BYTE: i128 = 8_000_000_000;

/// What both schedulers take in.
#[derive(Clone, Copy, Debug)]
pub struct Parameters {
    /// A flow is granted if this share of its line rate is left on all its links, 1e-6 (the paper: 1,000,000).
    pub least_share: i64,
    /// How many bytes the order forgives a flow for each second since its request; 0 is none.
    pub ageing: i64,
    /// How long a flow keeps its grant, in ns, after all its bytes should have left.
    pub finish_timeout: i128,
}

/// What a scheduler is asked that cannot be.
#[derive(Debug, PartialEq, Eq)]
pub struct Error(pub String);

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

/// Returns the least rate that a flow of this line rate is granted; its line rate itself where that is 0.
pub(crate) fn least_rate(line: i64, least_share: i64) -> i64 {
    let least = (i128::from(line) * i128::from(least_share) + 999_999) / 1_000_000;
    i64::try_from(least).unwrap_or(i64::MAX)
}
