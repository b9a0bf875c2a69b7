//! Rules of IP tunnels: ECN across them (RFC 6040), and packets that are too large (RFC 1191, RFC 8201).

use crate::checksum::{checksum, ones_complement_sum};
use crate::inner::{ICMP, ICMPV6};

pub const NOT_ECT: u8 = 0b00;
pub const ECT1: u8 = 0b01;
pub const ECT0: u8 = 0b10;
pub const CE: u8 = 0b11;
const ECN: u8 = 0b11;
const DONT_FRAGMENT: u8 = 0x40;
const MORE_FRAGMENTS: u16 = 0x2000;
const OFFSET: u16 = 0x1FFF;
const TTL: u8 = 64;
/// Bytes of an ICMPv6 error at most (RFC 4443, 2.4 c).
const LEAST_MTU_V6: usize = 1280;

fn is_v4(packet: &[u8]) -> bool {
    packet[0] >> 4 == 4
}

/// Returns the ECN field of an IPv4 or IPv6 packet.
pub fn ecn_of(packet: &[u8]) -> u8 {
    if is_v4(packet) {
        packet[1] & ECN
    } else {
        packet[1] >> 4 & ECN
    }
}

/// What becomes of an inner packet's ECN field when it leaves the tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decapsulated {
    /// It goes out as it is.
    AsItIs,
    /// It goes out with this field.
    With(u8),
    /// A congestion mark on the outer header of a packet that cannot carry one is a loss.
    Dropped,
}

/// Returns what RFC 6040, figure 4, says of these ECN fields.
pub fn decapsulate(inner: u8, outer: u8) -> Decapsulated {
    match (outer, inner) {
        (CE, NOT_ECT) => Decapsulated::Dropped,
        (CE, ECT0 | ECT1) => Decapsulated::With(CE),
        (ECT1, ECT0) => Decapsulated::With(ECT1),
        _ => Decapsulated::AsItIs,
    }
}

/// Write the ECN field of an IPv4 or IPv6 packet.
pub fn set_ecn(packet: &mut [u8], ecn: u8) {
    if !is_v4(packet) {
        packet[1] = packet[1] & 0xCF | ecn << 4;
        return;
    }
    packet[1] = packet[1] & 0xFC | ecn;
    let header = usize::from(packet[0] & 0x0F) * 4;
    packet[10..12].fill(0);
    let sum = checksum(&packet[..header], 0);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
}

/// Returns true if only the sender may fragment it: IPv6, or IPv4 with DF.
pub fn dont_fragment(packet: &[u8]) -> bool {
    !is_v4(packet) || packet[6] & DONT_FRAGMENT != 0
}

/// Returns the ICMP error by which the sender of a packet learns the tunnel's MTU; None where none may be sent.
///
/// ICMPv4: destination unreachable, fragmentation needed (RFC 1191). ICMPv6: packet too big (RFC 4443, 3.2).
pub fn too_big(packet: &[u8], mtu: u32) -> Option<Vec<u8>> {
    if is_v4(packet) {
        icmp4(packet, [3, 4], mtu)
    } else {
        icmp6(packet, [2, 0], mtu)
    }
}

/// Returns the ICMP error for an overlay address that no host has; None where none may be sent.
pub fn unreachable(packet: &[u8]) -> Option<Vec<u8>> {
    if is_v4(packet) {
        icmp4(packet, [3, 1], 0)
    } else {
        icmp6(packet, [1, 3], 0)
    }
}

fn icmp4(packet: &[u8], kind_and_code: [u8; 2], rest: u32) -> Option<Vec<u8>> {
    let header = usize::from(packet[0] & 0x0F) * 4;
    let (offset, source) = (u16::from_be_bytes([packet[6], packet[7]]) & OFFSET, packet[12]);
    if offset != 0 || source == 0 || source == 127 || source >= 224 {
        return None; // RFC 1122, 3.2.2: no errors about later fragments, and none to groups
    }
    if packet[9] == ICMP && packet.get(header).is_none_or(|&kind| kind != 0 && kind != 8) {
        return None; // nor about errors
    }
    let quoted = &packet[..packet.len().min(header + 8)];
    let total = 20 + 8 + quoted.len();
    let mut answer = Vec::with_capacity(total);
    answer.extend_from_slice(&[0x45, 0]);
    answer.extend_from_slice(&(total as u16).to_be_bytes());
    answer.extend_from_slice(&[0, 0, 0, 0, TTL, ICMP, 0, 0]);
    answer.extend_from_slice(&packet[16..20]);
    answer.extend_from_slice(&packet[12..16]);
    let sum = checksum(&answer, 0);
    answer[10..12].copy_from_slice(&sum.to_be_bytes());
    answer.extend_from_slice(&kind_and_code);
    answer.extend_from_slice(&[0, 0]);
    answer.extend_from_slice(&rest.to_be_bytes());
    answer.extend_from_slice(quoted);
    let sum = checksum(&answer[20..], 0);
    answer[22..24].copy_from_slice(&sum.to_be_bytes());
    Some(answer)
}

