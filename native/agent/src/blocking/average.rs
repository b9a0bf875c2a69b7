//! The smoothed average of round-trip times.

/// Weight of a new RTT (CAPS, section IX-C; RFC 6298).
const SMOOTHING: f64 = 1.0 / 8.0;

/// 7/8 old + 1/8 new; the first sample is the average.
#[derive(Clone, Copy, Debug, Default)]
pub struct Average(Option<f64>);

impl Average {
    /// Adds a sample.
    pub fn add(&mut self, sample: f64) {
        self.0 = Some(self.0.map_or(sample, |value| value + SMOOTHING * (sample - value)));
    }

    /// Returns the average; None without a sample.
    pub fn value(&self) -> Option<f64> {
        self.0
    }

    /// Returns the average; 0 without a sample.
    pub fn or_zero(&self) -> f64 {
        self.0.unwrap_or(0.0)
    }
}
