//! DCTCP's share of marked packets (RFC 8257, Section 3.3): once a window, a sixteenth of the new share is taken over.

const GAIN: f64 = 1.0 / 16.0;

#[derive(Clone, Debug)]
pub struct Dctcp {
    share: f64,
    answered: u32,
    marked: u32,
    /// The packet with whose acknowledgement the window is over.
    end: u32,
}

impl Default for Dctcp {
    fn default() -> Dctcp {
        Dctcp { share: 1.0, answered: 0, marked: 0, end: 0 }
    }
}

impl Dctcp {
    pub fn answered(&mut self, advanced: u32, marked: bool, first: u32, end: u32) {
        self.answered += advanced;
        self.marked += if marked { advanced } else { 0 };
        if first <= self.end || self.answered == 0 {
            return;
        }
        let new = f64::from(self.marked) / f64::from(self.answered);
        self.share += (new - self.share) * GAIN;
        (self.answered, self.marked, self.end) = (0, 0, end);
    }

    pub fn factor(&self) -> f64 {
        1.0 - self.share / 2.0
    }
}
