//! CUBIC's growth (RFC 9438): towards the window at the last loss, slowly round it, then away; and never slower than a
//! Reno flow.

use crate::time::{Time, SECOND};

pub const BETA: f64 = 0.7;
const C: f64 = 0.4;

#[derive(Clone, Debug, Default)]
pub struct Cubic {
    /// The window at the last loss; 0: there was none.
    before: f64,
    epoch: Option<Epoch>,
}

#[derive(Clone, Copy, Debug)]
struct Epoch {
    begin: Time,
    /// Seconds until the window is `origin`.
    rise: f64,
    origin: f64,
    reno: f64,
}

impl Cubic {
    pub fn reduced(&mut self, size: f64) {
        // Fast convergence: a flow that loses below its last maximum leaves room to others.
        self.before = if size < self.before { size * (1.0 + BETA) / 2.0 } else { size };
        self.epoch = None;
    }

    /// Return by how much a window of `size` grows for so many packets.
    pub fn growth(&mut self, size: f64, advanced: f64, now: Time, round_trip: Time) -> f64 {
        let before = self.before;
        let epoch = self.epoch.get_or_insert_with(|| Epoch {
            begin: now,
            rise: if size < before { cube_root((before - size) / C) } else { 0.0 },
            origin: before.max(size),
            reno: size,
        });
        let seconds = (now - epoch.begin + round_trip) as f64 / SECOND as f64 - epoch.rise;
        let target = (epoch.origin + C * seconds * seconds * seconds).clamp(size, 1.5 * size);
        epoch.reno += 3.0 * (1.0 - BETA) / (1.0 + BETA) * advanced / size;
        (target - size).max(0.0) / size * advanced + (epoch.reno - target).max(0.0).min(advanced)
    }
}

/// Return the cube root of a number that is not negative: by Newton's method, so that every machine has the same bits.
fn cube_root(number: f64) -> f64 {
    if number <= 0.0 {
        return 0.0;
    }
    let mut root = if number > 1.0 { number } else { 1.0 };
    for _ in 0..200 {
        let next = (2.0 * root + number / (root * root)) / 3.0;
        if next >= root {
            break;
        }
        root = next;
    }
    root
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cube_roots() {
        for number in [1e-9, 0.001, 0.5, 1.0, 8.0, 12345.678, 1e12] {
            assert!((cube_root(number).powi(3) / number - 1.0).abs() < 1e-12, "{number}");
        }
    }

    #[test]
    fn the_window_is_what_it_was_after_k_seconds() {
        // 100 packets at the loss, 70 after it: K = (30 / 0.4)^(1/3) = 4.217 s (RFC 9438, equation 2).
        let (mut cubic, mut size, mut now) = (Cubic::default(), 70.0, 0);
        cubic.reduced(100.0);
        let round_trip = SECOND / 2; // so long that Reno is slower
        while now < 4 * SECOND {
            for _ in 0..70 {
                size += cubic.growth(size, 1.0, now, round_trip);
            }
            now += round_trip;
        }
        assert!((99.0..100.1).contains(&size), "{size}");
    }
}
