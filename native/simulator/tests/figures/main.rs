//! Figures of whole runs, compared with closed forms and with the counts of hosts, links and flows: one program, for linking
//! is what takes time.

mod admission;
mod byte_buffers;
mod fabrics;
mod lone_flows;
mod marks;
mod overlay;
mod pfabric_agents;
mod recording;
mod runs;
mod shapers;
mod shared_buffers;
mod shares;
mod tcp;
mod ties;
mod waiting_times;
