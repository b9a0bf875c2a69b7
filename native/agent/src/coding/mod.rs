//! Forward error correction of a flow: units, their size, their repairs, and what became of them (docs/coding.md).
//!
//! Which packets make a unit is decided here; the algebra is in `native/coding`.

mod decode_probability;
mod ldpc_failure;
mod outcomes;
mod policy;
mod redundancy;
mod rules;
mod unit;
mod unit_size;
mod window;

pub use decode_probability::{binomial, decode_probability};
pub use ldpc_failure::ldpc_failure;
pub use outcomes::{Margin, Outcomes, UnitId, Verdict, MOST_DATAGRAMS, MOST_LOGITS};
pub use policy::{CodingPolicy, RedundancyRule, UnitRule, Weight};
pub use redundancy::{flow_weight, htpc_rule, most_repairs, paper_rule, target_rule, Progress, Target};
pub use rules::CodingRules;
pub use unit::{Aim, ClosedUnit, Source, UnitEncoder};
pub use unit_size::{PathTimes, FLOW_PACKETS, INITIAL_WINDOW as SLOW_START_WINDOW};
pub use window::{WindowEstimate, INITIAL_WINDOW};
