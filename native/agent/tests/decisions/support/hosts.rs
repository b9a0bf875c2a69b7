//! Agents of hosts without a fabric: a test hands on what one sends to another, when and in the order that it wants.

use agent::host::{Bytes, Core, Datagram, FromUnderlay, HostPolicy, Identity};
use agent::paths::PathSettings;
use agent::peers::Known;
use agent::receiving::{Hold, ReceivePolicy, Receiver};
use agent::sending::{SendPolicy, Sender, Serving};
use agent::{Generator, LeafId};
use datapath::inner::Address;

/// Of 1500 B on the slowest fabric link.
pub const PACKET_TIME_S: f64 = 0.001;

/// Returns a policy without coding, which holds nothing back.
pub fn policy() -> HostPolicy {
    let receive = ReceivePolicy::new(PACKET_TIME_S, [Hold::For(0.0); 4]);
    HostPolicy { send: SendPolicy::plain(PACKET_TIME_S), receive, admission: None }
}

/// Returns what the directory says of a host: ten are at a leaf.
pub fn known(host: u8) -> Known {
    let overlay = Address::of(&[10, 128, host, 1]).expect("an address");
    Known {
        address: [10, 0, host, 1],
        session: u32::from(host),
        leaf: LeafId(u16::from(host) / 10),
        overlay: vec![overlay],
    }
}

/// Returns the agent of a host that knows these peers, and sprays.
pub fn host(number: u8, peers: &[u8], policy: HostPolicy) -> Core {
    let serving =
        Serving { policies: vec![PathSettings::Spray.policy(Generator::new(1))], serves: [0, 0, 0, 0] };
    let HostPolicy { send, receive, admission } = policy;
    let sender = Sender::new(send, serving, Generator::new(2));
    let identity = Identity { session: number.into(), mtu: 1426, broadcasts: Default::default() };
    let mut core = Core::new(identity, sender, Receiver::new(receive), 0.0);
    core.gate.set_policy(admission, 0.0);
    set_peers(&mut core, peers);
    core
}

/// Gives an agent another directory.
pub fn set_peers(core: &mut Core, peers: &[u8]) {
    core.set_directory(peers.iter().copied().map(known).collect(), None);
}

/// Returns an inner packet of the one UDP flow from a host to another; `number` is its payload.
pub fn packet(from: u8, to: u8, number: u32) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 32, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 128, from, 1, 10, 128, to, 1];
    packet.extend([4, 0, 0, 80, 0, 12, 0, 0]);
    packet.extend(number.to_be_bytes());
    packet
}

/// Returns a segment of the one TCP connection between two hosts: `bytes` of payload from `sequence` on, which acknowledges
/// what is before `acknowledged`.
pub fn segment_of_tcp(from: u8, to: u8, sequence: u32, acknowledged: u32, bytes: u32) -> Vec<u8> {
    let length = (40 + bytes as u16).to_be_bytes();
    let mut packet = vec![0x45, 0, length[0], length[1], 0, 0, 0x40, 0, 64, 6, 0, 0];
    packet.extend([10, 128, from, 1, 10, 128, to, 1, 4, 0, 4, 0]);
    packet.extend([sequence.to_be_bytes(), acknowledged.to_be_bytes()].concat());
    packet.extend([0x50, 0x10, 0xff, 0xff, 0, 0, 0, 0]);
    packet.resize(40 + bytes as usize, 0);
    packet
}

/// Returns the numbers of the packets that an agent has for its host.
pub fn delivered(core: &mut Core) -> Vec<u32> {
    let number = |packet: &Bytes| u32::from_be_bytes(packet[28..32].try_into().expect("four bytes"));
    core.packets_to_deliver().iter().map(number).collect()
}

/// Hands a datagram of a host to an agent; it took the path of that stamp.
pub fn hand_over(datagram: &Datagram, from: u8, stamp: u16, to: &mut Core, now: f64) {
    let data = [&datagram.header[..], &datagram.body].concat().into();
    let (address, tos) = (known(from).address, datagram.tos);
    to.receive_datagram(FromUnderlay { data, address, source_port: stamp, tos }, now);
}
