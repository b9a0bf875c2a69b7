//! CAPTON on a host: how far a TCP sender may send.

mod segment;
mod window;

pub use segment::{Segment, TcpBytes, ACK, FIN, PSH, RST, SYN};
pub use window::{Clamped, WindowClamp};
