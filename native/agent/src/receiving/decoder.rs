//! The receiver's side of one flow's coding: sources and repairs go in as they come, rebuilt packets come out.
//!
//! A peer may send anything: what cannot be is counted and dropped, and a unit whose symbols contradict one another
//! yields nothing. Memory is bounded in packets, bytes and units.

use coding::packets::LENGTH_BYTES;

use super::packet_buffer::PacketBuffer;
use super::unit::{Payload, Repair, Unit, MAX_SYMBOL_BYTES};
use crate::serial::serial_difference;
use crate::Seconds;

/// Most sources of a unit that is decoded.
pub const MAX_K: u32 = 128;
/// Most repairs of a unit that is decoded.
pub const MAX_R: u32 = 64;
/// Sources are remembered over this many positions.
pub const SOURCE_WINDOW: u32 = 4 * MAX_K;

/// What happened to what came: events since the flow began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DecoderCounters {
    /// Sources that came.
    pub sources: u64,
    /// Repairs that came.
    pub repairs: u64,
    /// Source packets rebuilt.
    pub recovered: u64,
    /// Sources whose packet was there already, as received or as rebuilt.
    pub duplicate_sources: u64,
    /// Sources older than what is remembered.
    pub late_sources: u64,
    /// Repairs of units that were complete already: what redundancy cost.
    pub surplus_repairs: u64,
    /// Repairs that had come already.
    pub duplicate_repairs: u64,
    /// Repairs of units that are forgotten or given up.
    pub late_repairs: u64,
    /// Heads or symbols that cannot be.
    pub malformed_repairs: u64,
    /// Repairs that say otherwise than their unit's first repair did.
    pub inconsistent_repairs: u64,
    /// Units given up because their symbols contradict one another.
    pub failed_units: u64,
    /// Units forgotten incomplete: by age, by newer units, or because their sources were forgotten.
    pub expired_units: u64,
}

/// What a decoder keeps at most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DecoderLimits {
    /// Bytes of packets and repairs.
    pub max_bytes: usize,
    /// Units that are incomplete.
    pub max_units: usize,
    /// A unit that is incomplete after this time is forgotten.
    pub max_age_s: Seconds,
}

impl Default for DecoderLimits {
    fn default() -> Self {
        DecoderLimits { max_bytes: 1 << 20, max_units: 16, max_age_s: 2.0 }
    }
}

/// A packet that was rebuilt.
#[derive(Clone, Debug, PartialEq)]
pub struct Rebuilt<P> {
    /// Its number within the flow.
    pub position: u32,
    /// The packet.
    pub packet: P,
}

/// One receiving flow. Times must not run backwards.
#[derive(Clone, Debug)]
pub struct UnitDecoder<P: Payload> {
    limits: DecoderLimits,
    packet_buffer: Option<PacketBuffer<P>>,
    /// The oldest first.
    units: Vec<Unit<P::Symbol>>,
    newest: u32,
    repair_bytes: usize,
    counters: DecoderCounters,
}

impl<P: Payload> UnitDecoder<P> {
    /// Returns a decoder that keeps nothing yet.
    pub fn new(limits: DecoderLimits) -> UnitDecoder<P> {
        let counters = DecoderCounters::default();
        UnitDecoder { limits, packet_buffer: None, units: Vec::new(), newest: 0, repair_bytes: 0, counters }
    }

    /// Returns what happened since the flow began.
    pub fn counters(&self) -> DecoderCounters {
        self.counters
    }

    /// Processes a source. Appends what it lets rebuild to `out`, ascending; never the source itself.
    pub fn source(&mut self, position: u32, packet: P, now: Seconds, out: &mut Vec<Rebuilt<P>>) {
        self.counters.sources += 1;
        self.expire(now);
        if self.is_forgotten(position) {
            self.counters.late_sources += 1;
        } else if self.is_known(position) {
            self.counters.duplicate_sources += 1;
        } else {
            self.keep(position, packet);
            self.trim();
            if self.units.iter().any(|unit| unit.covers(position)) {
                self.rebuild(vec![position], Vec::new(), out);
            }
        }
    }

