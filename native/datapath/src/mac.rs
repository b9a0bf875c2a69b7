//! Message authentication codes of datagrams: SipHash-2-4 (Aumasson and Bernstein, INDOCRYPT 2012) by a key of the pair.
//!
//! A code has 64 bits, takes the place of the CRC and of four reserved bytes, and covers header and body, so that an
//! authenticated datagram is as long as any other.

use std::fmt;
use std::hash::Hasher;

use siphasher::sip::SipHasher24;

/// Bytes of a key.
pub const KEY_BYTES: usize = 16;

/// A secret of two agents.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Key([u8; KEY_BYTES]);

impl fmt::Debug for Key {
    fn fmt(&self, form: &mut fmt::Formatter<'_>) -> fmt::Result {
        form.write_str("Key(secret)")
    }
}

impl Key {
    /// Returns the key of these bytes.
    pub fn new(bytes: [u8; KEY_BYTES]) -> Key {
        Key(bytes)
    }

    /// Returns the code of a datagram, from its header without the code and its body.
    pub fn code(&self, head: &[u8], body: &[u8]) -> u64 {
        let mut hasher = SipHasher24::new_with_key(&self.0);
        hasher.write(head);
        hasher.write(body);
        hasher.finish()
    }
}

/// A key with its number: keys of a pair follow each other, and two agents may not have the next one at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberedKey {
    /// On the wire.
    pub number: u8,
    /// Of both.
    pub key: Key,
}

/// The keys that a pair has at a time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PairKeys {
    /// By which datagrams leave; None: there is none yet, and the other end takes nothing of ours.
    pub sending: Option<NumberedKey>,
    /// By which datagrams may come.
    pub receiving: Vec<NumberedKey>,
}

impl PairKeys {
    /// Returns the key by which a datagram with this number may come.
    pub fn numbered(&self, number: u8) -> Option<&Key> {
        self.receiving.iter().find(|known| known.number == number).map(|known| &known.key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the paper's appendix A.
    #[test]
    fn the_code_is_siphash_2_4() {
        let bytes: Vec<u8> = (0..15).collect();
        let key = Key::new(std::array::from_fn(|index| index as u8));
        assert_eq!(key.code(&bytes, &[]), 0xa129_ca61_49be_45e5);
        assert_eq!(key.code(&bytes[..8], &bytes[8..]), 0xa129_ca61_49be_45e5);
    }

    #[test]
    fn a_key_is_not_shown() {
        assert_eq!(format!("{:?}", Key::new([7; KEY_BYTES])), "Key(secret)");
    }
}
