//! Path policies: which entropy value or path label a packet carries. One file each.

mod policy;

pub use policy::{flow_entropy, Load, PathId, PathPolicy, Report, Train};
