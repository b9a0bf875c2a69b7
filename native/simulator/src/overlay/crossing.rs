//! Between hosts, agents and the network: packets are wrapped as they leave a host and come out as agents release them.

use std::sync::Arc;

use agent::priority::FlowTypes;
use agent::LeafId;

use super::connection::Connection;
use super::datagram::Carried;
use super::inner::{back, Inner};
use super::{switching, Lingering, ModeEvent, Overlay, Record, Settings, SplitEvent};
use crate::config::Config;
use crate::events::Kind;
use crate::flow::{Demand, Flow};
use crate::packets::{Cargo, Frame, Handle, Marks, Packet, NO_FLOW, NO_PATH};
use crate::queue::Discipline;
use crate::recording::{PacketKind, Recorded};
use crate::simulation::Simulation;
use crate::time::{Time, NEVER, SECOND};
use crate::transport::{Answer, Arrived};
use crate::Error;

/// Set in the number of an entry of the heap: it is a host's agent's.
pub const AGENT: u32 = 1 << 31;
/// The controller's entry, and that of its channel, among those of agents.
pub const CONTROLLER: u32 = (1 << 31) - 1;
pub const CHANNEL: u32 = (1 << 31) - 2;

impl Simulation {
    /// Make a run of hosts with agents.
    pub fn with_overlay(
        config: Config,
        demands: Vec<Demand>,
        settings: Settings,
    ) -> Result<Simulation, Error> {
        let (seed, flows) = (config.seed, demands.len());
        let endless: Vec<bool> = settings.lines.iter().map(|line| line.endless).collect();
        let mut simulation = Simulation::new(config, demands)?;
        let connection = settings.admission.map(|_| Connection::of(&simulation.config)).transpose()?;
        let overlay = Overlay::new(settings, &simulation.topology, connection, seed, flows)?;
        simulation.overlay = Some(Box::new(overlay));
        simulation.arm_controller();
        simulation.endless = endless.iter().filter(|&&endless| endless).count();
        Ok(simulation)
    }

    /// Return what agents counted of each flow, by row; nothing where there are none.
    pub fn records(&self) -> &[Record] {
        self.overlay.as_ref().map_or(&[], |overlay| overlay.records())
    }

    /// Return the estimate of pB that a host's agent has towards another host's leaf; None: nothing has left for it, or
    /// nothing that is coded wants one.
    pub fn blocking_probability(&mut self, from: u32, to: u32) -> Option<f64> {
        let overlay = self.overlay.as_mut()?;
        let (leaf, now) = (overlay.places.get(to as usize)?.leaf, overlay.seconds(self.now));
        overlay.hosts.get_mut(from as usize)?.sender.blocking_probability(LeafId(leaf), now)
    }

    /// Return whether a flow has no end.
    pub(crate) fn is_endless(&self, row: u32) -> bool {
        self.overlay.as_ref().is_some_and(|overlay| overlay.settings.lines[row as usize].endless)
    }

    /// Return the path that a flow's data takes where leaves hash its class by flow, by row; None: it has no choice, or
    /// goes through no agents.
    pub fn hashed_path(&self, row: usize) -> Option<u16> {
        let (overlay, demand) = (self.overlay.as_ref()?, self.demands.get(row)?);
        overlay.hashed_path(row as u32, (demand.source, demand.destination), &self.topology)
    }

    /// Note that a host will send a flow, which its sender announces.
    pub(crate) fn announce(&mut self, row: u32, demand: &Demand) {
        let Some(overlay) = &mut self.overlay else { return };
        let key = datapath::inner::FlowKey::V4(overlay.key(row, demand.source, demand.destination));
        let endless = overlay.settings.lines[row as usize].endless;
        let bytes = if endless { f64::INFINITY } else { demand.bytes as f64 };
        overlay.hosts[demand.source as usize].announce(key, bytes);
    }

