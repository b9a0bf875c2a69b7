//! Consecutive TCP segments of a flow as one write to the TUN device: host_agent/offload.py, `coalesce`.

use crate::checksum::{checksum, ones_complement_sum};
use crate::inner::{plain_ipv4, ACK, PSH, TCP, UDP};
use crate::word::word;

pub const VNET_BYTES: usize = 10;
/// Flag of a packet whose checksum is unfinished.
pub const NEEDS_CHECKSUM: u8 = 1;
pub const GSO_NONE: u8 = 0;
pub const GSO_TCP4: u8 = 1;
pub const GSO_TCP6: u8 = 4;
const MAX_SUPER: usize = 65535 - 40;
/// Segments of 1400 B in the largest super-packet.
const COMMON_PARTS: usize = 47;
/// Writes before a segment that it may become part of.
const MOST_OPEN: usize = 64;
/// Bytes before the rest of a packet that is written alone: most of TCP over IPv6, up to its checksum.
const MOST_FRONT: usize = VNET_BYTES + 40 + 18;

/// One write: `front`, then each part's packet from its offset on.
#[derive(Debug, PartialEq, Eq)]
pub enum Write {
    Packets {
        front: Vec<u8>,
        parts: Vec<(usize, usize)>,
    },
    /// A packet of a rare kind, which the caller has to write.
    Other(usize),
}

/// How one packet is written: `front`, then the packet from `rest` on.
#[derive(Debug)]
pub struct Lone {
    bytes: [u8; MOST_FRONT],
    length: usize,
    pub rest: usize,
}

impl Lone {
    fn bare() -> Lone {
        Lone { bytes: [0; MOST_FRONT], length: VNET_BYTES, rest: 0 }
    }

    /// Returns how a packet is written whose checksum, `offset` bytes into its header at `transport`, the kernel is to take
    /// as unfinished.
    fn unfinished(packet: &[u8], transport: usize, offset: usize) -> Lone {
        let field = transport + offset;
        let sum = pseudo_sum(packet, packet.len() - transport);
        let mut bytes = [0; MOST_FRONT];
        bytes[..VNET_BYTES].copy_from_slice(&vnet(GSO_NONE, [0, 0, transport, offset]));
        bytes[VNET_BYTES..][..field].copy_from_slice(&packet[..field]);
        bytes[VNET_BYTES + field..][..2].copy_from_slice(&sum.to_be_bytes());
        Lone { bytes, length: VNET_BYTES + field + 2, rest: field + 2 }
    }

    /// Returns the same, but of a packet without ports one whose checksum counts.
    fn unfinished_if_ports(packet: &[u8], transport: usize, offset: usize) -> Lone {
        if packet[transport..transport + 4] == [0; 4] {
            Lone::bare()
        } else {
            Lone::unfinished(packet, transport, offset)
        }
    }

    pub fn front(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    fn write(&self, index: usize) -> Write {
        Write::Packets { front: self.front().to_vec(), parts: vec![(index, self.rest)] }
    }
}

struct Super<'a> {
    flow: &'a [u8],
    transport: usize,
    head: usize,
    size: usize,
    bytes: usize,
    next: u32,
    closed: bool,
    parts: Vec<(usize, usize)>,
}

enum Item<'a> {
    Super(Super<'a>),
    Write(Write),
}

/// Returns the writes for sound `packets`; the order within flows is preserved.
pub fn coalesce(packets: &[&[u8]]) -> Vec<Write> {
    let mut items: Vec<Item<'_>> = Vec::new();
    for (index, &packet) in packets.iter().enumerate() {
        let Some((transport, flow)) = segment_of(packet) else {
            items.push(Item::Write(lone(packet).map_or(Write::Other(index), |lone| lone.write(index))));
            continue;
        };
        let open = items.iter_mut().rev().take(MOST_OPEN).find_map(|item| match item {
            Item::Super(open) if open.flow == flow => Some(open),
            _ => None,
        });
        let head = head_bytes(packet, transport);
        if head == packet.len() {
            // nothing but an ACK, before what follows
            if let Some(open) = open {
                open.closed = true;
            }
            items.push(Item::Write(Lone::unfinished_if_ports(packet, transport, 16).write(index)));
        } else if !open.is_some_and(|open| open.take(packets, index, head)) {
            items.push(Item::Super(Super::begin(packets, index, (transport, flow), head)));
        }
    }
    items
        .into_iter()
        .map(|item| match item {
            Item::Super(packet) => packet.write(packets),
            Item::Write(write) => write,
        })
        .collect()
}

