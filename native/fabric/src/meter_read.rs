//! When a leaf's meters are read: asked for once, and again where the answer is lost.

/// The next read of one leaf's meters.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MeterRead {
    /// When to read, in seconds; `None`: not needed.
    pub next: Option<f64>,
    /// When the read that is under way was asked for.
    pub asked: Option<f64>,
}

impl MeterRead {
    /// Returns when this read is to be asked for, in seconds, where an answer counts as lost `lost_s` after its question.
    pub fn when(&self, lost_s: f64) -> Option<f64> {
        self.asked.map_or(self.next, |asked| Some(asked + lost_s))
    }

    /// Asks for this read if it is time to. Returns true if so.
    pub fn ask(&mut self, lost_s: f64, now: f64) -> bool {
        let is_due = self.when(lost_s).is_some_and(|when| when <= now);
        if is_due {
            self.asked = Some(now);
        }
        is_due
    }
}

/// Returns the earliest of `times`.
pub(crate) fn earliest(times: impl Iterator<Item = f64>) -> Option<f64> {
    times.min_by(f64::total_cmp)
}
