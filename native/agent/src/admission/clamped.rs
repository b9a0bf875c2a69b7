//! Packets by which a receive window is advertised.

/// A TCP packet whose window can be written.
pub trait Clamped: Clone {
    /// Writes another window, not scaled.
    fn set_window(&mut self, window: u16);

    /// Returns a pure ACK that says what this packet said.
    fn bare_ack(&self) -> Self;
}
