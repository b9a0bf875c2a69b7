//! The receiving side: which datagrams are new, what their sender learns of them, what is rebuilt, and in which order
//! packets go out.

mod arrivals;
mod decoder;
mod feedback;
mod kept;
mod release;
mod unit;

pub use arrivals::{Arrivals, WINDOW};
pub use decoder::{DecoderCounters, DecoderLimits, Rebuilt, UnitDecoder, MAX_K, MAX_R, SOURCE_WINDOW};
pub use feedback::{EarlyRepairs, LeastDelay, PendingFeedback, MAX_EARLY_REPAIRS, RECEIPTS_PER_FEEDBACK};
pub use release::{Arrival, Release, MAX_HELD, REMEMBERED_GAPS};
pub use unit::{rebuild_bytes, Contradiction, Payload, Repair, UnitShape, MAX_SYMBOL_BYTES};
