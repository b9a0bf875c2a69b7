//! The channel between agents and a controller that is outside: each message takes the same time, or is lost.

use std::collections::VecDeque;

use agent::admission::{AdmissionCounts, Decision, Destination, Message};
use agent::Seconds;

use super::admission::Asking;
use super::crossing::{AGENT, CHANNEL};
use crate::events::Kind;
use crate::random::{Purpose, Stream};
use crate::simulation::Simulation;
use crate::time::{Time, NEVER};
use crate::Error;

/// A message of a host's agent.
pub type HostMessage = (u32, Message<Destination>);

/// Messages on their way, in order.
pub struct Channel {
    delay: Time,
    /// Which part of the messages is lost, and what draws which.
    loss: f64,
    draws: Stream,
    asked: VecDeque<(Time, HostMessage)>,
    decided: VecDeque<(Time, u32, Decision)>,
    /// What the controller has to read.
    arrived: Vec<HostMessage>,
    /// When the controller wants to be asked, whatever comes.
    wake: Time,
    /// Its entry in the heap.
    timer: Time,
}

impl Channel {
    /// Return a channel on which messages take as long, and are lost as often, as `asking` says.
    pub fn new(asking: &Asking, seed: u64) -> Channel {
        Channel {
            delay: asking.delay,
            loss: asking.loss,
            draws: Stream::new(seed, Purpose::Control),
            asked: VecDeque::new(),
            decided: VecDeque::new(),
            arrived: Vec::new(),
            wake: NEVER,
            timer: NEVER,
        }
    }

    fn loses(&mut self) -> bool {
        self.loss > 0.0 && self.draws.unit() < self.loss
    }

    fn deadline(&self) -> Time {
        let asked = self.asked.front().map_or(NEVER, |&(due, _)| due);
        let decided = self.decided.front().map_or(NEVER, |&(due, _, _)| due);
        asked.min(decided).min(self.wake)
    }
}

impl Simulation {
    /// Return what agents have asked and the controller has not read, in order; each is given once.
    pub fn take_asked(&mut self) -> Vec<HostMessage> {
        self.channel().map(|channel| std::mem::take(&mut channel.arrived)).unwrap_or_default()
    }

    /// Send what the controller has decided to a host's agent.
    ///
    /// # Errors
    /// There is no such host.
    pub fn decide(&mut self, host: u32, decision: Decision) -> Result<(), Error> {
        if host >= self.topology.hosts() {
            return Err(Error(format!("a decision is for host {host}, there are {}", self.topology.hosts())));
        }
        let now = self.now;
        let Some(channel) = self.channel() else { return Ok(()) };
        if !channel.loses() {
            channel.decided.push_back((now + channel.delay, host, decision));
            self.arm_channel();
        }
        Ok(())
    }

    /// Pause again when agents' clocks have come to that time (None: only for messages), so that the controller can act.
    pub fn wake_at(&mut self, seconds: Option<Seconds>) {
        let Some(overlay) = &self.overlay else { return };
        let instant = seconds.map_or(NEVER, |seconds| overlay.instant(seconds, self.now));
        if let Some(channel) = self.channel() {
            channel.wake = instant;
            self.arm_channel();
        }
    }

    /// Return agents' time, seconds.
    pub fn agents_now(&self) -> Seconds {
        self.overlay.as_ref().map_or(0.0, |overlay| overlay.seconds(self.now))
    }

    /// Return what all agents have counted of flows that ask.
    pub fn admission_counts(&self) -> Vec<AdmissionCounts> {
        let hosts = self.overlay.iter().flat_map(|overlay| &overlay.hosts);
        hosts.map(|host| host.admission_counts()).collect()
    }

    /// Return how long decisions took since the last call, seconds of agents' clocks, host by host.
    pub fn take_latencies(&mut self) -> Vec<Seconds> {
        let hosts = self.overlay.iter_mut().flat_map(|overlay| &mut overlay.hosts);
        hosts.flat_map(|host| host.take_latencies()).collect()
    }

    /// Send what a host's agent asks of the controller.
    pub(super) fn ask(&mut self, host: u32) {
        let Some(overlay) = &mut self.overlay else { return };
        let Some(channel) = &mut overlay.channel else { return };
        let due = self.now + channel.delay;
        let mut messages = overlay.hosts[host as usize].take_asked();
        messages.retain(|_| !channel.loses());
        channel.asked.extend(messages.into_iter().map(|message| (due, (host, message))));
        self.arm_channel();
    }

    /// Hand over what has arrived, and pause for the controller if it has something to do.
    pub(super) fn channel_timer(&mut self, time: Time) {
        let now = self.now;
        let Some(channel) = self.channel() else { return };
        if channel.timer != time {
            return; // an earlier one came in between
        }
        channel.timer = NEVER;
        while channel.asked.front().is_some_and(|&(due, _)| due <= now) {
            channel.arrived.extend(channel.asked.pop_front().map(|(_, message)| message));
        }
        let awake = channel.wake <= now;
        if awake {
            channel.wake = NEVER;
        }
        self.paused = awake || self.channel().is_some_and(|channel| !channel.arrived.is_empty());
        while let Some((host, decision)) = self.decision_due() {
            self.decided(host, decision);
        }
        self.arm_channel();
    }

    fn decision_due(&mut self) -> Option<(u32, Decision)> {
        let now = self.now;
        let channel = self.channel()?;
        channel.decided.front().filter(|&&(due, _, _)| due <= now)?;
        channel.decided.pop_front().map(|(_, host, decision)| (host, decision))
    }

    fn decided(&mut self, host: u32, decision: Decision) {
        let Some(overlay) = &mut self.overlay else { return };
        let now = overlay.seconds(self.now);
        overlay.hosts[host as usize].decided(decision, now, &mut overlay.delivered);
        self.hand_up(host);
    }

    fn channel(&mut self) -> Option<&mut Channel> {
        self.overlay.as_mut()?.channel.as_mut()
    }

    /// Put the channel's next timer into the heap, unless an earlier entry is there.
    fn arm_channel(&mut self) {
        let now = self.now;
        let Some(channel) = self.channel() else { return };
        let instant = channel.deadline().max(now);
        if instant < channel.timer {
            channel.timer = instant;
            self.events.push(instant, Kind::Timer, AGENT | CHANNEL);
        }
    }
}
