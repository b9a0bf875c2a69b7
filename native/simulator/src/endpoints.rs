//! The ends of flows: what hosts send, what becomes of it when it arrives or is dropped, timers, and the end.

use crate::events::{Event, Kind};
use crate::flow::Flow;
use crate::opening::Opening;
use crate::packets::{Cargo, Frame, Handle, Marks, Packet};
use crate::recording::{PacketKind, Release};
use crate::simulation::Simulation;
use crate::time::Time;
use crate::time::{NEVER, SECOND};
use crate::transport::{Answer, Arrived};
use crate::{outgoing, Error};

/// A run in which nothing arrives for so long while flows are under way will not end.
const STALL: Time = 600 * SECOND;

impl Simulation {
    pub(crate) fn lose(&mut self, handle: Handle) {
        let packet = self.packets.remove(handle);
        if let Some(recording) = &mut self.recording {
            recording.dropped(handle, self.now);
        }
        self.totals.packets.dropped += 1;
        let cargo = self.cargo_of(handle, &packet);
        let data = cargo == Some(Cargo::Data);
        if data {
            self.totals.data_dropped += 1;
        } else if cargo == Some(Cargo::Acknowledgement) {
            self.totals.acknowledgements_dropped += 1;
        }
        if let Some(flow) = self.flows.get(packet.flow) {
            flow.tally.dropped += 1;
            flow.outcome.dropped += u64::from(data);
        }
        self.retire(packet.flow);
    }

    pub(crate) fn deliver(&mut self, frame: Frame) {
        let handle = frame.handle;
        let packet = self.packets.remove(handle);
        if let Some(recording) = &mut self.recording {
            recording.forget(handle);
        }
        self.totals.packets.delivered += 1;
        if let Some(flow) = self.flows.get(packet.flow) {
            flow.tally.delivered += 1;
        }
        if packet.cargo == Cargo::Datagram {
            self.unwrap(&frame, &packet);
        } else {
            let Packet { flow, number, stamp, cargo, marks: Marks { congested: marked, .. }, .. } = packet;
            self.take_in(flow, cargo, Arrived { number, stamp, marked }, &Answer::of(&packet));
        }
        self.retire(packet.flow);
    }

    /// Process a packet of a flow that is at its host.
    pub(crate) fn take_in(&mut self, place: u32, cargo: Cargo, arrived: Arrived, answer: &Answer) {
        let Some(flow) = self.flows.get(place).filter(|flow| !flow.finished()) else { return };
        self.progress = self.now;
        if let Some(recording) = self.recording.as_mut().filter(|recording| recording.covers(self.now)) {
            let kind = PacketKind::of(cargo);
            recording.released(Release { at: self.now, flow: flow.number, number: arrived.number, kind });
        }
        match cargo {
            Cargo::Data => {
                let answers = flow.receiver.arrived(self.now, arrived, flow.packets);
                if flow.outcome.delivered.is_none() && flow.receiver.received.missing() == flow.packets {
                    flow.outcome.delivered = Some(self.now);
                }
                for answer in answers.into_iter().flatten() {
                    self.acknowledge(place, &answer);
                }
                self.arm(place);
            }
            Cargo::Acknowledgement => {
                flow.sender.answered(self.now, answer);
                if flow.sender.acknowledged().0 >= flow.packets {
                    flow.outcome.completed = Some(self.now);
                    let row = flow.number;
                    self.finished += 1;
                    // One without an end that ends all the same keeps no other from ending.
                    self.endless -= usize::from(self.is_endless(row));
                    self.give_way(row, false);
                } else {
                    self.send(place);
                }
            }
            Cargo::Opening => {
                let host = flow.demand.destination;
                let packet = outgoing::opened(flow, place, arrived.stamp, &self.config);
                self.inject(host, packet);
            }
            Cargo::Opened => {
                if let Some(opening) = flow.opening.take() {
                    flow.outcome.timeouts += opening.timeouts;
                    flow.sender.measured(self.now.saturating_sub(arrived.stamp));
                    let row = flow.number;
                    self.give_way(row, true);
                    self.send(place);
                }
            }
            Cargo::Datagram => {}
        }
    }

    /// Abort the copy of a flow that has opened or ended, if that has to give way by then.
    fn give_way(&mut self, row: u32, opened: bool) {
        let Some(copy) = self.copy_of(row, opened) else { return };
        let Some(place) = self.flows.place_of(copy) else { return };
        if let Some(flow) = self.flows.get(place).filter(|flow| !flow.finished()) {
            flow.aborted = true;
            self.finished += 1;
            self.gave_way += 1;
            self.retire(place);
        }
    }

    /// Begin a flow: with a packet to and fro where its transport has one.
    pub(crate) fn open(&mut self, place: u32) {
        let Some((timeout, largest)) = self.config.transport.opening() else {
            self.connect(place);
            return self.send(place);
        };
        let Some(flow) = self.flows.get(place) else { return };
        flow.opening = Some(Opening::new(self.now, timeout, largest));
        self.send_opening(place);
        self.arm(place);
    }

