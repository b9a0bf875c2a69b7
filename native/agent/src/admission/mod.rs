//! CAPTON on a host: which large flows ask, how far a TCP sender may send, and what TCP sends again meanwhile.

mod clamped;
mod counts;
mod episode;
mod flow;
mod gate;
mod host;
mod lateness;
mod requests;
mod retransmissions;
mod segment;
mod window;

pub use clamped::Clamped;
pub use counts::AdmissionCounts;
pub use episode::{Episode, FlowState, Trigger};
pub use flow::{Backlog, OVERHEAD_BYTES};
pub use gate::Gate;
pub use host::{AdmissionPolicy, Destination, Sent};
pub use requests::{Decision, Message, MessageBody, RequestCounters, RequestState, RequestTimes, Requests};
pub use retransmissions::{Retransmissions, SETTLE_S};
pub use segment::{SackBlocks, Segment, TcpBytes, ACK, FIN, PSH, RST, SYN};
pub use window::WindowClamp;
