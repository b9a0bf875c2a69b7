//! CAPTON on a host: which large flows ask, and how far a TCP sender may send.

mod requests;
mod segment;
mod window;

pub use requests::{AskedState, Decision, Message, MessageBody, RequestCounters, RequestTimes, Requests};
pub use segment::{Segment, TcpBytes, ACK, FIN, PSH, RST, SYN};
pub use window::{Clamped, WindowClamp};
