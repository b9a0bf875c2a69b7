//! What a host agent decides: no Python, no system call, no clock. Time and randomness are passed in, so the agents of
//! hosts and the hosts of a simulation run the same code.
//!
//! `host_agent/` is the program around it, `native/src/agent/` binds it to Python.

#![forbid(unsafe_code)]

pub mod admission;
pub mod blocking;
pub mod class;
pub mod coding;
pub mod counts;
pub mod departure;
pub mod flow_record;
pub mod flow_table;
pub mod hash;
pub mod host;
mod in_order;
mod least_delay;
pub mod packet;
pub mod paths;
pub mod peers;
pub mod priority;
pub mod random;
pub mod receiving;
pub mod route;
pub mod sending;
pub mod serial;
pub mod time;
pub mod underlay;

pub use class::TrafficClass;
pub use least_delay::LeastDelay;
pub use random::{Generator, Random};
pub use route::{FlowRef, LeafId, Route, RouteId};
pub use time::Seconds;