    /// Return a packet of a host as its agent sees it.
    pub(super) fn inside_of(&mut self, host: u32, packet: &Packet) -> Option<Inner> {
        let payload = self.config.lengths.payload;
        let flow = self.flows.get(packet.flow)?;
        let (row, bytes, last) = (flow.number, flow.demand.bytes, flow.packets - 1);
        let (source, destination) = (flow.demand.source, flow.demand.destination);
        let overlay = self.overlay.as_ref()?;
        let key = overlay.key(row, source, destination);
        let data = packet.cargo == Cargo::Data;
        let behind = (u64::from(packet.number) * u64::from(payload)).min(bytes);
        Some(Inner {
            place: packet.flow,
            row,
            key: if host == source { key } else { back(key) },
            cargo: packet.cargo,
            marks: packet.marks,
            rank: packet.priority,
            push: !data || packet.number == last,
            number: packet.number,
            sequence: behind as u32,
            bytes: packet.bytes,
            payload: if data { packet.bytes - self.config.lengths.header } else { 0 },
            stamp: packet.stamp,
            answer: (packet.cargo == Cargo::Acknowledgement).then(|| Arc::new(Answer::of(packet))),
            window: None,
        })
    }

    /// Send a packet of a host through its agent.
    pub(crate) fn wrap(&mut self, host: u32, packet: &Packet) {
        let Some(inner) = self.inside_of(host, packet) else { return };
        let Some(overlay) = &mut self.overlay else { return };
        let (to, now) = (overlay.places[packet.destination as usize], overlay.seconds(self.now));
        overlay.hosts[host as usize].send(inner, to, now, &mut overlay.out);
        self.depart(host);
        self.arm_agent(host);
    }

    /// Send the datagrams that wait to leave a host.
    fn depart(&mut self, host: u32) {
        let Some(overlay) = &mut self.overlay else { return };
        let mut out = std::mem::take(&mut overlay.out);
        let by_rank = self.config.buffer.discipline == Discipline::PFabric;
        for datagram in out.drain(..) {
            let of = datagram.of_flow();
            let alive =
                |&(place, row): &(u32, u32)| self.flows.get(place).is_some_and(|flow| flow.number == row);
            let flow = of.filter(alive).map_or(NO_FLOW, |(place, _)| place);
            let packet = Packet {
                flow,
                number: datagram.head.number,
                bytes: datagram.bytes,
                priority: if by_rank { datagram.rank() } else { u32::from(datagram.priority) },
                destination: datagram.to,
                cargo: Cargo::Datagram,
                marks: Marks { capable: datagram.ecn != 0, ..Marks::default() },
                beyond: 0,
                stamp: self.now,
                blocks: Default::default(),
            };
            let mut frame = self.launch(packet);
            let place = frame.handle as usize;
            self.totals.feedback.made += u64::from(flow == NO_FLOW);
            let Some(overlay) = &mut self.overlay else { return };
            if overlay.inside.len() <= place {
                overlay.inside.resize_with(place + 1, || None);
            }
            if !overlay.controller.watches() {
                // what its leaf will choose is known: when it comes there, what is inside is in no cache
                frame.path = overlay.path(&datagram, &self.topology);
            }
            overlay.inside[place] = Some(datagram);
            self.offer(self.topology.first(host), frame);
        }
        if let Some(overlay) = &mut self.overlay {
            overlay.out = out;
        }
    }

    /// Return what a packet carries that is dropped, and forget it; None: a repair, or agents' own.
    pub(crate) fn cargo_of(&mut self, handle: Handle, packet: &Packet) -> Option<Cargo> {
        if packet.cargo != Cargo::Datagram {
            return Some(packet.cargo);
        }
        self.totals.feedback.dropped += u64::from(packet.flow == NO_FLOW);
        let datagram = self.overlay.as_mut()?.inside.get_mut(handle as usize)?.take()?;
        match datagram.carried {
            Carried::Source(inner) => Some(inner.cargo),
            _ => None,
        }
    }

