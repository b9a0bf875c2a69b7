//! What the host agents do to the bytes of every packet: CRC-32C, the datagram's header, the look at an inner packet,
//! checksums, fragments and ICMP errors, and the cutting and joining of TCP segments for the TUN device.
//!
//! tests/unit/native/test_native_datapath.py compares them with the same written out in Python.

pub mod by_number;
pub mod checksum;
pub mod coalesce;
pub mod crc32c;
pub mod feedback;
pub mod header;
pub mod inner;
pub mod mac;
pub mod prefetch;
pub mod segments;
pub mod sent;
pub mod tunnel;
pub mod word;
