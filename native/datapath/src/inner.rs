//! The look at an inner packet: whose it is, where it goes, what it carries.

use std::fmt;

pub const TCP: u8 = 6;
pub const UDP: u8 = 17;
/// Protocol, addresses and ports of IPv4: what host_agent/inner_packet.py calls a packet's `flow`.
pub type Key = [u8; 13];

/// Returns true if this is IPv4 without options that states its true length and is no fragment.
pub fn plain_ipv4(packet: &[u8]) -> bool {
    packet.len() >= 20
        && packet[0] == 0x45
        && usize::from(u16::from_be_bytes([packet[2], packet[3]])) == packet.len()
        && packet[6] & 0x3F == 0
        && packet[7] == 0
}

pub const ICMP: u8 = 1;
pub const ICMPV6: u8 = 58;
/// TCP's flags: the sender has no more data.
pub const FIN: u8 = 0x01;
/// A connection begins.
pub const SYN: u8 = 0x02;
/// A connection breaks off.
pub const RST: u8 = 0x04;
/// The receiver is to be given the data at once.
pub const PSH: u8 = 0x08;
/// The acknowledgement number counts.
pub const ACK: u8 = 0x10;
const FRAGMENT: u8 = 44;
/// Hop-by-hop options, routing, mobility, destination options: all say their length in the same place.
const EXTENSIONS: [u8; 4] = [0, 43, 60, 135];

/// An overlay address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Address {
    V4([u8; 4]),
    V6([u8; 16]),
}

impl Address {
    /// Returns the address of these bytes (4 or 16); None for another length.
    pub fn of(bytes: &[u8]) -> Option<Address> {
        let v4 = bytes.try_into().ok().map(Address::V4);
        v4.or_else(|| bytes.try_into().ok().map(Address::V6))
    }

    /// Returns its bytes.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Address::V4(bytes) => bytes,
            Address::V6(bytes) => bytes,
        }
    }

    /// Returns true for multicast and the limited broadcast.
    pub fn is_group(&self) -> bool {
        match self {
            Address::V4(bytes) => (224..=239).contains(&bytes[0]) || *bytes == [0xFF; 4],
            Address::V6(bytes) => bytes[0] == 0xFF,
        }
    }
}

/// What makes a flow and direction: protocol (1 B), source, destination (4 or 16 B each), ports (2 B each, zero where
/// there are none).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FlowKey {
    V4(Key),
    V6([u8; 37]),
}

impl FlowKey {
    /// Returns the key of these bytes (13 or 37); None for another length.
    pub fn of(bytes: &[u8]) -> Option<FlowKey> {
        let v4 = bytes.try_into().ok().map(FlowKey::V4);
        v4.or_else(|| bytes.try_into().ok().map(FlowKey::V6))
    }

    fn build(protocol: u8, addresses: &[u8], ports: &[u8]) -> FlowKey {
        let fill = |key: &mut [u8]| {
            key[0] = protocol;
            let end = 1 + addresses.len();
            key[1..end].copy_from_slice(addresses);
            key[end..].copy_from_slice(ports);
        };
        if addresses.len() == 8 {
            let mut key = [0; 13];
            fill(&mut key);
            FlowKey::V4(key)
        } else {
            let mut key = [0; 37];
            fill(&mut key);
            FlowKey::V6(key)
        }
    }

    /// Returns its bytes.
    pub fn bytes(&self) -> &[u8] {
        match self {
            FlowKey::V4(key) => key,
            FlowKey::V6(key) => key,
        }
    }

    /// Returns the number of the protocol.
    pub fn protocol(&self) -> u8 {
        self.bytes()[0]
    }

    /// Returns true where it has ports.
    pub fn has_ports(&self) -> bool {
        let bytes = self.bytes();
        bytes[bytes.len() - 4..] != [0; 4]
    }

    /// Returns where its packets come from.
    pub fn source(&self) -> Address {
        match self {
            FlowKey::V4(key) => Address::V4([key[1], key[2], key[3], key[4]]),
            FlowKey::V6(key) => Address::of(&key[1..17]).unwrap_or(Address::V6([0; 16])),
        }
    }

    /// Returns where its packets go.
    pub fn destination(&self) -> Address {
        match self {
            FlowKey::V4(key) => Address::V4([key[5], key[6], key[7], key[8]]),
            FlowKey::V6(key) => Address::of(&key[17..33]).unwrap_or(Address::V6([0; 16])),
        }
    }

    /// Returns the flow in the other direction.
    pub fn reverse(&self) -> FlowKey {
        let bytes = self.bytes();
        let (addresses, ports) = bytes[1..].split_at(bytes.len() - 5);
        let mut swapped = [0; 32];
        let half = addresses.len() / 2;
        swapped[..half].copy_from_slice(&addresses[half..]);
        swapped[half..2 * half].copy_from_slice(&addresses[..half]);
        FlowKey::build(bytes[0], &swapped[..2 * half], &[ports[2], ports[3], ports[0], ports[1]])
    }
}

