//! Feedback: what a peer says of our datagrams, and what we say of its; `Feedback` of protocol/datagram.py.

use std::fmt;

use crate::prefetch::prefetch;
use crate::word::word;

pub const MOST_RECEIPTS: usize = 128;
pub const MOST_LOST: usize = 32;
const HEAD_BYTES: usize = 8;
const RECEIPT_BYTES: usize = 8;
const LOSS_BYTES: usize = 8;
/// What is added to the distance of a number from the first, which may be below 0, on the wire.
const MIDDLE: u32 = 1 << 15;
/// Between the numbers of one feedback, less than what is encoded.
const MOST_DISTANCE: i32 = 32_000;

/// Beside a stamp, which has 12 bits: the datagram came with a congestion mark (CE of RFC 3168) on its outer header.
const MARKED: u16 = 0x8000;

/// A datagram that arrived: its number, its path's stamp (0: none), its delay, receiver's clock less sender's, and whether
/// a switch had marked it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    pub number: u32,
    pub stamp: u16,
    pub delay_us: u32,
    pub marked: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Feedback {
    pub receipts: Vec<Receipt>,
    /// First number and count of those that were given up.
    pub lost: Vec<(u32, u32)>,
    pub recovered: u16,
}

/// Why a body is no feedback.
#[derive(Debug, PartialEq, Eq)]
pub struct Malformed(String);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn short(bytes: &[u8], offset: usize) -> u16 {
    u16::from_be_bytes([bytes[offset], bytes[offset + 1]])
}

impl Feedback {
    pub fn decode(body: &[u8]) -> Result<Feedback, Malformed> {
        let size = body.len();
        let Some((head, rest)) = body.split_at_checked(HEAD_BYTES) else {
            return Err(Malformed(format!("feedback body of {size} B is too short")));
        };
        let (receipts, losses) = (usize::from(head[0]), usize::from(head[1]));
        if receipts > MOST_RECEIPTS || losses > MOST_LOST {
            return Err(Malformed(format!("feedback of {receipts} receipts and {losses} losses cannot be")));
        }
        let expected = HEAD_BYTES + receipts * RECEIPT_BYTES + losses * LOSS_BYTES;
        if size != expected {
            return Err(Malformed(format!("feedback body is {size} B, not {expected} B")));
        }
        let base = word(head, 4).wrapping_sub(MIDDLE);
        let (receipts, lost) = rest.split_at(receipts * RECEIPT_BYTES);
        Ok(Feedback {
            receipts: receipts
                .chunks_exact(RECEIPT_BYTES)
                .map(|fields| Receipt {
                    number: base.wrapping_add(u32::from(short(fields, 0))),
                    stamp: short(fields, 2) & !MARKED,
                    delay_us: word(fields, 4),
                    marked: short(fields, 2) & MARKED != 0,
                })
                .collect(),
            lost: lost.chunks_exact(LOSS_BYTES).map(|fields| (word(fields, 0), word(fields, 4))).collect(),
            recovered: short(head, 2),
        })
    }

    /// Returns how many bytes `encode` gives.
    pub fn encoded_bytes(&self) -> u32 {
        (HEAD_BYTES + self.receipts.len() * RECEIPT_BYTES + self.lost.len() * LOSS_BYTES) as u32
    }

    /// Returns the body of the datagram. Receipts and losses are as many as `Receipts` and MOST_LOST allow.
    pub fn encode(&self) -> Vec<u8> {
        debug_assert!(self.receipts.len() <= MOST_RECEIPTS && self.lost.len() <= MOST_LOST);
        let first = self.receipts.first().map_or(0, |receipt| receipt.number);
        let size = HEAD_BYTES + self.receipts.len() * RECEIPT_BYTES + self.lost.len() * LOSS_BYTES;
        let mut body = Vec::with_capacity(size);
        body.extend_from_slice(&[self.receipts.len() as u8, self.lost.len() as u8]);
        body.extend_from_slice(&self.recovered.to_be_bytes());
        body.extend_from_slice(&first.to_be_bytes());
        for Receipt { number, stamp, delay_us, marked } in &self.receipts {
            let offset = number.wrapping_sub(first).wrapping_add(MIDDLE) as u16;
            body.extend_from_slice(&offset.to_be_bytes());
            let mark = if *marked { MARKED } else { 0 };
            body.extend_from_slice(&(stamp | mark).to_be_bytes());
            body.extend_from_slice(&delay_us.to_be_bytes());
        }
        for (number, count) in &self.lost {
            body.extend_from_slice(&number.to_be_bytes());
            body.extend_from_slice(&count.to_be_bytes());
        }
        body
    }
}

