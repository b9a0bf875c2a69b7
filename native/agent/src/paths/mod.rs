//! Path policies: which entropy value or path label a packet carries. One file each.

mod departures;
mod flow_hash;
mod flowcell;
mod flowlet;
mod granted;
mod label_hash;
mod plb;
mod policy;
mod reps;
mod round_robin;
mod routes;
mod settings;
mod sharing;
mod spray;
mod steering;
mod tr;
mod unblocked;

pub use departures::{Departed, Departures};
pub use flow_hash::FlowHash;
pub use flowcell::Flowcell;
pub use flowlet::Flowlet;
pub use granted::Granted;
pub use label_hash::LabelHash;
pub use plb::{Plb, PlbSettings, LEAST_TIMEOUT_S};
pub use policy::{flow_entropy, Load, PathId, PathPolicy, Report, Train};
pub use reps::{Reps, RepsSettings, RING};
pub use round_robin::{digit_reversed, RoundRobin};
pub use routes::{LivePaths, Routes};
pub use settings::PathSettings;
pub use sharing::{of_the_others, on_paths_of_the_others, OnPaths};
pub use spray::{entropy_value, Spray};
pub use steering::{BoxedPolicy, Sent, Steering};
pub use tr::Tr;
pub use unblocked::{Unblocked, UnblockedSettings};
