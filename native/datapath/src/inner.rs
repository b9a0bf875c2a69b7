//! The look at an inner packet where it is of the commonest kind; host_agent/inner_packet.py knows all kinds.

pub const TCP: u8 = 6;
pub const UDP: u8 = 17;
/// Protocol, addresses and ports of IPv4: what host_agent/inner_packet.py calls a packet's `flow`.
pub type Key = [u8; 13];

/// Whether this is IPv4 without options that says its true length and is no fragment.
pub fn plain_ipv4(packet: &[u8]) -> bool {
    packet.len() >= 20
        && packet[0] == 0x45
        && usize::from(u16::from_be_bytes([packet[2], packet[3]])) == packet.len()
        && packet[6] & 0x3F == 0
        && packet[7] == 0
}

/// The flow of a plain IPv4 packet of TCP whose header fits.
pub fn tcp_key(packet: &[u8]) -> Option<Key> {
    if packet.len() < 40 || !plain_ipv4(packet) || packet[9] != TCP {
        return None;
    }
    let header = usize::from(packet[32] >> 4) * 4;
    if header < 20 || header > packet.len() - 20 {
        return None;
    }
    let mut key = [0; 13];
    key[0] = TCP;
    key[1..].copy_from_slice(&packet[12..24]);
    Some(key)
}