    /// Processes a repair. Appends what it lets rebuild to `out`, as `source` does.
    pub fn repair(&mut self, repair: Repair<P::Symbol>, now: Seconds, out: &mut Vec<Rebuilt<P>>) {
        let Repair { position, unit: shape, index, symbol } = repair;
        let symbol_bytes = P::symbol_bytes(&symbol);
        self.counters.repairs += 1;
        self.expire(now);
        let sound = (1..=MAX_K).contains(&shape.k) && index < shape.r && shape.r <= MAX_R;
        if !sound || symbol_bytes <= LENGTH_BYTES || symbol_bytes > MAX_SYMBOL_BYTES {
            self.counters.malformed_repairs += 1;
            return;
        }
        if self.is_unit_forgotten(position, shape.k) {
            self.counters.late_repairs += 1;
            return;
        }
        if self.unit_at(position).is_none() {
            if self.missing(position, shape.k) == 0 {
                self.counters.surplus_repairs += 1;
                return;
            }
            while self.units.len() >= self.limits.max_units.max(1) {
                self.expire_unit(0);
            }
            let repairs = Vec::new();
            self.units.push(Unit {
                first: position,
                shape,
                symbol_bytes,
                since: now,
                repairs,
                given_up: false,
            });
        }
        let Some(unit_index) = self.unit_at(position) else { return };
        let unit = &mut self.units[unit_index];
        if unit.given_up {
            self.counters.late_repairs += 1;
        } else if symbol_bytes != unit.symbol_bytes || shape != unit.shape {
            self.counters.inconsistent_repairs += 1;
        } else if unit.repairs.iter().any(|&(known, _)| known == index) {
            self.counters.duplicate_repairs += 1;
        } else {
            unit.repairs.push((index, symbol));
            self.repair_bytes += symbol_bytes;
            self.trim();
            let rebuilt = self.decode(position);
            self.rebuild(
                rebuilt.iter().map(|rebuilt_packet| rebuilt_packet.position).collect(),
                rebuilt,
                out,
            );
        }
    }

    /// Returns true if the packet of a position came or was rebuilt (false for what is forgotten).
    pub fn is_known(&self, position: u32) -> bool {
        self.packet_buffer.as_ref().is_some_and(|buffer| buffer.at(position).is_some())
    }

    /// Returns true if a position is older than what is remembered.
    fn is_forgotten(&self, position: u32) -> bool {
        self.packet_buffer.as_ref().is_some_and(|buffer| serial_difference(position, buffer.floor) < 0)
    }

    /// Returns true if any position of a unit is older than what is remembered, or so far ahead that it counts as older.
    fn is_unit_forgotten(&self, first: u32, k: u32) -> bool {
        self.is_forgotten(first) || self.is_forgotten(first.wrapping_add(k - 1))
    }

    /// Returns how many of `count` packets from a position on are not there.
    fn missing(&self, position: u32, count: u32) -> u32 {
        let Some(buffer) = &self.packet_buffer else { return count };
        count - buffer.run(position, count).flatten().count() as u32
    }

    /// Returns when `expire` has something to do.
    pub fn deadline(&self) -> Option<Seconds> {
        self.units.first().map(|unit| unit.since + self.limits.max_age_s)
    }

    /// Forgets units that are too old. Called by `source` and `repair` as well.
    pub fn expire(&mut self, now: Seconds) {
        while self.units.first().is_some_and(|unit| now - unit.since >= self.limits.max_age_s) {
            self.expire_unit(0);
        }
    }

    /// Returns the bytes of packets and repairs that are kept now.
    pub fn kept_bytes(&self) -> usize {
        self.repair_bytes + self.packet_buffer.as_ref().map_or(0, |buffer| buffer.bytes)
    }

    /// Returns how many incomplete units are kept now.
    pub fn kept_units(&self) -> usize {
        self.units.len()
    }

    fn unit_at(&self, position: u32) -> Option<usize> {
        self.units.iter().position(|unit| unit.first == position)
    }

    /// Tries every unit that covers a changed position, until nothing more comes of it, for units may overlap.
    fn rebuild(&mut self, mut changed: Vec<u32>, mut rebuilt: Vec<Rebuilt<P>>, out: &mut Vec<Rebuilt<P>>) {
        while let Some(position) = changed.pop() {
            let covering = self.units.iter().filter(|unit| unit.covers(position));
            let covering: Vec<u32> = covering.map(|unit| unit.first).collect();
            for first in covering {
                let more = self.decode(first);
                changed.extend(more.iter().map(|rebuilt_packet| rebuilt_packet.position));
                rebuilt.extend(more);
            }
        }
        if let Some(first) = rebuilt.first() {
            let base = first.position;
            self.trim();
            rebuilt.sort_by_key(|rebuilt_packet| serial_difference(rebuilt_packet.position, base));
            out.append(&mut rebuilt);
        }
    }

