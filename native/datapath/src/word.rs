//! Numbers in network byte order.

/// Returns the number of four bytes at `offset`, which must be there.
#[inline]
pub fn word(bytes: &[u8], offset: usize) -> u32 {
    u32::from_be_bytes([bytes[offset], bytes[offset + 1], bytes[offset + 2], bytes[offset + 3]])
}
