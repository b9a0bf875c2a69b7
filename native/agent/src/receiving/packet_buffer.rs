//! The packets of one receiving flow that its decoder still needs, by position.

use std::collections::VecDeque;

/// Positions from the floor on that can be kept.
pub const RING: usize = 1024;

/// Packets at `floor` to `floor + RING - 1`; others can be asked for, and are not there.
#[derive(Clone, Debug)]
pub(super) struct PacketBuffer<P> {
    /// From the position `begin` on, which is no less than the floor.
    packets: VecDeque<Option<P>>,
    begin: u32,
    pub floor: u32,
    /// Bytes of all packets that are kept.
    pub bytes: usize,
}

impl<P> PacketBuffer<P> {
    pub fn new(floor: u32) -> PacketBuffer<P> {
        PacketBuffer { packets: VecDeque::new(), begin: floor, floor, bytes: 0 }
    }

    pub fn at(&self, position: u32) -> Option<&P> {
        self.packets.get(position.wrapping_sub(self.begin) as usize)?.as_ref()
    }

    /// Returns the packets at consecutive positions, None where there is none.
    pub fn run(&self, position: u32, count: u32) -> impl Iterator<Item = Option<&P>> {
        (0..count).map(move |ahead| self.at(position.wrapping_add(ahead)))
    }

    /// Keeps a packet where there is none. Positions outside of the ring are not kept.
    pub fn put(&mut self, position: u32, packet: P, bytes: usize) {
        if (position.wrapping_sub(self.floor) as usize) >= RING {
            return;
        }
        if self.packets.is_empty() {
            self.begin = position;
        }
        while position.wrapping_sub(self.begin) as usize >= RING {
            self.begin = self.begin.wrapping_sub(1);
            self.packets.push_front(None);
        }
        let place = position.wrapping_sub(self.begin) as usize;
        while self.packets.len() <= place {
            self.packets.push_back(None);
        }
        debug_assert!(self.packets[place].is_none());
        self.packets[place] = Some(packet);
        self.bytes += bytes;
    }

    /// Forgets so many positions from the floor on.
    pub fn raise_floor(&mut self, steps: u32, bytes: impl Fn(&P) -> usize) {
        let ahead = self.begin.wrapping_sub(self.floor);
        self.floor = self.floor.wrapping_add(steps);
        let gone = (steps.saturating_sub(ahead) as usize).min(self.packets.len());
        for packet in self.packets.drain(..gone).flatten() {
            self.bytes -= bytes(&packet);
        }
        self.begin = self.begin.wrapping_add(gone as u32);
        if self.packets.is_empty() {
            self.begin = self.floor;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use trials::trials;

    use super::*;
    use crate::{Generator, Random};

    #[test]
    fn a_packet_buffer_is_a_dictionary_with_a_floor() {
        let mut draws = Generator::new(4);
        for first in [0u32, 700, u32::MAX - 99] {
            let (mut buffer, mut model, mut low) =
                (PacketBuffer::new(first), BTreeMap::<u64, u32>::new(), u64::from(first));
            for _ in 0..trials(3000) {
                let steps = [0, 0, 1, 40, 600, RING as u32 + 5][draws.below(6) as usize];
                buffer.raise_floor(steps, |&size| size as usize);
                low += u64::from(steps);
                model.retain(|&place, _| place >= low);
                let place = low + u64::from(draws.below(RING as u32 + 40));
                let (size, is_new) = (1 + draws.below(9), !model.contains_key(&place));
                if is_new {
                    buffer.put(place as u32, size, size as usize);
                }
                if is_new && place < low + RING as u64 {
                    model.insert(place, size);
                }
                let from =
                    low + u64::from(draws.below(RING as u32 + 100)) - u64::from(draws.below(50).min(first));
                let seen: Vec<_> = buffer.run(from as u32, 70).map(|packet| packet.copied()).collect();
                assert_eq!(
                    seen,
                    (from..from + 70).map(|place| model.get(&place).copied()).collect::<Vec<_>>()
                );
                assert_eq!(buffer.bytes, model.values().sum::<u32>() as usize);
                assert_eq!(buffer.floor, low as u32);
            }
        }
    }
}
