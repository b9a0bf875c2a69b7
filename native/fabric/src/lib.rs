//! What is decided for a whole fabric from the traffic at its leaves, by a controller and by a simulation alike:
//! [`mode`], CAPS's ON/OFF mode of each leaf, and [`partition`], Freeway's split of the paths.
//!
//! Leaves are numbers that the caller chooses (datapath ids); times are seconds of one clock, which the caller passes in.

mod meter_read;
pub mod mode;
pub mod partition;