/// Returns the offset of the TCP header, and the flow, of a segment of TCP over IPv4 without options or IPv6 without
/// extensions.
fn segment_of(packet: &[u8]) -> Option<(usize, &[u8])> {
    let (transport, flow) = if plain_ipv4(packet) && packet[9] == TCP {
        (20, packet.get(12..24)?)
    } else if packet.len() >= 40 && packet[0] >> 4 == 6 && packet[6] == TCP {
        (40, packet.get(8..44)?)
    } else {
        return None;
    };
    let head = usize::from(packet.get(transport + 12)? >> 4) * 4;
    (head >= 20 && transport + head <= packet.len()).then_some((transport, flow))
}

/// Returns the bytes of a segment's headers.
fn head_bytes(packet: &[u8], transport: usize) -> usize {
    transport + usize::from(packet[transport + 12] >> 4) * 4
}

/// Returns how a sound packet is written alone; None: it is of a rare kind.
pub fn lone(packet: &[u8]) -> Option<Lone> {
    match segment_of(packet) {
        Some((transport, _)) if head_bytes(packet, transport) == packet.len() => {
            Some(Lone::unfinished_if_ports(packet, transport, 16))
        }
        Some((transport, _)) => Some(Lone::unfinished(packet, transport, 16)),
        None if !plain_ipv4(packet) || packet[9] == TCP => None,
        None if packet[9] != UDP => Some(Lone::bare()),
        None => (packet.len() >= 28).then(|| Lone::unfinished_if_ports(packet, 20, 6)),
    }
}

/// Returns the header for the device; `words`: bytes of all headers and of a segment's payload (0: it is not to be cut),
/// offset of the transport header, and of the checksum in it.
fn vnet(kind: u8, words: [usize; 4]) -> [u8; VNET_BYTES] {
    let mut header = [0; VNET_BYTES];
    header[..2].copy_from_slice(&[NEEDS_CHECKSUM, kind]);
    for (field, word) in header[2..].chunks_exact_mut(2).zip(words) {
        field.copy_from_slice(&(word as u16).to_ne_bytes());
    }
    header
}

/// Returns the sum over the pseudo header, with `length` bytes from the transport header on.
fn pseudo_sum(packet: &[u8], length: usize) -> u16 {
    let (addresses, protocol) =
        if packet[0] >> 4 == 4 { (&packet[12..20], packet[9]) } else { (&packet[8..40], packet[6]) };
    ones_complement_sum(addresses, u32::from(protocol) + length as u32)
}

