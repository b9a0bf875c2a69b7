//! The receiving side: which datagrams are new, what their sender learns of them, what is rebuilt, and in which order
//! packets go out.

mod arrivals;
mod budget;
mod decoder;
mod feedback;
mod flow;
mod incoming;
mod keeping;
mod owed;
mod packet_buffer;
mod path_progress;
mod policy;
mod receiver;
mod release;
mod seen;
mod unit;

pub use arrivals::Arrivals;
pub use budget::{share, Budget, Shed, Total, AGENT_BYTES, LEAST_BYTES, MOST_BYTES, RECORDS_BYTES};
pub use decoder::{DecoderCounters, DecoderLimits, Rebuilt, UnitDecoder, MAX_K, MAX_R, SOURCE_WINDOW};
pub use feedback::{EarlyRepairs, PendingFeedback, MAX_EARLY_REPAIRS, RECEIPTS_PER_FEEDBACK};
pub use flow::ReceiveFlow;
pub use incoming::{EarlyRepair, Incoming};
pub use path_progress::{Delivered, PathProgress, Settled, SettledUpTo};
pub use policy::{feedback_after_s, Hold, ReceivePolicy};
pub use receiver::Receiver;
pub use release::{Arrival, Release, MAX_HELD, REMEMBERED_GAPS};
pub use seen::WINDOW;
pub use unit::{Contradiction, Payload, Repair, UnitShape, MAX_SYMBOL_BYTES};
