//! Datagrams of flows: number, source ports, and what is remembered of each until the peer reports it.

use crate::class::TrafficClass;
use crate::departure::{microseconds, Content, Departure, Outer};
use crate::packet::{Packet, Sizes};
use crate::paths::{Departed, Steering};
use crate::peers::Peer;
use crate::priority::Priorities;
use crate::route::FlowRef;
use crate::sending::SendFlow;
use crate::underlay::BASE_PORT;
use crate::Seconds;

/// Whose datagrams leave, as wrapping sees it.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    /// What path policies know of it.
    pub flow: FlowRef,
    /// Its number on the wire; 0: our own feedback.
    pub name: u32,
    /// UDP destination port.
    pub port: u16,
    /// Type of service without congestion marks.
    pub tos: u8,
    /// Of the packets.
    pub class: TrafficClass,
}

impl Subject {
    /// Returns packets of one class of a flow.
    pub fn of<P>(flow: &SendFlow<P>, class: TrafficClass) -> Subject {
        let tos = flow.priority.tos[class.index()];
        Subject { flow: flow.for_paths(), name: flow.id, port: flow.port, tos, class }
    }
}

/// Makes datagrams. One for all peers.
pub struct Wrapping<P> {
    /// What decides types of service.
    pub priorities: Priorities,
    /// Path policies.
    pub steering: Steering,
    /// Datagrams that are to leave, in order.
    pub out: Vec<Departure<P>>,
}

impl<P> Wrapping<P> {
    /// Returns what has no datagrams yet.
    pub fn new(steering: Steering) -> Wrapping<P> {
        Wrapping { priorities: Priorities::default(), steering, out: Vec::new() }
    }

    /// Returns our feedback to a peer as a subject.
    pub fn own<Q: Packet>(&self, peer: &Peer<Q>) -> Subject {
        let (tos, class) = (self.priorities.control_tos(), TrafficClass::Control);
        Subject { flow: peer.own, name: 0, port: BASE_PORT, tos, class }
    }

    /// Appends the source ports of the next datagrams of a subject, whose contents have these sizes.
    pub fn draw<Q: Packet>(
        &mut self,
        subject: Subject,
        peer: &Peer<Q>,
        sizes: Sizes,
        now: Seconds,
        ports: &mut Vec<u16>,
    ) {
        self.steering.source_ports((peer.known.leaf, subject.class, subject.flow), sizes, now, ports);
    }

    /// Sends datagrams, as many as there are ports; remembers them by what the peer will report.
    ///
    /// `reported`: whether they count for what is outstanding: only what is sprayed and coded does, for a long flow's own
    /// queue would speak for all paths.
    pub fn leave<Q: Packet>(&mut self, peer: &mut Peer<Q>, leaving: Leaving<P>, now: Seconds) {
        let Leaving { subject, coded, reported, ecn, ports, content } = leaving;
        let (number, count) = (peer.number, ports.len() as u32);
        peer.number = number.wrapping_add(count);
        // no receipt ever speaks of feedback
        if subject.name != 0 && peer.logged {
            peer.sent.sent(number, &ports);
            if let Some(departures) = &mut peer.departures {
                let departed = Departed { flow: subject.name, class: subject.class, at: now };
                departures.sent(number, count, departed);
            }
        }
        if reported {
            peer.outstanding.sent(number, count, now);
        }
        self.out.push(Departure {
            outer: Outer { address: peer.known.address, port: subject.port, tos: subject.tos, ecn },
            class: subject.class,
            coded,
            flow: subject.name,
            number,
            sent_us: microseconds(now),
            ports,
            content,
        });
    }
}

/// Datagrams that are about to leave.
pub struct Leaving<P> {
    /// Whose they are.
    pub subject: Subject,
    /// Whether their sources belong to coding units.
    pub coded: bool,
    /// Whether they count for what is outstanding.
    pub reported: bool,
    /// Congestion marks of the sources.
    pub ecn: u8,
    /// Source ports, one for each.
    pub ports: Vec<u16>,
    /// What they carry.
    pub content: Content<P>,
}