impl<'a> Super<'a> {
    fn begin(
        packets: &[&'a [u8]],
        index: usize,
        (transport, flow): (usize, &'a [u8]),
        head: usize,
    ) -> Super<'a> {
        let packet = packets[index];
        let size = packet.len() - head;
        let mut parts = Vec::with_capacity((packets.len() - index).min(COMMON_PARTS));
        parts.push((index, head));
        Super {
            flow,
            transport,
            head,
            size,
            bytes: packet.len(),
            next: word(packet, transport + 4).wrapping_add(size as u32),
            closed: packet[transport + 13] & !ACK != 0,
            parts,
        }
    }

    /// Add the segment if it follows and looks like the others: what a merger would lose is equal.
    fn take(&mut self, packets: &[&[u8]], index: usize, head: usize) -> bool {
        let (packet, first, transport) = (packets[index], packets[self.parts[0].0], self.transport);
        let payload = packet.len() - head;
        let flags = packet[transport + 13];
        if self.closed
            || word(packet, transport + 4) != self.next
            || payload > self.size
            || flags & !PSH != ACK
            || head != self.head
            || !alike(first, packet, transport, head)
            || self.bytes + payload > MAX_SUPER
        {
            return false;
        }
        self.parts.push((index, head));
        self.bytes += payload;
        self.next = self.next.wrapping_add(payload as u32);
        self.closed = flags & PSH != 0 || payload < self.size;
        true
    }

    fn write(self, packets: &[&[u8]]) -> Write {
        let (begin, transport) = (self.parts[0].0, self.transport);
        let (first, last) = (packets[begin], packets[self.parts[self.parts.len() - 1].0]);
        if self.parts.len() == 1 {
            return Lone::unfinished(first, transport, 16).write(begin);
        }
        let v4 = first[0] >> 4 == 4;
        let mut front = Vec::with_capacity(VNET_BYTES + self.head);
        let kind = if v4 { GSO_TCP4 } else { GSO_TCP6 };
        front.extend_from_slice(&vnet(kind, [self.head, self.size, transport, 16]));
        front.extend_from_slice(&first[..self.head]);
        let head = &mut front[VNET_BYTES..];
        head[transport + 13] |= last[transport + 13] & PSH;
        if v4 {
            head[2..4].copy_from_slice(&(self.bytes as u16).to_be_bytes());
            head[10..12].fill(0);
            let sum = checksum(&head[..transport], 0);
            head[10..12].copy_from_slice(&sum.to_be_bytes());
        } else {
            head[4..6].copy_from_slice(&((self.bytes - 40) as u16).to_be_bytes());
        }
        let sum = pseudo_sum(first, self.bytes - transport);
        head[transport + 16..transport + 18].copy_from_slice(&sum.to_be_bytes());
        Write::Packets { front, parts: self.parts }
    }
}

/// Returns true if two segments of one flow are equal in the IP header's fields that matter, ACK, window, urgent,
/// options.
fn alike(one: &[u8], other: &[u8], transport: usize, head: usize) -> bool {
    let same = |begin: usize, end: usize| one[begin..end] == other[begin..end];
    let ip = if transport == 20 { same(0, 2) && same(6, 10) } else { same(0, 4) && same(6, 8) };
    ip && same(transport + 8, transport + 12)
        && same(transport + 14, transport + 16)
        && same(transport + 18, head)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a segment of TCP over IPv4.
    fn segment(port: u16, sequence: u32, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0; 40];
        packet[0] = 0x45;
        packet[2..4].copy_from_slice(&(40 + payload.len() as u16).to_be_bytes());
        packet[9] = TCP;
        packet[20..22].copy_from_slice(&port.to_be_bytes());
        packet[24..28].copy_from_slice(&sequence.to_be_bytes());
        packet[32..34].copy_from_slice(&[5 << 4, ACK]);
        packet.extend_from_slice(payload);
        packet
    }

    /// Returns which packets each write has.
    fn written(packets: &[Vec<u8>]) -> Vec<Vec<usize>> {
        let slices: Vec<&[u8]> = packets.iter().map(Vec::as_slice).collect();
        let indices = |write: Write| match write {
            Write::Packets { parts, .. } => parts.into_iter().map(|(index, _)| index).collect(),
            Write::Other(index) => vec![index],
        };
        coalesce(&slices).into_iter().map(indices).collect()
    }

    #[test]
    fn segments_of_flows_that_take_turns_are_joined_as_far_as_is_looked_back() {
        for flows in [1, 2, MOST_OPEN, MOST_OPEN + 1] {
            let turn = |turn: usize| (0..flows).map(move |flow| segment(flow as u16, turn as u32 * 2, b"ab"));
            let joined: Vec<Vec<usize>> = (0..flows).map(|flow| vec![flow, flows + flow]).collect();
            let apart: Vec<Vec<usize>> = (0..2 * flows).map(|index| vec![index]).collect();
            let expected = if flows <= MOST_OPEN { joined } else { apart };
            assert_eq!(written(&(0..2).flat_map(turn).collect::<Vec<_>>()), expected, "{flows} flows");
        }
    }

    #[test]
    fn what_follows_an_ack_stays_behind_it() {
        let packets = [segment(1, 0, b"ab"), segment(2, 0, b"ab"), segment(1, 2, b""), segment(1, 2, b"ab")];
        assert_eq!(written(&packets), [[0], [1], [2], [3]]);
    }

    #[test]
    fn a_lone_packet_is_written_up_to_its_checksum_and_from_behind_it() {
        let packet = segment(1, 0, b"ab");
        let lone = lone(&packet).expect("TCP is no rare kind");
        let (header, head) = lone.front().split_at(VNET_BYTES);
        assert_eq!((header[0], header[1], &head[..36]), (NEEDS_CHECKSUM, GSO_NONE, &packet[..36]));
        let pseudo_header = u16::from(TCP) + 22;
        assert_eq!((&head[36..], lone.rest), (&pseudo_header.to_be_bytes()[..], 38));
    }
}
