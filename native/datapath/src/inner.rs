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

pub const ICMP: u8 = 1;
const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const PSH: u8 = 0x08;

/// What host_agent/inner_packet.py calls an `InnerPacket`, of plain IPv4.
#[derive(Debug, PartialEq, Eq)]
pub struct Seen {
    pub flow: Key,
    pub payload: usize,
    pub control: bool,
    pub push: bool,
    pub opening: bool,
}

/// Offset of the transport header of all packets that `look` knows.
pub const TRANSPORT: usize = 20;

/// Look at a packet; None: it is of a rarer kind, or malformed.
pub fn look(packet: &[u8]) -> Option<Seen> {
    if packet.len() < 28 || !plain_ipv4(packet) {
        return None;
    }
    let mut flow = [0; 13];
    flow[0] = packet[9];
    flow[1..].copy_from_slice(&packet[12..24]);
    let room = packet.len() - TRANSPORT;
    Some(match packet[9] {
        TCP => {
            let flow = tcp_key(packet)?;
            let payload = room - usize::from(packet[32] >> 4) * 4;
            let flags = packet[33];
            Seen {
                flow,
                payload,
                control: payload == 0 || flags & (SYN | RST) != 0,
                push: flags & (PSH | FIN) != 0,
                opening: flags & SYN != 0,
            }
        }
        UDP => Seen { flow, payload: room - 8, control: false, push: true, opening: false },
        protocol => {
            flow[9..].fill(0);
            // ICMPv6 (58) over IPv4 is control as well: what is none is answered the same way
            let control = protocol == ICMP || protocol == 58;
            Seen { flow, payload: room, control, push: true, opening: false }
        }
    })
}
