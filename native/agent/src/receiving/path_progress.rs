//! How far the paths of one peer have come: by which lost datagrams differ from late ones.
//!
//! A path is first in, first out within a class, and every datagram shows its path. So a path that has delivered a number
//! has delivered or lost all lower ones, and what is missing is lost exactly when every path has delivered a higher one;
//! until then it is only late. A path that delivers nothing any more, because its class took to others or it is broken,
//! would make all wait for ever: it counts no more once it was silent for a while.

use datapath::prefetch::prefetch;

use crate::class::TrafficClass;
use crate::serial::serial_difference;
use crate::Seconds;

/// Paths of all classes that are remembered: more than a fabric has between two leaves.
const MOST_WAYS: usize = 1024;

/// A path that was silent for longer may be more than half of the numbers behind: what it delivers then is the newest.
const STALE_S: Seconds = 60.0;

/// Of those a datagram is looked for among, so many are fetched ahead.
const PREFETCHED: usize = 16;

/// The last that a path delivered of a class.
#[derive(Clone, Copy, Debug)]
struct Way {
    class: TrafficClass,
    stamp: u16,
    newest: u32,
    at: Seconds,
}

/// What has settled of one class: nothing up to a number is still on its way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settled {
    /// The number; None: no path speaks any more, so nothing is on its way.
    pub number: Option<u32>,
    /// When to ask again, if nothing comes: then the path that is furthest behind counts as silent.
    pub look_again: Option<Seconds>,
}

impl Settled {
    /// Returns true if all that was sent before a datagram has come or is lost.
    pub fn has(&self, number: u32) -> bool {
        self.number.is_none_or(|settled| serial_difference(number, settled) <= 0)
    }
}

/// The paths of one peer.
#[derive(Clone, Debug, Default)]
pub struct PathProgress {
    ways: Vec<Way>,
}

impl PathProgress {
    /// Has the processor fetch what `took` looks at first.
    pub fn prefetch(&self) {
        prefetch(&self.ways[..self.ways.len().min(PREFETCHED)]);
    }

    /// Notes that a path delivered a datagram of a class.
    pub fn took(&mut self, class: TrafficClass, stamp: u16, number: u32, now: Seconds) {
        match self.ways.iter_mut().find(|way| way.class == class && way.stamp == stamp) {
            Some(way) => {
                if serial_difference(number, way.newest) > 0 || now - way.at > STALE_S {
                    way.newest = number;
                }
                way.at = now;
            }
            None => {
                if self.ways.len() >= MOST_WAYS {
                    let oldest =
                        (0..self.ways.len()).min_by(|&a, &b| self.ways[a].at.total_cmp(&self.ways[b].at));
                    oldest.map(|oldest| self.ways.swap_remove(oldest));
                }
                self.ways.push(Way { class, stamp, newest: number, at: now });
            }
        }
    }

    /// Returns what has settled of a class, by the paths that delivered any of it within the last `silence_s`.
    pub fn settled(&self, class: TrafficClass, silence_s: Seconds, now: Seconds) -> Settled {
        let speaking = self.ways.iter().filter(|way| way.class == class && now < way.at + silence_s);
        let behind = speaking.min_by(|a, b| serial_difference(a.newest, b.newest).cmp(&0));
        Settled { number: behind.map(|way| way.newest), look_again: behind.map(|way| way.at + silence_s) }
    }
}