    /// Return what is recorded of a packet that is an agent's; None: it is none.
    pub(crate) fn recorded_datagram(&self, handle: Handle) -> Option<Recorded> {
        let datagram = self.overlay.as_ref()?.inside.get(handle as usize)?.as_ref()?;
        let (kind, number) = match &datagram.carried {
            Carried::Source(inner) => (PacketKind::of(inner.cargo), inner.number),
            Carried::Repair { symbol, .. } => {
                (PacketKind::Repair, symbol.packets.first().map_or(0, |first| first.number))
            }
            Carried::Feedback(_) => (PacketKind::Feedback, datagram.head.number),
        };
        Some(Recorded {
            flow: datagram.of_flow().map(|(_, row)| row),
            number,
            kind,
            class: datagram.head.class,
            bytes: datagram.bytes,
            source: datagram.from,
            destination: datagram.to,
        })
    }

    /// Pass a datagram that has arrived to the agent of its host.
    pub(crate) fn unwrap(&mut self, frame: &Frame, packet: &Packet) {
        self.totals.feedback.delivered += u64::from(packet.flow == NO_FLOW);
        let Some(overlay) = &mut self.overlay else { return };
        let inside = overlay.inside.get_mut(frame.handle as usize);
        let Some(datagram) = inside.and_then(Option::take) else { return };
        let (host, from) = (datagram.to, overlay.places[datagram.from as usize]);
        let stamp = match frame.path {
            NO_PATH => 0,
            path => switching::stamp(&self.topology, datagram.from, host, path),
        };
        let now = overlay.seconds(self.now);
        let (out, delivered) = (&mut overlay.out, &mut overlay.delivered);
        overlay.hosts[host as usize].receive(
            datagram,
            from,
            (stamp, packet.marks.congested),
            now,
            out,
            delivered,
        );
        self.hand_up(host);
    }

    /// Hand packets that an agent has released to their host.
    pub(super) fn hand_up(&mut self, host: u32) {
        self.depart(host);
        self.ask(host);
        let Some(overlay) = &mut self.overlay else { return };
        let mut delivered = std::mem::take(&mut overlay.delivered);
        for inner in delivered.drain(..) {
            self.take_window(&inner);
            let bare = inner.cargo == Cargo::Acknowledgement && inner.answer.is_none();
            let Inner { place, row, cargo, number, stamp, marks, answer, .. } = inner;
            if bare {
                self.go_on(place, row);
                continue;
            }
            if self.flows.get(place).is_some_and(|flow| flow.number == row) {
                let arrived = Arrived { number, stamp, marked: marks.congested };
                self.take_in(place, cargo, arrived, &answer.map(|answer| *answer).unwrap_or_default());
            }
        }
        if let Some(overlay) = &mut self.overlay {
            overlay.delivered = delivered;
        }
        self.arm_agent(host);
    }

    /// Make a flow's sender send what a bare window update lets it.
    fn go_on(&mut self, place: u32, row: u32) {
        let open = |flow: &&mut Flow| flow.number == row && !flow.finished() && flow.opening.is_none();
        if self.flows.get(place).filter(open).is_some() {
            self.send(place);
        }
    }

    /// Put the agent's next timer into the heap, unless an earlier entry is there.
    pub(super) fn arm_agent(&mut self, host: u32) {
        let Some(overlay) = &mut self.overlay else { return };
        let agent = &overlay.hosts[host as usize];
        let Some(deadline) = agent.deadline() else { return };
        if agent.timer != NEVER && deadline >= agent.due {
            return; // no earlier instant
        }
        let instant = overlay.instant(deadline, self.now);
        let agent = &mut overlay.hosts[host as usize];
        if instant < agent.timer {
            (agent.timer, agent.due) = (instant, deadline);
            self.events.push(instant, Kind::Timer, AGENT | host);
        }
    }

