//! What agents and switches agree on in the outer headers: ports (protocol/underlay.py says who reads them).

/// UDP destination port of every datagram as the receiving agent sees it.
pub const BASE_PORT: u16 = 47000;
/// Number of UDP destination ports, from `BASE_PORT` on, over which flows are hashed for ECMP.
pub const FLOW_KEYS: u16 = 64;
/// The first entropy value.
pub const EV_FIRST: u16 = 16384;
/// The last entropy value.
pub const EV_LAST: u16 = 65535;
/// How many entropy values there are.
pub const EVS: u32 = EV_LAST as u32 - EV_FIRST as u32 + 1;
/// The first path stamp.
pub const STAMP_FIRST: u16 = 1;
/// The last path stamp.
pub const STAMP_LAST: u16 = 4095;
/// The path with stamp s is named by source port `LABEL_FIRST` + s.
pub const LABEL_FIRST: u16 = 8192;

/// Returns true if a received datagram's source port is a path stamp (else: what it left with, below the top tier).
pub fn is_stamp(source_port: u16) -> bool {
    (STAMP_FIRST..=STAMP_LAST).contains(&source_port)
}

/// Returns the source port that names the path with this stamp (`STAMP_FIRST` to `STAMP_LAST`).
pub fn label_of(stamp: u16) -> u16 {
    LABEL_FIRST + stamp
}

/// Returns the stamp of the path that a source port names; None: it is no label.
pub fn stamp_of(source_port: u16) -> Option<u16> {
    Some(stamp_of_label(source_port)).filter(|&stamp| is_stamp(stamp))
}

/// Returns the stamp of the path that a label names.
pub fn stamp_of_label(label: u16) -> u16 {
    label.wrapping_sub(LABEL_FIRST)
}
