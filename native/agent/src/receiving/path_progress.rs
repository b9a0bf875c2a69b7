//! How far the paths of one peer have come: by which lost datagrams differ from late ones.
//!
//! A path is first in, first out within a class, and every datagram shows its path. So a path that has delivered a number
//! has delivered or lost all lower ones, and what is missing is lost exactly when every path has delivered a higher one;
//! until then it is only late. A path that delivers nothing any more, because its class took to others or it is broken,
//! would make all wait for ever: it counts no more once it was silent for a while. A class that was silent may come over
//! paths that have delivered nothing of it yet: for as long, nothing of it is lost for certain.

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

/// A datagram that a path delivered.
#[derive(Clone, Copy, Debug)]
pub struct Delivered {
    /// Its class.
    pub class: TrafficClass,
    /// Stamp of the path.
    pub stamp: u16,
    /// Its number.
    pub number: u32,
}

/// When a class was last delivered, and since when without silence.
#[derive(Clone, Copy, Debug)]
struct Activity {
    since: Seconds,
    last: Seconds,
}

/// The last that a path delivered of a class.
#[derive(Clone, Copy, Debug)]
struct Way {
    class: TrafficClass,
    stamp: u16,
    newest: u32,
    at: Seconds,
}

/// Up to where nothing is still on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettledUpTo {
    /// Anything may be: paths may have yet to deliver.
    Nothing,
    /// This number.
    Number(u32),
    /// The last number that came: all paths are silent.
    All,
}

/// What has settled of one class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settled {
    /// Up to where.
    pub up_to: SettledUpTo,
    /// When to ask again, if nothing comes: then more counts as settled.
    pub look_again: Option<Seconds>,
}

impl Settled {
    /// Returns true if all that was sent before a datagram has come or is lost.
    pub fn has(&self, number: u32) -> bool {
        match self.up_to {
            SettledUpTo::Nothing => false,
            SettledUpTo::Number(settled) => serial_difference(number, settled) <= 0,
            SettledUpTo::All => true,
        }
    }
}

/// The paths of one peer.
#[derive(Clone, Debug, Default)]
pub struct PathProgress {
    ways: Vec<Way>,
    activity: [Option<Activity>; 4],
}

impl PathProgress {
    /// Has the processor fetch what `took` looks at first.
    pub fn prefetch(&self) {
        prefetch(&self.ways[..self.ways.len().min(PREFETCHED)]);
    }

    /// Notes what a path delivered. A class of which nothing came for `silence_s` was silent.
    pub fn took(&mut self, delivered: Delivered, silence_s: Seconds, now: Seconds) {
        let Delivered { class, stamp, number } = delivered;
        let activity = &mut self.activity[class.index()];
        let goes_on = activity.filter(|active| now < active.last + silence_s);
        *activity = Some(Activity { since: goes_on.map_or(now, |active| active.since), last: now });
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

    /// Returns what has settled of a class, by the paths that delivered any of it within the last `silence_s`: nothing
    /// while the class has been active for less than that.
    pub fn settled(&self, class: TrafficClass, silence_s: Seconds, now: Seconds) -> Settled {
        let settles_from =
            self.activity[class.index()].map_or(f64::NEG_INFINITY, |active| active.since + silence_s);
        if now < settles_from {
            return Settled { up_to: SettledUpTo::Nothing, look_again: Some(settles_from) };
        }
        let speaking = self.ways.iter().filter(|way| way.class == class && now < way.at + silence_s);
        let behind = speaking.min_by(|a, b| serial_difference(a.newest, b.newest).cmp(&0));
        Settled {
            up_to: behind.map_or(SettledUpTo::All, |way| SettledUpTo::Number(way.newest)),
            look_again: behind.map(|way| way.at + silence_s),
        }
    }
}
