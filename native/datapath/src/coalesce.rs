//! Consecutive TCP segments of a flow as one write to the TUN device: host_agent/offload.py, `coalesce`.

use std::collections::HashMap;

use crate::inner::{plain_ipv4, ACK, PSH, TCP, UDP};

pub const VNET_BYTES: usize = 10;
const NEEDS_CHECKSUM: u8 = 1;
pub const GSO_NONE: u8 = 0;
pub const GSO_TCP4: u8 = 1;
pub const GSO_TCP6: u8 = 4;
const MAX_SUPER: usize = 65535 - 40;
/// Segments of 1400 B in the largest super-packet.
const COMMON_PARTS: usize = 47;

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
    let mut open: HashMap<&[u8], usize> = HashMap::new();
    for (index, &packet) in packets.iter().enumerate() {
        let Some((transport, flow)) = segment_of(packet) else {
            items.push(Item::Write(lone(packets, index)));
            continue;
        };
        let head = transport + usize::from(packet[transport + 12] >> 4) * 4;
        if head == packet.len() {
            // nothing but an ACK
            open.remove(flow);
            items.push(Item::Write(unfinished(packet, index, transport, 16)));
            continue;
        }
        let before = items.len().wrapping_sub(1);
        let known = match items.last() {
            Some(Item::Super(last)) if last.flow == flow => Some(before), // mostly: without a hash
            _ => open.get(flow).copied(),
        };
        if let Some(Item::Super(current)) = known.map(|known| &mut items[known]) {
            if current.take(packets, index, head) {
                continue;
            }
        }
        open.insert(flow, items.len());
        items.push(Item::Super(Super::begin(packets, index, (transport, flow), head)));
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

fn lone(packets: &[&[u8]], index: usize) -> Write {
    let packet = packets[index];
    if !plain_ipv4(packet) {
        return Write::Other(index);
    }
    match packet[9] {
        TCP => Write::Other(index),
        UDP if packet.len() < 28 => Write::Other(index),
        UDP => unfinished(packet, index, 20, 6),
        _ => bare(index),
    }
}

fn bare(index: usize) -> Write {
    Write::Packets { front: vec![0; VNET_BYTES], parts: vec![(index, 0)] }
}

/// Returns the write of a packet whose checksum, `offset` bytes into its header at `transport`, the kernel is to take
/// as unfinished.
fn unfinished(packet: &[u8], index: usize, transport: usize, offset: usize) -> Write {
    if packet[transport..transport + 4] == [0; 4] {
        return bare(index);
    }
    let field = transport + offset;
    let mut front = vnet(GSO_NONE, 0, 0, transport, offset);
    front.extend_from_slice(&packet[..field]);
    front.extend_from_slice(&pseudo_sum(packet, packet.len() - transport).to_be_bytes());
    Write::Packets { front, parts: vec![(index, field + 2)] }
}

fn vnet(kind: u8, head: usize, size: usize, start: usize, offset: usize) -> Vec<u8> {
    let mut header = Vec::with_capacity(VNET_BYTES + 120);
    header.extend_from_slice(&[NEEDS_CHECKSUM, kind]);
    for word in [head, size, start, offset] {
        header.extend_from_slice(&(word as u16).to_ne_bytes());
    }
    header
}

/// Returns the sum over the pseudo header, with `length` bytes from the transport header on.
fn pseudo_sum(packet: &[u8], length: usize) -> u16 {
    let (addresses, protocol) =
        if packet[0] >> 4 == 4 { (&packet[12..20], packet[9]) } else { (&packet[8..40], packet[6]) };
    ones_complement_sum(addresses, u32::from(protocol) + length as u32)
}

fn ones_complement_sum(data: &[u8], start: u32) -> u16 {
    let words = data.chunks_exact(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
    let mut total = start + words.sum::<u32>();
    while total >> 16 != 0 {
        total = (total & 0xFFFF) + (total >> 16);
    }
    total as u16
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
            next: sequence(packet, transport).wrapping_add(size as u32),
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
            || sequence(packet, transport) != self.next
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
        let (first, transport, many) = (packets[self.parts[0].0], self.transport, self.parts.len() > 1);
        let v4 = first[0] >> 4 == 4;
        let mut front = if many {
            vnet(if v4 { GSO_TCP4 } else { GSO_TCP6 }, self.head, self.size, transport, 16)
        } else {
            vnet(GSO_NONE, 0, 0, transport, 16)
        };
        front.extend_from_slice(&first[..self.head]);
        let head = &mut front[VNET_BYTES..];
        if many {
            head[transport + 13] |= packets[self.parts[self.parts.len() - 1].0][transport + 13] & PSH;
        }
        if v4 && many {
            head[2..4].copy_from_slice(&(self.bytes as u16).to_be_bytes());
            head[10..12].fill(0);
            let sum = 0xFFFF - ones_complement_sum(&head[..transport], 0);
            head[10..12].copy_from_slice(&sum.to_be_bytes());
        } else if !v4 {
            head[4..6].copy_from_slice(&((self.bytes - 40) as u16).to_be_bytes());
        }
        let sum = pseudo_sum(first, self.bytes - transport);
        head[transport + 16..transport + 18].copy_from_slice(&sum.to_be_bytes());
        Write::Packets { front, parts: self.parts }
    }
}

fn sequence(packet: &[u8], transport: usize) -> u32 {
    u32::from_be_bytes([
        packet[transport + 4],
        packet[transport + 5],
        packet[transport + 6],
        packet[transport + 7],
    ])
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