    fn decode(&mut self, first: u32) -> Vec<Rebuilt<P>> {
        let Some(unit_index) = self.unit_at(first).filter(|&unit_index| !self.units[unit_index].given_up)
        else {
            return Vec::new();
        };
        let unit = &self.units[unit_index];
        let missing = self.missing(first, unit.shape.k);
        if missing == 0 {
            self.drop_unit(unit_index);
            return Vec::new();
        }
        if !unit.shape.code.worth_trying(missing as usize, unit.repairs.len()) {
            return Vec::new();
        }
        let packets: Vec<Option<&P>> = match &self.packet_buffer {
            Some(buffer) => buffer.run(first, unit.shape.k).collect(),
            None => vec![None; unit.shape.k as usize],
        };
        let Ok(placed) = P::rebuild(unit.shape, &packets, &unit.repairs) else {
            self.give_up(unit_index);
            return Vec::new();
        };
        let rebuilt: Vec<Rebuilt<P>> = placed
            .into_iter()
            .map(|(place, packet)| Rebuilt { position: first.wrapping_add(place), packet })
            .collect();
        for rebuilt_packet in &rebuilt {
            self.keep(rebuilt_packet.position, rebuilt_packet.packet.clone());
        }
        self.counters.recovered += rebuilt.len() as u64;
        if rebuilt.len() as u32 == missing {
            if let Some(unit_index) = self.unit_at(first) {
                self.drop_unit(unit_index);
            }
        }
        rebuilt
    }

    fn keep(&mut self, position: u32, packet: P) {
        if self.packet_buffer.is_none() {
            // packets before the first that came may still come
            self.packet_buffer = Some(PacketBuffer::new(position.wrapping_sub(SOURCE_WINDOW)));
            self.newest = position;
            self.forget_old_units();
        }
        if serial_difference(position, self.newest) > 0 {
            self.newest = position;
            let floor = self.packet_buffer.as_ref().map_or(position, |buffer| buffer.floor);
            let steps = serial_difference(position.wrapping_sub(SOURCE_WINDOW), floor);
            self.raise_floor(steps.max(0) as u32);
        }
        if !self.is_forgotten(position) {
            let bytes = packet.bytes();
            if let Some(buffer) = &mut self.packet_buffer {
                buffer.put(position, packet, bytes);
            }
        }
    }

    /// Forgets the oldest units, then packets, above the limit of bytes.
    fn trim(&mut self) {
        while self.kept_bytes() > self.limits.max_bytes && !self.units.is_empty() {
            self.expire_unit(0);
        }
        while self.packet_buffer.as_ref().is_some_and(|buffer| buffer.bytes > self.limits.max_bytes) {
            self.raise_floor(1);
        }
    }

    /// Forgets the oldest packets, and the units that would need them.
    fn raise_floor(&mut self, steps: u32) {
        if let Some(buffer) = self.packet_buffer.as_mut().filter(|_| steps > 0) {
            buffer.raise_floor(steps, P::bytes);
            self.forget_old_units();
        }
    }

    /// Forgets the units that would need forgotten packets: what is rebuilt of such a unit is not kept, so it would be
    /// rebuilt for ever.
    fn forget_old_units(&mut self) {
        while let Some(unit_index) = self.oldest_forgotten() {
            self.expire_unit(unit_index);
        }
    }

    fn oldest_forgotten(&self) -> Option<usize> {
        self.units.iter().position(|unit| self.is_unit_forgotten(unit.first, unit.shape.k))
    }

    fn expire_unit(&mut self, unit_index: usize) {
        self.counters.expired_units += u64::from(!self.units[unit_index].given_up);
        self.drop_unit(unit_index);
    }

    fn drop_unit(&mut self, unit_index: usize) {
        self.repair_bytes -= self.units.remove(unit_index).repair_bytes();
    }

    /// Keeps the unit's name, so that its other repairs are known for what they are, but not its symbols.
    fn give_up(&mut self, unit_index: usize) {
        self.counters.failed_units += 1;
        let unit = &mut self.units[unit_index];
        self.repair_bytes -= unit.repair_bytes();
        unit.repairs = Vec::new();
        unit.given_up = true;
    }
}
