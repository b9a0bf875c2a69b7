//! Proportional rate reduction (RFC 6937): in a recovery the window follows what arrives, so that reduction and retransmissions
//! are spread over a round trip.

#[derive(Clone, Debug, Default)]
pub struct Prr {
    /// The window before the recovery, packets.
    before: u32,
    delivered: u32,
    sent: u32,
    /// Packets that may be in flight now.
    window: u32,
}

impl Prr {
    pub fn begin(&mut self, before: u32) {
        *self = Prr { before, ..Prr::default() };
    }

    pub fn window(&self) -> u32 {
        self.window
    }

    pub fn sent(&mut self) {
        self.sent += 1;
    }

    /// Take that `delivered` packets arrived (not 0). `threshold`: the window to arrive at; `clean`: what was missing has come, and
    /// nothing new is lost.
    pub fn delivered(&mut self, delivered: u32, in_flight: u32, threshold: u32, clean: bool) {
        self.delivered += delivered;
        let more = if in_flight > threshold {
            let due = u64::from(threshold) * u64::from(self.delivered);
            (due.div_ceil(u64::from(self.before)) as u32).saturating_sub(self.sent)
        } else {
            // Slow start, as Linux bounds it.
            let bound = self.delivered.saturating_sub(self.sent).max(delivered) + u32::from(clean);
            bound.min(threshold - in_flight)
        };
        self.window = in_flight + more.max(u32::from(self.sent == 0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_is_the_share_of_what_arrives_that_the_window_keeps() {
        let mut prr = Prr::default();
        prr.begin(20);
        let (mut in_flight, mut sent) = (20, 0);
        for _ in 0..20 {
            in_flight -= 1;
            prr.delivered(1, in_flight, 14, false);
            while in_flight < prr.window() {
                (in_flight, sent) = (in_flight + 1, sent + 1);
                prr.sent();
            }
        }
        assert_eq!((sent, in_flight), (14, 14));
    }

    #[test]
    fn many_losses_at_once_are_retransmitted_a_few_an_answer() {
        let mut prr = Prr::default();
        prr.begin(20);
        let mut in_flight = 4;
        for (clean, window) in [(false, 4), (true, 5), (true, 6)] {
            in_flight -= 1;
            prr.delivered(1, in_flight, 14, clean);
            assert_eq!(prr.window(), window);
            while in_flight < prr.window() {
                in_flight += 1;
                prr.sent();
            }
        }
    }
}
