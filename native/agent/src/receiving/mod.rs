//! The receiving side: which datagrams are new, what their sender learns of them, what is rebuilt, and in which order
//! packets go out.

mod arrivals;
mod feedback;
mod release;

pub use arrivals::{Arrivals, WINDOW};
pub use feedback::{EarlyRepairs, LeastDelay, PendingFeedback, MAX_EARLY_REPAIRS, RECEIPTS_PER_FEEDBACK};
pub use release::{Arrival, Release, MAX_HELD, REMEMBERED_GAPS};
