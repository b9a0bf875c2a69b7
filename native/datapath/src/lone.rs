//! Lone packets, carried by what the agent's core has decided of them beforehand (host_agent/lone.py).
//!
//! A plan says what the core would do with a flow's next packets, as long as nothing else happens. Whatever is unusual
//! fits no plan, and is left to the core; and so is everything after something that the plans do not foresee. The core
//! hears of each packet afterwards, and decides by its ordinary rules what has been done already.

use std::collections::VecDeque;

use crate::header::{Header, CLASS_MASK, CONTROL, SOURCE};
use crate::inner::{look_plain, FlowKey, Key, Seen, TCP};

pub const CODED: u8 = 0x04;
const ECN: u8 = 0b11;
/// Outer congestion marks with which a packet is delivered as it is: not capable, and ECT(0) (RFC 6040, figure 4).
const HARMLESS_ECN: [u8; 2] = [0b00, 0b10];
const NOT_ORDINARY: u8 = 0x01 | 0x02 | 0x04; // FIN, SYN, RST
const FLAGS_AT: usize = 33;

/// Where source ports come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ports {
    Always(u16),
    /// The next of these `turns`, which flows share.
    Turn(usize),
}

/// How packets of a flow leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// As in the header: traffic class, and whether it is coded.
    pub flags: u8,
    /// Type of service without congestion marks.
    pub tos: u8,
    pub ports: Ports,
}

#[derive(Clone, Copy, Debug)]
pub struct Peer {
    pub address: [u8; 4],
    /// Number of the next datagram to it.
    pub number: u32,
    /// What its datagrams are proved by.
    pub session: u32,
    /// The newest number that came from it.
    pub newest: u32,
    /// Datagrams that may still come before it is told of them; 0: also where it is not heard.
    pub room: u32,
}

#[derive(Clone, Copy, Debug)]
pub struct Send {
    pub key: Key,
    pub peer: usize,
    pub flow: u32,
    pub destination_port: u16,
    pub position: u32,
    /// Payload until class or priority change; data leave while this is above 0.
    pub budget: u64,
    pub control: Option<Way>,
    pub data: Option<Way>,
}

#[derive(Clone, Copy, Debug)]
pub struct Receive {
    pub peer: usize,
    pub flow: u32,
    pub key: Key,
    /// The position that goes out at once.
    pub position: u32,
}

/// A datagram that is to leave: its header, and what the outer one says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaving {
    pub address: [u8; 4],
    pub source_port: u16,
    pub destination_port: u16,
    pub tos: u8,
    pub header: Header,
}

#[derive(Debug, Default)]
pub struct Plans {
    /// Our own session, and the largest inner packet.
    pub session: u32,
    pub mtu: usize,
    pub peers: Vec<Peer>,
    pub turns: Vec<VecDeque<u16>>,
    pub sends: Vec<Send>,
    pub receives: Vec<Receive>,
}

/// Nothing that begins or ends a connection.
fn ordinary(packet: &[u8], seen: &Seen) -> bool {
    seen.protocol != TCP || packet[FLAGS_AT] & NOT_ORDINARY == 0
}

impl Plans {
    /// Nothing is planned any more.
    pub fn clear(&mut self) {
        self.peers.clear();
        self.turns.clear();
        self.sends.clear();
        self.receives.clear();
    }

    /// What a packet of the host leaves as; None: no plan holds for it, and nothing has changed.
    pub fn leave(&mut self, packet: &[u8], sent_us: u32) -> Option<(Leaving, Seen)> {
        if packet.len() > self.mtu {
            return None;
        }
        let seen = look_plain(packet)?;
        let plan = self.sends.iter_mut().find(|plan| FlowKey::V4(plan.key) == seen.flow)?;
        if !ordinary(packet, &seen) {
            return None;
        }
        let way = if seen.control { plan.control? } else { plan.data.filter(|_| plan.budget > 0)? };
        let source_port = match way.ports {
            Ports::Always(port) => port,
            Ports::Turn(turn) => self.turns[turn].pop_front()?,
        };
        let peer = &mut self.peers[plan.peer];
        let leaving = Leaving {
            address: peer.address,
            source_port,
            destination_port: plan.destination_port,
            tos: way.tos | packet[1] & ECN,
            header: Header {
                kind: SOURCE,
                flags: way.flags,
                session: self.session,
                number: peer.number,
                sent_us,
                flow: plan.flow,
                position: plan.position,
            },
        };
        peer.number = peer.number.wrapping_add(1);
        if !seen.control {
            plan.position = plan.position.wrapping_add(1);
            plan.budget = plan.budget.saturating_sub(seen.payload as u64);
        }
        if way.flags & CODED != 0 {
            self.sends.clear(); // repairs may follow, and take numbers and entropy values
        }
        Some((leaving, seen))
    }