    pub(crate) fn agent_timer(&mut self, host: u32, time: Time) {
        if host == CONTROLLER {
            return self.controller_timer(time);
        }
        if host == CHANNEL {
            return self.channel_timer(time);
        }
        let Some(overlay) = &mut self.overlay else { return };
        if overlay.hosts[host as usize].timer != time {
            return; // an earlier one came in between
        }
        overlay.hosts[host as usize].timer = NEVER;
        overlay.settle(self.now, false);
        let now = overlay.seconds(self.now);
        let (out, delivered) = (&mut overlay.out, &mut overlay.delivered);
        overlay.hosts[host as usize].expired(now, out, delivered);
        self.hand_up(host);
    }

    /// Put the controller's next timer into the heap, unless an earlier entry is there.
    fn arm_controller(&mut self) {
        let Some(overlay) = &mut self.overlay else { return };
        let Some(deadline) = overlay.controller.deadline() else { return };
        let instant = overlay.instant(deadline, self.now);
        if instant < overlay.controller.timer {
            overlay.controller.timer = instant;
            self.events.push(instant, Kind::Timer, AGENT | CONTROLLER);
        }
    }

    fn controller_timer(&mut self, time: Time) {
        let Some(overlay) = &mut self.overlay else { return };
        if overlay.controller.timer != time {
            return; // an earlier one came in between
        }
        overlay.controller.timer = NEVER;
        let now = overlay.seconds(self.now);
        overlay.controller.expired(&mut overlay.hosts, (now, self.now));
        self.arm_controller();
    }

    /// Set, at all agents, which types of flows have thresholds of their own, from each flow's next packet on.
    pub fn set_types(&mut self, types: &FlowTypes) {
        let Some(overlay) = &mut self.overlay else { return };
        overlay.hosts.iter_mut().for_each(|host| host.set_types(types.clone()));
    }

    /// Return how leaves changed their modes, and how paths were split.
    pub fn events(&self) -> (&[ModeEvent], &[SplitEvent]) {
        self.overlay.as_ref().map_or((&[], &[]), |overlay| overlay.events())
    }

    /// Choose the path of a datagram at its leaf.
    pub(crate) fn switch(&mut self, handle: Handle) -> u16 {
        let Some(overlay) = self.overlay.as_mut().filter(|overlay| overlay.controller.watches()) else {
            return NO_PATH; // it was chosen when it left its host, if there was a choice
        };
        let Some(Some(datagram)) = overlay.inside.get(handle as usize) else { return NO_PATH };
        if self.topology.paths(datagram.from, datagram.to).is_empty() {
            return NO_PATH;
        }
        let leaf = self.topology.leaf_of(datagram.from) as u16;
        let (class, bytes) = (datagram.head.class, datagram.bytes);
        let now = self.now as f64 / SECOND as f64 * overlay.settings.clock;
        overlay.controller.passed(leaf, class, bytes, (now, self.now));
        let path = overlay.path(datagram, &self.topology);
        self.arm_controller();
        path
    }

    /// Return the row of a flow's copy, if that gives way when the flow is open, or when it has ended.
    pub(crate) fn copy_of(&self, row: u32, opened: bool) -> Option<u32> {
        let twin = self.overlay.as_ref()?.settings.lines[row as usize].twin?;
        (twin.of_opening == opened || !opened).then_some(twin.row)
    }

    /// Make agents forget a flow that is over, when none of its packets can come any more.
    pub(crate) fn linger(&mut self, row: u32) {
        let demand = self.demands[row as usize];
        let Some(overlay) = &mut self.overlay else { return };
        let (from, to) =
            (overlay.places[demand.source as usize], overlay.places[demand.destination as usize]);
        overlay.lingering.push_back(Lingering { until: self.now + overlay.linger, row, from, to });
    }

    /// Take what agents have counted of all flows.
    pub(crate) fn settle_all(&mut self) {
        let now = self.now;
        if let Some(overlay) = &mut self.overlay {
            overlay.settle(now, true);
        }
    }
}
