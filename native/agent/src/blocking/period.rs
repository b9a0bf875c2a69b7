//! Sampling times, one after the other.

use crate::time::Seconds;

/// A sampling time: begins when it is first asked, and ends when it is asked after its length.
#[derive(Clone, Debug)]
pub struct Period {
    length_s: Seconds,
    since: Option<Seconds>,
}

impl Period {
    /// Returns a sampling time of that length.
    pub fn new(length_s: Seconds) -> Period {
        Period { length_s, since: None }
    }

    /// Returns true if a sampling time has ended and the next one begins now.
    pub fn ended(&mut self, now: Seconds) -> bool {
        let since = *self.since.get_or_insert(now);
        let ended = now - since >= self.length_s;
        if ended {
            self.since = Some(now);
        }
        ended
    }
}
