//! Internet checksums (RFC 1071).

use crate::inner::{FlowKey, Seen, TCP, UDP};

/// Returns the 16-bit one's complement sum of `start` and `data`, not inverted; odd lengths are padded with a zero.
pub fn ones_complement_sum(data: &[u8], start: u32) -> u16 {
    let mut words = data.chunks_exact(2);
    let mut total = u64::from(start);
    for word in &mut words {
        total += u64::from(u16::from_be_bytes([word[0], word[1]]));
    }
    if let [last] = words.remainder() {
        total += u64::from(*last) << 8;
    }
    while total >> 16 != 0 {
        total = (total & 0xFFFF) + (total >> 16);
    }
    total as u16
}

/// Returns the checksum field's value for `data` with that field as 0.
pub fn checksum(data: &[u8], start: u32) -> u16 {
    !ones_complement_sum(data, start)
}

/// Returns the sum over the pseudo header of TCP, UDP or ICMPv6, with `length` bytes from the transport header on.
pub fn pseudo_header_sum(flow: &FlowKey, length: usize) -> u16 {
    let bytes = flow.bytes();
    ones_complement_sum(&bytes[1..bytes.len() - 4], u32::from(flow.protocol()) + length as u32)
}

/// Returns where the checksum lies in the transport header, where the agent may compute it.
pub fn field_of(seen: &Seen) -> Option<usize> {
    match seen.protocol {
        TCP if seen.flow.has_ports() => Some(16),
        UDP if seen.flow.has_ports() => Some(6),
        _ => None,
    }
}

/// Write the packet's TCP or UDP checksum; others stay as they are.
///
/// Packets that a TUN device with IFF_VNET_HDR hands over carry none; needed where the receiver's has no such header.
pub fn complete(packet: &mut [u8], seen: &Seen) {
    let Some(field) = field_of(seen) else { return };
    let segment = &mut packet[seen.transport..];
    segment[field..field + 2].fill(0);
    let sum = pseudo_header_sum(&seen.flow, segment.len());
    let value = match checksum(segment, u32::from(sum)) {
        0 => 0xFFFF,
        value => value,
    };
    segment[field..field + 2].copy_from_slice(&value.to_be_bytes());
}
