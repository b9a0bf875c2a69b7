//! pFabric's hosts, by the rules of YAPS: a window of nearly the path's capacity from the start, a fixed time-out of
//! some round trips, and one packet at a time after it. There is no probe mode.

use super::received::Received;
use super::sliding::Sliding;
use super::{Answer, Segment};
use crate::time::{Time, MICROSECOND, NEVER};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    pub initial_window: u32,
    pub largest_window: u32,
    pub timeout: Time,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { initial_window: 12, largest_window: 15, timeout: 45 * MICROSECOND }
    }
}

#[derive(Clone, Debug)]
pub struct PFabric {
    settings: Settings,
    sliding: Sliding,
    window: u32,
    threshold: u32,
    /// Acknowledgements since the window grew, above the threshold.
    counted: u32,
    deadline: Time,
    timeouts: u32,
}

impl PFabric {
    pub fn new(settings: Settings, packets: u32) -> PFabric {
        PFabric {
            settings,
            sliding: Sliding::new(packets),
            window: settings.initial_window,
            threshold: 100_000,
            counted: 0,
            deadline: NEVER,
            timeouts: 0,
        }
    }

    pub fn answered(&mut self, now: Time, answer: &Answer) {
        if !self.sliding.answered(answer) {
            return;
        }
        if self.window < self.threshold {
            self.window += 1;
        } else {
            self.counted += 1;
            if self.counted >= self.window {
                (self.counted, self.window) = (0, self.window + 1);
            }
        }
        self.window = self.window.min(self.settings.largest_window);
        self.deadline = if self.sliding.finished() { NEVER } else { now + self.settings.timeout };
    }

    pub fn next(&mut self, now: Time, received: &Received) -> Option<Segment> {
        let segment = self.sliding.next(self.window, received);
        if segment.is_some() && self.deadline == NEVER {
            self.deadline = now + self.settings.timeout;
        }
        segment
    }

    pub fn deadline(&self) -> Time {
        self.deadline
    }

    /// Take that nothing new was acknowledged for the time-out. `stranded`: nothing of the flow is in the network, so its
    /// acknowledgements were lost if the receiver has all that may be sent: no other comes unless something goes.
    pub fn expired(&mut self, now: Time, stranded: bool) {
        self.timeouts += 1;
        self.threshold = (self.window / 2).max(2);
        self.window = 1;
        self.deadline = now + self.settings.timeout;
        self.sliding.again(stranded);
    }

    pub fn acknowledged(&self) -> (u32, u32) {
        self.sliding.acknowledged()
    }

    pub fn timeouts(&self) -> u32 {
        self.timeouts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(sender: &mut PFabric, now: Time, received: &Received) -> Vec<u32> {
        std::iter::from_fn(|| sender.next(now, received)).map(|segment| segment.number).collect()
    }

    #[test]
    fn a_packet_that_the_receiver_has_goes_again_only_if_nothing_else_would_come_or_go() {
        let (mut sender, mut received) = (PFabric::new(Settings::default(), 3), Received::default());
        assert_eq!(sent(&mut sender, 0, &received), [0, 1, 2]);
        for number in 0..2 {
            assert!(received.add(number));
        }
        sender.expired(50 * MICROSECOND, false);
        assert!(sent(&mut sender, 50 * MICROSECOND, &received).is_empty(), "its answer comes");
        sender.expired(100 * MICROSECOND, true);
        assert_eq!(sent(&mut sender, 100 * MICROSECOND, &received), [0]);
        sender.answered(110 * MICROSECOND, &Answer { missing: 2, ..Answer::default() });
        sender.expired(200 * MICROSECOND, true);
        assert_eq!(sent(&mut sender, 200 * MICROSECOND, &received), [2], "the receiver lacks it");
        assert_eq!(sender.timeouts(), 3);
    }
}
