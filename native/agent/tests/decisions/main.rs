//! What an agent decides, compared with closed forms and with decisions that were recorded: one program, for linking is what
//! takes time.

mod ack_estimators;
mod admission_gate;
mod admission_requests;
mod arrivals_and_release;
mod blocking_vectors;
mod coding_vectors;
mod decoder;
mod estimators;
mod hostile_repairs;
mod hosts;
mod outcomes_and_window;
mod paths_as_before;
mod priority_as_before;
mod receipts;
mod release_by_paths;
mod sent_log;
mod support;
mod unit_decoder;
mod unit_encoder;
mod unit_size;
mod window_clamp;