    fn send_opening(&mut self, place: u32) {
        let Some(flow) = self.flows.get(place) else { return };
        let host = flow.demand.source;
        let packet = outgoing::opening(flow, place, self.now, &self.config);
        self.inject(host, packet);
    }

    /// Send what the flow's sender wants to send now, and set its timer.
    pub(crate) fn send(&mut self, place: u32) {
        while let Some(flow) = self.flows.get(place) {
            let Some(segment) = flow.sender.next(self.now, &flow.receiver.received) else { break };
            let packet = outgoing::data(flow, place, segment, &self.config, self.now);
            flow.outcome.sent += 1;
            if segment.again {
                flow.outcome.resent += 1;
                flow.outcome.resent_bytes += u64::from(packet.bytes - self.config.lengths.header);
            }
            let source = flow.demand.source;
            self.totals.data_sent += 1;
            self.inject(source, packet);
        }
        self.arm(place);
    }

    fn acknowledge(&mut self, place: u32, answer: &Answer) {
        let Some(flow) = self.flows.get(place) else { return };
        let host = flow.demand.destination;
        let packet = outgoing::acknowledgement(flow, place, answer, &self.config);
        self.inject(host, packet);
    }

    fn inject(&mut self, host: u32, packet: Packet) {
        if self.overlay.is_some() {
            self.wrap(host, &packet);
            return;
        }
        let frame = self.launch(packet);
        self.offer(self.topology.first(host), frame);
    }

    /// Make a packet that is about to leave a host.
    pub(crate) fn launch(&mut self, packet: Packet) -> Frame {
        self.totals.packets.made += 1;
        if let Some(flow) = self.flows.get(packet.flow) {
            flow.tally.made += 1;
        }
        Frame::new(self.packets.add(packet), &packet)
    }

    /// Put the flow's next timer into the heap, unless an earlier entry is there: it will find that it came too early.
    fn arm(&mut self, place: u32) {
        let Some(flow) = self.flows.get(place) else { return };
        let deadline = flow.deadline();
        if deadline < flow.timer {
            flow.timer = deadline;
            self.events.push(deadline, Kind::Timer, place);
        }
    }

    pub(crate) fn timer(&mut self, event: Event) -> Result<(), Error> {
        self.events.pop();
        let place = event.subject();
        let Some(flow) = self.flows.get(place).filter(|flow| flow.timer == event.time) else { return Ok(()) };
        flow.timer = NEVER;
        if flow.finished() {
            return Ok(());
        }
        if self.now - self.progress > STALL {
            return Err(Error(format!(
                "nothing has arrived for {} s though flow {} is under way: look at buffers and links",
                STALL / SECOND,
                flow.number
            )));
        }
        if let Some(opening) = &mut flow.opening {
            if opening.expired(self.now) {
                self.send_opening(place);
            }
            self.arm(place);
            return Ok(());
        }
        let answer = (flow.receiver.deadline() <= self.now).then(|| flow.receiver.expired());
        if flow.sender.deadline() <= self.now {
            let stranded = flow.in_network() == 0;
            flow.sender.expired(self.now, stranded);
        }
        if let Some(answer) = answer {
            self.acknowledge(place, &answer);
        }
        self.send(place);
        Ok(())
    }

    /// Free a flow that has ended and has no packet in the network.
    fn retire(&mut self, place: u32) {
        let Some(flow) = self.flows.get(place) else { return };
        if !flow.finished() || flow.in_network() > 0 {
            return;
        }
        self.ended.add(flow.tally);
        self.account(place);
        self.flows.remove(place);
    }

    /// Note what became of a flow.
    fn account(&mut self, place: u32) {
        let payload = self.config.lengths.payload;
        let Some(flow) = self.flows.get(place) else { return };
        let outcome = outcome(flow, payload);
        self.totals.timeouts += u64::from(outcome.timeouts);
        self.totals.duplicates += u64::from(outcome.duplicates);
        let row = flow.number;
        self.outcomes[row as usize] = outcome;
        self.linger(row);
    }

    /// Note what has become of flows that are still under way.
    pub(crate) fn account_all(&mut self) {
        for place in 0..self.flows.most() as u32 {
            self.account(place);
        }
    }
}

/// Return what has become of a flow until now.
fn outcome(flow: &Flow, payload: u32) -> crate::flow::Outcome {
    let (smoothed, least) = flow.sender.round_trips();
    crate::flow::Outcome {
        timeouts: flow.outcome.timeouts + flow.sender.timeouts(),
        duplicates: flow.receiver.duplicates,
        early: flow.receiver.early,
        acknowledged: flow.acknowledged_bytes(payload),
        round_trip: smoothed,
        least_round_trip: least,
        ..flow.outcome
    }
}