fn icmp6(packet: &[u8], kind_and_code: [u8; 2], rest: u32) -> Option<Vec<u8>> {
    if packet[8] == 0xFF || packet[8..24] == [0; 16] {
        return None; // RFC 4443, 2.4: no errors to groups or to the unspecified address
    }
    if packet[6] == ICMPV6 && packet.get(40).is_none_or(|&kind| kind < 128) {
        return None; // nor about errors
    }
    let quoted = &packet[..packet.len().min(LEAST_MTU_V6 - 48)];
    let length = 8 + quoted.len();
    let mut answer = Vec::with_capacity(40 + length);
    answer.extend_from_slice(&[0x60, 0, 0, 0]);
    answer.extend_from_slice(&(length as u16).to_be_bytes());
    answer.extend_from_slice(&[ICMPV6, TTL]);
    answer.extend_from_slice(&packet[24..40]);
    answer.extend_from_slice(&packet[8..24]);
    answer.extend_from_slice(&kind_and_code);
    answer.extend_from_slice(&[0, 0]);
    answer.extend_from_slice(&rest.to_be_bytes());
    answer.extend_from_slice(quoted);
    let pseudo = ones_complement_sum(&answer[8..40], u32::from(ICMPV6) + length as u32);
    let sum = checksum(&answer[40..], u32::from(pseudo));
    answer[42..44].copy_from_slice(&sum.to_be_bytes());
    Some(answer)
}

/// Returns an IPv4 packet without DF in pieces of at most `mtu` bytes (RFC 791); options go with every piece. None: an
/// MTU that leaves no room behind the header.
pub fn fragment(packet: &[u8], mtu: usize) -> Option<Vec<Vec<u8>>> {
    let header = usize::from(packet[0] & 0x0F) * 4;
    let step = mtu.saturating_sub(header) / 8 * 8;
    if step == 0 {
        return None;
    }
    let field = u16::from_be_bytes([packet[6], packet[7]]);
    let (offset, more) = (field & OFFSET, field & MORE_FRAGMENTS);
    let body = &packet[header..];
    let count = body.len().div_ceil(step);
    let pieces = body.chunks(step).enumerate().map(|(index, part)| {
        let more = if index + 1 == count { more } else { MORE_FRAGMENTS };
        let fragment_offset = offset + (index * step / 8) as u16;
        let mut piece = Vec::with_capacity(header + part.len());
        piece.extend_from_slice(&packet[..header]);
        piece[2..4].copy_from_slice(&((header + part.len()) as u16).to_be_bytes());
        piece[6..8].copy_from_slice(&(more | fragment_offset).to_be_bytes());
        piece[10..12].fill(0);
        let sum = checksum(&piece, 0);
        piece[10..12].copy_from_slice(&sum.to_be_bytes());
        piece.extend_from_slice(part);
        piece
    });
    Some(pieces.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inner::look;
    use trials::trials;

    /// Draws bytes of any kind that begin as IP packets do and state their true length.
    fn packets() -> impl Iterator<Item = Vec<u8>> {
        let mut state = 3u64;
        let mut draw = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as u8
        };
        (0..trials(20_000usize)).map(move |index| {
            let mut packet: Vec<u8> = (0..index % 97).map(|_| draw()).collect();
            let size = packet.len() as u16;
            let v4 = draw() % 2 == 0;
            if let Some(first) = packet.first_mut() {
                *first = if v4 { 0x45 + draw() % 4 } else { 0x60 };
            }
            let (at, says) = if v4 { (2, size) } else { (4, size.wrapping_sub(40)) };
            if let Some(field) = packet.get_mut(at..at + 2) {
                field.copy_from_slice(&says.to_be_bytes());
            }
            if let Some(protocol) = packet.get_mut(if v4 { 9 } else { 6 }) {
                *protocol = [6, 17, 1, 58, 0, 44, 60, *protocol][usize::from(draw() % 8)];
            }
            packet
        })
    }

    #[test]
    fn whatever_is_an_ip_packet_is_answered_or_not_and_keeps_its_ecn_rules() {
        let mut seen = 0;
        for mut packet in packets() {
            if look(&packet).is_err() {
                continue;
            }
            seen += 1;
            for answer in [too_big(&packet, 1400), unreachable(&packet)].into_iter().flatten() {
                let seen = look(&answer).expect("an answer is an IP packet");
                assert!(seen.control && answer.len() <= LEAST_MTU_V6);
            }
            for ecn in [NOT_ECT, ECT1, ECT0, CE] {
                set_ecn(&mut packet, ecn);
                assert_eq!(ecn_of(&packet), ecn);
            }
            if !dont_fragment(&packet) {
                let pieces = fragment(&packet, 68).expect("room enough");
                let header = usize::from(packet[0] & 0x0F) * 4;
                let bodies: Vec<u8> = pieces.iter().flat_map(|piece| piece[header..].to_vec()).collect();
                assert_eq!(bodies, packet[header..]);
                assert!(pieces.iter().all(|piece| piece.len() <= 68 && look(piece).is_ok()));
            }
        }
        assert!(seen > trials(5000), "{seen} packets");
    }
}
