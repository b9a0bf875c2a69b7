//! The header of a datagram, as protocol/datagram.py writes and reads it.

use crate::crc32c::crc32c;
use crate::mac::{NumberedKey, PairKeys};
use crate::word::word;

pub const HEADER_BYTES: usize = 32;
pub const SOURCE: u8 = 1;
pub const REPAIR: u8 = 2;
pub const FEEDBACK: u8 = 3;
pub const CLASS_MASK: u8 = 0x03;
const MAGIC: u8 = 0xCA;
const VERSION: u8 = 1;
const CRC_OFFSET: usize = 28;
/// Set in the flags of an authenticated datagram: a code of 8 bytes is where others have 4 reserved bytes and the CRC.
pub const FLAG_AUTHENTICATED: u8 = 0x08;
const KEY_NUMBER_OFFSET: usize = 3;
const CODE_OFFSET: usize = 24;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub kind: u8,
    pub flags: u8,
    pub session: u32,
    pub number: u32,
    pub sent_us: u32,
    pub flow: u32,
    pub position: u32,
}

impl Header {
    /// Returns the 32 bytes before `body`, with the CRC of both.
    pub fn encode(&self, body: &[u8]) -> [u8; HEADER_BYTES] {
        let mut head = self.fields(self.flags, 0);
        let crc = crc32c(crc32c(0, &head), body);
        head[CRC_OFFSET..].copy_from_slice(&crc.to_be_bytes());
        head
    }

    /// Returns the 32 bytes before `body`, with the code of both by `key`.
    pub fn authenticate(&self, body: &[u8], key: &NumberedKey) -> [u8; HEADER_BYTES] {
        let mut head = self.fields(self.flags | FLAG_AUTHENTICATED, key.number);
        let code = key.key.code(&head[..CODE_OFFSET], body);
        head[CODE_OFFSET..].copy_from_slice(&code.to_be_bytes());
        head
    }

    fn fields(&self, flags: u8, key_number: u8) -> [u8; HEADER_BYTES] {
        let mut head = [0u8; HEADER_BYTES];
        head[..4].copy_from_slice(&[MAGIC, VERSION << 4 | self.kind, flags, key_number]);
        let fields = [self.session, self.number, self.sent_us, self.flow, self.position];
        for (slot, field) in head[4..CODE_OFFSET].chunks_exact_mut(4).zip(fields) {
            slot.copy_from_slice(&field.to_be_bytes());
        }
        head
    }

    /// Returns header and body of a datagram, or the counter's name for what is wrong with it.
    pub fn read(datagram: &[u8]) -> Result<(Header, &[u8]), &'static str> {
        let (head, body) = datagram.split_at_checked(HEADER_BYTES).ok_or("truncated")?;
        ours(head)?;
        if word(head, CRC_OFFSET) != crc32c(crc32c(crc32c(0, &head[..CRC_OFFSET]), &[0; 4]), body) {
            return Err("crc");
        }
        Ok((Header::parse(head)?, body))
    }

    /// Returns header and body of a datagram that has a code by one of `keys`, or the counter's name for what is wrong
    /// with it. No field is trusted before the code is verified.
    pub fn read_authenticated<'a>(
        datagram: &'a [u8],
        keys: &PairKeys,
    ) -> Result<(Header, &'a [u8]), &'static str> {
        let (head, body) = datagram.split_at_checked(HEADER_BYTES).ok_or("truncated")?;
        ours(head)?;
        if head[2] & FLAG_AUTHENTICATED == 0 {
            return Err("unauthenticated");
        }
        let key = keys.numbered(head[KEY_NUMBER_OFFSET]).ok_or("key")?;
        let (fields, code) = head.split_at(CODE_OFFSET);
        if code != key.code(fields, body).to_be_bytes() {
            return Err("code");
        }
        Ok((Header::parse(head)?, body))
    }

    fn parse(head: &[u8]) -> Result<Header, &'static str> {
        let kind = head[1] & 0x0F;
        if !(SOURCE..=FEEDBACK).contains(&kind) {
            return Err("kind");
        }
        Ok(Header {
            kind,
            flags: head[2],
            session: word(head, 4),
            number: word(head, 8),
            sent_us: word(head, 12),
            flow: word(head, 16),
            position: word(head, 20),
        })
    }
}

fn ours(head: &[u8]) -> Result<(), &'static str> {
    if head[0] != MAGIC {
        return Err("foreign");
    }
    if head[1] >> 4 != VERSION {
        return Err("version");
    }
    Ok(())
}

/// Code, k, r, index, seed, and four bytes that are kept.
pub const REPAIR_HEAD_BYTES: usize = 12;
/// Bytes of a packet's length, in its symbol.
const LENGTH_BYTES: usize = 2;