/// Receipts that wait to be reported, as many as one feedback takes.
#[derive(Default)]
pub struct Receipts {
    receipts: Vec<Receipt>,
}

impl Receipts {
    pub fn len(&self) -> usize {
        self.receipts.len()
    }

    pub fn is_empty(&self) -> bool {
        self.receipts.is_empty()
    }

    /// Add datagrams with consecutive numbers from `first` on and one delay, all marked or none, by their stamps. False, and nothing is
    /// added: they do not go into one feedback with the others.
    pub fn add(
        &mut self,
        first: u32,
        stamps: impl ExactSizeIterator<Item = u16>,
        delay_us: u32,
        marked: bool,
    ) -> bool {
        let count = stamps.len();
        if let Some(known) = self.receipts.first() {
            let ahead = first.wrapping_sub(known.number) as i32;
            let most = MOST_DISTANCE.saturating_sub(i32::try_from(count).unwrap_or(i32::MAX)) + 1;
            if ahead <= -MOST_DISTANCE || ahead >= most {
                return false;
            }
        }
        if self.receipts.len() + count > MOST_RECEIPTS {
            return false;
        }
        let numbers = (0..).map(|ahead| first.wrapping_add(ahead));
        let receipt = |(number, stamp)| Receipt { number, stamp, delay_us, marked };
        self.receipts.extend(numbers.zip(stamps).map(receipt));
        true
    }

    /// Has the processor fetch the last receipt, which the next one follows.
    pub fn prefetch(&self) {
        self.receipts.last().map(prefetch);
    }

    /// Returns all receipts; then there are none.
    pub fn take(&mut self) -> Vec<Receipt> {
        std::mem::take(&mut self.receipts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trials::trials;

    #[test]
    fn what_is_encoded_is_decoded() {
        let mut waiting = Receipts::default();
        assert!(waiting.add(5, [3, 0].into_iter(), 70, false));
        assert!(waiting.add(u32::MAX - 9, [1].into_iter(), 71, true));
        assert!(!waiting.add(40_000, [0].into_iter(), 71, false), "too far from the first");
        assert!(!waiting.add(8, std::iter::repeat_n(0, MOST_RECEIPTS - 2), 71, false), "too many");
        let body = Feedback { receipts: waiting.take(), lost: vec![(9, 2)], recovered: 4 }.encode();
        assert!(waiting.is_empty());
        let decoded = Feedback::decode(&body).unwrap();
        let expected = [(5, 3, 70, false), (6, 0, 70, false), (u32::MAX - 9, 1, 71, true)];
        assert_eq!(
            decoded.receipts,
            expected.map(|(number, stamp, delay_us, marked)| Receipt { number, stamp, delay_us, marked })
        );
        assert_eq!((decoded.lost, decoded.recovered), (vec![(9, 2)], 4));
        for length in 0..body.len() {
            assert!(Feedback::decode(&body[..length]).is_err());
        }
    }

    #[test]
    fn any_bytes_are_feedback_or_refused() {
        let mut state = 1u64;
        for length in 0..trials(2000) {
            let body: Vec<u8> = (0..length % 300)
                .map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    (state >> 56) as u8 % if length % 2 == 0 { 12 } else { 255 }
                })
                .collect();
            if let Ok(decoded) = Feedback::decode(&body) {
                assert_eq!(body.len(), 8 * (1 + decoded.receipts.len() + decoded.lost.len()));
            }
        }
    }
}
