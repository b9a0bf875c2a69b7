//! Time, as all decisions take it.

/// Seconds of one monotonic clock, or a length of time in seconds.
pub type Seconds = f64;