/// An inner packet, looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    pub flow: FlowKey,
    /// What is behind the network's headers; of a fragment what the first one would have there.
    pub protocol: u8,
    /// Offset of the transport header.
    pub transport: usize,
    /// Bytes behind the transport header.
    pub payload: usize,
    /// SYN, RST, an ACK alone, ICMP.
    pub control: bool,
    /// Nothing follows at once.
    pub push: bool,
    /// SYN: a connection begins, even if an earlier one had the same addresses and ports.
    pub opening: bool,
    /// FIN or RST: its sender sends no more.
    pub ending: bool,
    /// FIN: all of its sender's data is before this.
    pub finishing: bool,
}

/// Why a packet cannot be carried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// Name of the counter.
    pub reason: &'static str,
    pub text: String,
}

impl Malformed {
    fn new(reason: &'static str, text: String) -> Malformed {
        Malformed { reason, text }
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Offset of the transport header of plain IPv4.
pub const TRANSPORT: usize = 20;

/// Returns the flow of a TCP packet over plain IPv4, by which a run of segments is recognised without a further look.
pub fn look_plain(packet: &[u8]) -> Option<Seen> {
    if packet.len() < 28 || !plain_ipv4(packet) {
        return None;
    }
    look(packet).ok()
}

/// Read the headers of an IPv4 or IPv6 packet. All fragments of a packet are one flow without ports, so that they keep
/// together.
pub fn look(packet: &[u8]) -> Result<Seen, Malformed> {
    let size = packet.len();
    if size < 20 {
        return Err(Malformed::new("inner_truncated", format!("{size} B are no IP packet")));
    }
    match packet[0] >> 4 {
        4 => {
            let total = usize::from(u16::from_be_bytes([packet[2], packet[3]]));
            let transport = usize::from(packet[0] & 0x0F) * 4;
            if transport < 20 || transport > total || total != size {
                return Err(Malformed::new(
                    "inner_length",
                    format!("IPv4 packet of {size} B says {total} B"),
                ));
            }
            let fragmented = packet[6] & 0x3F != 0 || packet[7] != 0;
            let addresses = &packet[12..20];
            behind(packet, addresses, Upper { protocol: packet[9], at: transport, fragmented })
        }
        6 => {
            if size < 40 {
                return Err(Malformed::new("inner_truncated", format!("{size} B are no IPv6 packet")));
            }
            let end = 40 + usize::from(u16::from_be_bytes([packet[4], packet[5]]));
            if end != size {
                return Err(Malformed::new("inner_length", format!("IPv6 packet of {size} B says {end} B")));
            }
            behind(packet, &packet[8..40], upper_of_ipv6(packet))
        }
        version => Err(Malformed::new("inner_not_ip", format!("version {version} is neither IPv4 nor IPv6"))),
    }
}

/// What lies behind the network's headers.
struct Upper {
    protocol: u8,
    at: usize,
    /// Whether its header may be missing.
    fragmented: bool,
}

fn upper_of_ipv6(packet: &[u8]) -> Upper {
    let (mut protocol, mut at, mut fragmented) = (packet[6], 40, false);
    while EXTENSIONS.contains(&protocol) || protocol == FRAGMENT {
        if at + 8 > packet.len() {
            return Upper { protocol, at: packet.len(), fragmented: true };
        }
        let following = packet[at];
        if protocol == FRAGMENT {
            fragmented |= u16::from_be_bytes([packet[at + 2], packet[at + 3]]) & 0xFFF9 != 0;
            at += 8;
        } else {
            at += 8 + usize::from(packet[at + 1]) * 8;
        }
        protocol = following;
    }
    Upper { protocol, at: at.min(packet.len()), fragmented }
}

fn behind(packet: &[u8], addresses: &[u8], upper: Upper) -> Result<Seen, Malformed> {
    let Upper { protocol, at, fragmented } = upper;
    let room = packet.len() - at;
    let mut seen = Seen {
        flow: FlowKey::V4([0; 13]),
        protocol,
        transport: at,
        payload: room,
        control: false,
        push: true,
        opening: false,
        ending: false,
        finishing: false,
    };
    if fragmented || (protocol != TCP && protocol != UDP) {
        seen.flow = FlowKey::build(protocol, addresses, &[0; 4]);
        seen.control = protocol == ICMP || protocol == ICMPV6;
        return Ok(seen);
    }
    let least = if protocol == TCP { 20 } else { 8 };
    if room < least {
        return Err(Malformed::new(
            "inner_truncated",
            format!("{room} B are no header of protocol {protocol}"),
        ));
    }
    seen.flow = FlowKey::build(protocol, addresses, &packet[at..at + 4]);
    seen.payload = room - 8;
    if protocol == TCP {
        let header = usize::from(packet[at + 12] >> 4) * 4;
        if header < 20 || header > room {
            return Err(Malformed::new("inner_length", format!("TCP header of {header} B in {room} B")));
        }
        let flags = packet[at + 13];
        seen.payload = room - header;
        seen.control = seen.payload == 0 || flags & (SYN | RST) != 0;
        seen.push = flags & (PSH | FIN) != 0;
        seen.opening = flags & SYN != 0;
        seen.ending = flags & (FIN | RST) != 0;
        seen.finishing = flags & FIN != 0;
    }
    Ok(seen)
}