    /// The inner packet of a datagram, to be delivered; None: no plan holds for it, and nothing has changed.
    pub fn come<'d>(&mut self, address: [u8; 4], tos: u8, datagram: &'d [u8]) -> Option<&'d [u8]> {
        let at = self.peers.iter().position(|peer| peer.address == address)?;
        let peer = &mut self.peers[at];
        if peer.room == 0 || !HARMLESS_ECN.contains(&(tos & ECN)) {
            return None;
        }
        let (header, packet) = Header::decode(datagram)?;
        let ahead = header.number.wrapping_sub(peer.newest);
        if header.kind != SOURCE || header.session != peer.session || ahead == 0 || ahead >= 1 << 31 {
            return None;
        }
        let mut plans = self.receives.iter_mut();
        let plan = plans.find(|plan| plan.peer == at && plan.flow == header.flow)?;
        let seen = look_plain(packet)?;
        if seen.flow != FlowKey::V4(plan.key) || !ordinary(packet, &seen) {
            return None;
        }
        if header.flags & CLASS_MASK != CONTROL {
            if header.position != plan.position {
                return None;
            }
            plan.position = plan.position.wrapping_add(1);
        }
        peer.newest = header.number;
        peer.room -= 1;
        Some(packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: Key = [17, 10, 0, 0, 1, 10, 0, 0, 2, 0, 7, 0, 9];

    fn udp(payload: usize) -> Vec<u8> {
        let mut packet = vec![0; 28 + payload];
        packet[0] = 0x45;
        packet[1] = 0b10;
        packet[2..4].copy_from_slice(&(28 + payload as u16).to_be_bytes());
        packet[9] = KEY[0];
        packet[12..24].copy_from_slice(&KEY[1..]);
        packet
    }

    fn plans(flags: u8) -> Plans {
        let way = Way { flags, tos: 0x20, ports: Ports::Turn(0) };
        Plans {
            session: 5,
            mtu: 100,
            peers: vec![Peer {
                address: [9; 4],
                number: u32::MAX,
                session: 5,
                newest: u32::MAX - 1,
                room: 3,
            }],
            turns: vec![VecDeque::from([50000, 50001, 50002])],
            sends: vec![Send {
                key: KEY,
                peer: 0,
                flow: 3,
                destination_port: 47001,
                position: u32::MAX,
                budget: 15,
                control: None,
                data: Some(way),
            }],
            receives: vec![Receive { peer: 0, flow: 3, key: KEY, position: u32::MAX }],
        }
    }

    fn datagram(leaving: &Leaving, packet: &[u8]) -> Vec<u8> {
        let mut datagram = leaving.header.encode(packet).to_vec();
        datagram.extend_from_slice(packet);
        datagram
    }

    #[test]
    fn what_leaves_by_one_agents_plan_comes_by_the_others() {
        let (mut here, mut there) = (plans(1), plans(1));
        for (expected, number) in [(50000, u32::MAX), (50001, 0)] {
            let packet = udp(10);
            let (leaving, _) = here.leave(&packet, 77).unwrap();
            assert_eq!((leaving.source_port, leaving.header.number), (expected, number));
            assert_eq!((leaving.tos, leaving.header.position), (0x22, number));
            let data = datagram(&leaving, &packet);
            assert_eq!(there.come([9; 4], leaving.tos, &data), Some(&packet[..]));
            assert_eq!(there.come([9; 4], leaving.tos, &data), None, "a replay");
        }
        assert!(here.leave(&udp(10), 77).is_none(), "the class would change");
    }

    #[test]
    fn a_coded_packet_ends_all_plans_to_send_for_repairs_may_follow() {
        let mut here = plans(1 | CODED);
        assert!(here.leave(&udp(1), 0).is_some());
        assert!(here.leave(&udp(1), 0).is_none());
    }

    #[test]
    fn what_is_unusual_is_left_to_the_core_and_changes_nothing() {
        let (mut here, mut there) = (plans(1), plans(1));
        assert!(here.leave(&udp(73), 0).is_none(), "too large");
        let mut fragment = udp(10);
        fragment[6] = 0x20;
        assert!(here.leave(&fragment, 0).is_none());
        let packet = udp(10);
        let (leaving, _) = here.leave(&packet, 0).unwrap();
        let good = datagram(&leaving, &packet);
        for length in 0..good.len() {
            assert_eq!(there.come([9; 4], 0, &good[..length]), None, "length {length}");
        }
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(there.come([9; 4], 0, &bad), None, "bit {bit}");
        }
        assert_eq!(there.come([8; 4], 0, &good), None, "foreign");
        assert_eq!(there.come([9; 4], 3, &good), None, "congestion experienced");
        for other in [
            Header { session: 6, ..leaving.header },
            Header { flow: 4, ..leaving.header },
            Header { kind: 2, ..leaving.header },
            Header { position: 7, ..leaving.header },
            Header { number: leaving.header.number.wrapping_sub(1), ..leaving.header },
        ] {
            let data = datagram(&Leaving { header: other, ..leaving }, &packet);
            assert_eq!(there.come([9; 4], 0, &data), None, "{other:?}");
        }
        assert_eq!(there.come([9; 4], 0, &good), Some(&packet[..]));
    }

    #[test]
    fn a_peer_that_is_to_be_told_next_is_left_to_the_core() {
        let (mut here, mut there) = (plans(1), plans(1));
        there.peers[0].room = 0;
        let packet = udp(1);
        let (leaving, _) = here.leave(&packet, 0).unwrap();
        assert_eq!(there.come([9; 4], 0, &datagram(&leaving, &packet)), None);
    }
}