/// What a REPAIR's body begins with: which unit it repairs and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepairHead {
    /// Number of the code.
    pub code: u8,
    /// Sources of the unit.
    pub k: u8,
    /// Its repairs.
    pub r: u8,
    /// Which of them this is.
    pub index: u8,
    /// What the coefficients follow from.
    pub seed: u32,
}

impl RepairHead {
    /// Returns the bytes before the symbol.
    pub fn encode(&self) -> [u8; REPAIR_HEAD_BYTES] {
        let seed = self.seed.to_be_bytes();
        [self.code, self.k, self.r, self.index, seed[0], seed[1], seed[2], seed[3], 0, 0, 0, 0]
    }

    /// Returns head and symbol of a REPAIR's body; None: it cannot be one. Whether its code is known, `coding` says.
    pub fn decode(body: &[u8]) -> Option<(RepairHead, &[u8])> {
        if body.len() < REPAIR_HEAD_BYTES + LENGTH_BYTES {
            return None;
        }
        let (head, symbol) = body.split_at(REPAIR_HEAD_BYTES);
        let head = RepairHead { code: head[0], k: head[1], r: head[2], index: head[3], seed: word(head, 4) };
        (head.k > 0 && head.index < head.r).then_some((head, symbol))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mac::{Key, KEY_BYTES};

    fn keys(numbers: &[u8]) -> PairKeys {
        let all: Vec<NumberedKey> = numbers
            .iter()
            .map(|&number| NumberedKey { number, key: Key::new([number; KEY_BYTES]) })
            .collect();
        PairKeys { sending: all.first().copied(), receiving: all }
    }

    #[test]
    fn no_flipped_bit_of_an_authenticated_datagram_passes() {
        let header =
            Header { kind: SOURCE, flags: 5, session: 1, number: 2, sent_us: 3, flow: 4, position: 5 };
        let (body, keys) = (b"a packet", keys(&[7, 8]));
        let mut datagram = header.authenticate(body, &keys.sending.unwrap()).to_vec();
        datagram.extend_from_slice(body);
        let read = Header { flags: 5 | FLAG_AUTHENTICATED, ..header };
        assert_eq!(Header::read_authenticated(&datagram, &keys), Ok((read, &body[..])));
        assert_eq!(Header::read(&datagram), Err("crc"));
        for bit in 0..datagram.len() * 8 {
            datagram[bit / 8] ^= 1 << (bit % 8);
            assert!(Header::read_authenticated(&datagram, &keys).is_err(), "bit {bit}");
            datagram[bit / 8] ^= 1 << (bit % 8);
        }
        for length in 0..datagram.len() {
            assert!(Header::read_authenticated(&datagram[..length], &keys).is_err(), "length {length}");
        }
    }

    #[test]
    fn old_and_new_keys_are_good_side_by_side_and_no_others() {
        let header =
            Header { kind: FEEDBACK, flags: 0, session: 1, number: 2, sent_us: 3, flow: 4, position: 5 };
        for (sender, receiver, expected) in [
            (keys(&[7, 6]), keys(&[7, 6]), None),
            (keys(&[8, 7]), keys(&[7, 8, 6]), None),
            (keys(&[7, 6]), keys(&[8, 9]), Some("key")),
        ] {
            let datagram = header.authenticate(&[], &sender.sending.unwrap());
            assert_eq!(Header::read_authenticated(&datagram, &receiver).err(), expected);
        }
        let other = PairKeys {
            sending: None,
            receiving: vec![NumberedKey { number: 7, key: Key::new([0; KEY_BYTES]) }],
        };
        let datagram = header.authenticate(&[], &keys(&[7]).sending.unwrap());
        assert_eq!(Header::read_authenticated(&datagram, &other), Err("code"));
        assert_eq!(Header::read_authenticated(&header.encode(&[]), &other), Err("unauthenticated"));
    }

    #[test]
    fn what_was_encoded_is_decoded_and_no_flipped_bit_passes() {
        let header =
            Header { kind: SOURCE, flags: 5, session: 1, number: 2, sent_us: 3, flow: 4, position: 5 };
        let body = b"a packet";
        let mut datagram = header.encode(body).to_vec();
        datagram.extend_from_slice(body);
        assert_eq!(Header::read(&datagram).ok(), Some((header, &body[..])));
        for bit in 0..datagram.len() * 8 {
            datagram[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Header::read(&datagram).ok(), None, "bit {bit}");
            datagram[bit / 8] ^= 1 << (bit % 8);
        }
        for length in 0..datagram.len() {
            assert_eq!(Header::read(&datagram[..length]).ok(), None, "length {length}");
        }
    }
}
