//! What the host agents do to every packet: CRC-32C, the datagram's header, the look at an inner packet, runs of
//! datagrams that belong together, and the joining of TCP segments for the TUN device.
//!
//! Each module says which Python module it equals, byte for byte; tests/unit/test_native_datapath.py compares them.

pub mod checksum;
pub mod coalesce;
pub mod crc32c;
pub mod feedback;
pub mod header;
pub mod inner;
pub mod lone;
pub mod runs;
pub mod segments;
pub mod sent;
pub mod tunnel;
