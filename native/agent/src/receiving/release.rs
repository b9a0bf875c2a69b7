//! In-order release of one receiving flow: packets behind a gap wait until it is filled, is known to be lost, or a timer
//! fires.
//!
//! Positions are the flow's packet numbers modulo 2^32. Each position is released at most once, whether its packet came
//! itself, came twice, or was rebuilt from repairs.

use std::collections::{BTreeMap, VecDeque};

use crate::receiving::Settled;
use crate::serial::serial_difference;
use crate::Seconds;

/// Positions given up that may still be released when their packet comes late.
pub const REMEMBERED_GAPS: u64 = 4096;
/// Packets held at most; beyond it the oldest gap is given up.
pub const MAX_HELD: usize = 8192;

/// A packet that came or was rebuilt.
#[derive(Clone, Debug)]
pub struct Arrival<P> {
    /// Its number within the flow.
    pub position: u32,
    /// Number of the datagram that brought it, or that let it be rebuilt.
    pub number: u32,
    /// What goes out.
    pub packet: P,
}

/// Until when a place waits for what is before it.
#[derive(Clone, Copy, Debug)]
struct Wait {
    until: Seconds,
    place: u64,
}

/// A packet that waits.
#[derive(Clone, Debug)]
struct Held<P> {
    number: u32,
    packet: P,
}

/// The packets of one flow that wait. A timeout of 0 s holds nothing back: packets go out as they come, each once.
///
/// A place is a position that does not wrap: comparing places needs no look at `next`.
#[derive(Clone, Debug)]
pub struct Release<P> {
    next: u64,
    held: BTreeMap<u64, Held<P>>,
    /// What has no position of its own, but must not overtake what comes before this place.
    followers: BTreeMap<u64, Vec<P>>,
    /// In the order in which they came, and so of their deadlines; the first is held or followed, if there is one.
    waiting: VecDeque<Wait>,
    /// When to ask again what has settled.
    look_again: Option<Seconds>,
    /// Places given up, as ranges by their first place.
    skipped: BTreeMap<u64, u64>,
    skipped_places: u64,
    /// Packets that had to wait, since `count_anew`.
    pub held_total: u64,
    /// Gaps given up since `count_anew`, because they had settled, of their time or of `MAX_HELD`.
    pub timeouts: u64,
    /// Packets that had been released, or were held, already.
    pub duplicates: u64,
    /// Positions given up since `count_anew`, less those of them whose packet came late.
    pub abandoned: u64,
    /// Places before this one were given up, or not, before `count_anew`.
    counted_from: u64,
}

impl<P> Release<P> {
    /// Returns the release of a flow whose first packet has position `first`.
    pub fn new(first: u32) -> Release<P> {
        Release {
            next: (1 << 32) + u64::from(first),
            held: BTreeMap::new(),
            followers: BTreeMap::new(),
            waiting: VecDeque::new(),
            look_again: None,
            skipped: BTreeMap::new(),
            skipped_places: 0,
            held_total: 0,
            timeouts: 0,
            duplicates: 0,
            abandoned: 0,
            counted_from: 0,
        }
    }

    /// Returns the release of a flow that is met in its midst: `first` is released at once, and those before it whenever
    /// they come.
    pub fn amid(first: u32) -> Release<P> {
        let mut release = Release::new(first);
        release.skipped.insert(release.next - REMEMBERED_GAPS, release.next);
        release.skipped_places = REMEMBERED_GAPS;
        release.counted_from = release.next;
        release
    }

    /// Counts what waits and what is given up from now on.
    pub fn count_anew(&mut self) {
        (self.held_total, self.timeouts) = (0, 0);
        (self.abandoned, self.counted_from) = (0, self.next);
    }

    /// Returns the position that is due.
    pub fn next(&self) -> u32 {
        self.next as u32
    }

    /// Returns how many packets are kept, at most: those that wait, and some of those that waited a moment ago.
    pub fn kept_packets(&self) -> usize {
        self.waiting.len()
    }

    /// Returns when `expire` will give up the gap, or `settle` is to be asked again; None while nothing is held.
    pub fn deadline(&self) -> Option<Seconds> {
        let until = self.waiting.front()?.until;
        Some(self.look_again.map_or(until, |look| look.min(until)))
    }

    /// Processes a packet, and appends to `out` what goes out now, in order.
    pub fn arrive(&mut self, arrival: Arrival<P>, timeout_s: Seconds, now: Seconds, out: &mut Vec<P>) {
        let Arrival { position, number, packet } = arrival;
        let ahead = serial_difference(position, self.next());
        let place = self.next.wrapping_add_signed(ahead.into());
        if ahead == 0 {
            self.next += 1;
            out.push(packet);
            if !self.waiting.is_empty() {
                self.run(out);
            }
        } else if ahead < 0 {
            if self.take_skipped(place) {
                self.abandoned -= u64::from(place >= self.counted_from);
                out.push(packet);
            } else {
                self.duplicates += 1;
            }
        } else if self.held.contains_key(&place) {
            self.duplicates += 1;
        } else if timeout_s <= 0.0 && self.waiting.is_empty() {
            self.skip_to(place);
            self.next += 1;
            out.push(packet);
        } else {
            self.held.insert(place, Held { number, packet });
            self.wait(place, timeout_s, now);
            if self.held.len() > MAX_HELD {
                self.timeouts += 1;
                let oldest = self.held.first_key_value().map_or(place, |(&oldest, _)| oldest);
                self.give_up(oldest, out);
            }
        }
    }

