//! Path policies: which entropy value or path label a packet carries. One file each.

mod flow_hash;
mod flowcell;
mod flowlet;
mod granted;
mod label_hash;
mod plb;
mod policy;
mod reps;
mod round_robin;
mod settings;
mod spray;
mod tr;

pub use flow_hash::FlowHash;
pub use flowcell::{Flowcell, FLOWCELL_BYTES};
pub use flowlet::Flowlet;
pub use granted::Granted;
pub use label_hash::LabelHash;
pub use plb::{Plb, PlbSettings, LEAST_TIMEOUT_S};
pub use policy::{flow_entropy, Load, PathId, PathPolicy, Report, Train};
pub use reps::{Reps, RepsSettings, RING};
pub use round_robin::{digit_reversed, RoundRobin};
pub use settings::PathSettings;
pub use spray::{entropy_value, Spray};
pub use tr::Tr;