    /// Processes a packet without position that must not overtake those before `position`: a bare FIN, which TCP would
    /// take for a sign that those are lost. Appends to `out` what goes out now.
    pub fn follow(&mut self, position: u32, packet: P, timeout_s: Seconds, now: Seconds, out: &mut Vec<P>) {
        let ahead = i64::from(serial_difference(position, self.next()));
        if timeout_s <= 0.0 || !(1..=MAX_HELD as i64).contains(&ahead) {
            out.push(packet);
            return;
        }
        let place = self.next.wrapping_add_signed(ahead);
        self.followers.entry(place).or_default().push(packet);
        self.wait(place, timeout_s, now);
    }

    /// Gives up the gaps before all that has waited for long enough. Appends to `out` what goes out now, in order.
    pub fn expire(&mut self, now: Seconds, out: &mut Vec<P>) {
        self.look_again = self.look_again.filter(|&look| now < look);
        while let Some(wait) = self.waiting.front().filter(|wait| now >= wait.until) {
            let place = wait.place;
            self.timeouts += 1;
            self.give_up(place, out);
        }
    }

    /// Gives up the gaps before what has settled: nothing that was sent before it is still on its way. Appends to `out`
    /// what goes out now, in order.
    ///
    /// Within a flow, numbers rise with positions: what was sent before a packet has a lower number.
    pub fn settle(&mut self, settled: Settled, out: &mut Vec<P>) {
        let has_settled = |held: &Held<P>| settled.has(held.number);
        while let Some((&place, _)) = self.held.first_key_value().filter(|(_, held)| has_settled(held)) {
            self.timeouts += 1;
            self.give_up(place, out);
        }
        self.look_again = settled.look_again;
    }

    /// Appends all that is held to `out`, in order: the flow ends.
    pub fn drain(&mut self, out: &mut Vec<P>) {
        let last = |places: Option<&u64>| places.copied().unwrap_or(0);
        let farthest = last(self.held.keys().next_back()).max(last(self.followers.keys().next_back()));
        if farthest > 0 {
            self.give_up(farthest, out);
        }
    }

    fn wait(&mut self, place: u64, timeout_s: Seconds, now: Seconds) {
        // Where the policy has become stricter meanwhile, deadlines keep their order.
        let newest = self.waiting.back().map_or(f64::NEG_INFINITY, |wait| wait.until);
        self.waiting.push_back(Wait { until: (now + timeout_s).max(newest), place });
        self.held_total += 1;
    }

    /// Waits no longer for what is missing before a place that is held or followed.
    fn give_up(&mut self, place: u64, out: &mut Vec<P>) {
        loop {
            let first = |places: Option<&u64>| places.copied().unwrap_or(place);
            let waits = first(self.held.keys().next()).min(first(self.followers.keys().next()));
            self.skip_to(waits.min(place));
            self.run(out);
            if waits >= place {
                return;
            }
        }
    }

    /// Releases what follows without a gap, and forgets the waits that are over.
    fn run(&mut self, out: &mut Vec<P>) {
        loop {
            if let Some(followers) = self.followers.remove(&self.next) {
                out.extend(followers);
            }
            let Some(held) = self.held.remove(&self.next) else { break };
            out.push(held.packet);
            self.next += 1;
        }
        while let Some(wait) = self.waiting.front() {
            if self.held.contains_key(&wait.place) || self.followers.contains_key(&wait.place) {
                return;
            }
            self.waiting.pop_front();
        }
    }

    fn skip_to(&mut self, place: u64) {
        if place <= self.next {
            return;
        }
        self.abandoned += place - self.next;
        let first = self.next.max(place.saturating_sub(REMEMBERED_GAPS));
        self.skipped.insert(first, place);
        self.skipped_places += place - first;
        while self.skipped_places > REMEMBERED_GAPS {
            let Some((first, end)) = self.skipped.pop_first() else { break };
            let gone = (end - first).min(self.skipped_places - REMEMBERED_GAPS);
            self.skipped_places -= gone;
            if first + gone < end {
                self.skipped.insert(first + gone, end);
            }
        }
        self.next = place;
    }

    /// Returns true if a place was given up and is remembered; it is not any longer.
    fn take_skipped(&mut self, place: u64) -> bool {
        let Some((&first, &end)) = self.skipped.range(..=place).next_back().filter(|(_, &end)| place < end)
        else {
            return false;
        };
        self.skipped.remove(&first);
        if first < place {
            self.skipped.insert(first, place);
        }
        if place + 1 < end {
            self.skipped.insert(place + 1, end);
        }
        self.skipped_places -= 1;
        true
    }
}
