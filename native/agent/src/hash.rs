//! Hash maps that take a few instructions for a key. What is in them does not depend on the hashes, and nothing that
//! iterates over one may.

use std::collections::hash_map::RandomState;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, BuildHasherDefault, Hasher};

/// Mixes numbers by multiplication: a few instructions, the same in every process.
#[derive(Clone, Copy, Debug, Default)]
pub struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u8(&mut self, number: u8) {
        self.write_u64(u64::from(number));
    }

    fn write_u16(&mut self, number: u16) {
        self.write_u64(u64::from(number));
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        // the top bits of the product are the mixed ones, and a map takes its place from the lowest ones
        self.0 = (self.0 ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(32);
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn write_i64(&mut self, number: i64) {
        self.write_u64(number as u64);
    }

    fn write_isize(&mut self, number: isize) {
        self.write_u64(number as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Mixes 32 bits by the finish of MurmurHash3: each changes all.
pub fn mixed(value: u32) -> u32 {
    let value = (value ^ value >> 16).wrapping_mul(0x85EB_CA6B);
    let value = (value ^ value >> 13).wrapping_mul(0xC2B2_AE35);
    value ^ value >> 16
}

/// A hash map whose keys are numbers that we, or the directory, gave, or of 16 bits: nothing outside can choose many that
/// collide.
pub type NumberMap<K, V> = HashMap<K, V, BuildHasherDefault<NumberHasher>>;

/// A hash set of such numbers.
pub type NumberSet<K> = HashSet<K, BuildHasherDefault<NumberHasher>>;

/// A hash map whose keys others choose: which of them collide depends on a secret of its own.
pub type SecretMap<K, V> = HashMap<K, V, Secret>;

/// What the hashes of one map depend on, random.
#[derive(Clone, Copy, Debug)]
pub struct Secret {
    first: u64,
    multiplier: u64,
}

impl Default for Secret {
    fn default() -> Secret {
        let random = RandomState::new();
        Secret { first: random.hash_one(0), multiplier: random.hash_one(1) | 1 }
    }
}

impl BuildHasher for Secret {
    type Hasher = SecretHasher;

    fn build_hasher(&self) -> SecretHasher {
        SecretHasher { state: self.first, multiplier: self.multiplier }
    }
}

/// Multiplies by the secret, and folds the product: each bit of a key changes all of its hash.
#[derive(Clone, Copy, Debug)]
pub struct SecretHasher {
    state: u64,
    multiplier: u64,
}

impl Hasher for SecretHasher {
    fn write(&mut self, bytes: &[u8]) {
        for some in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..some.len()].copy_from_slice(some);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        let product = u128::from(self.state ^ number) * u128::from(self.multiplier);
        self.state = product as u64 ^ (product >> 64) as u64;
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn write_isize(&mut self, number: isize) {
        self.write_u64(number as u64);
    }

    fn finish(&self) -> u64 {
        self.state
    }
}

#[cfg(test)]
mod tests {
    use datapath::inner::FlowKey;

    use super::*;

    /// Returns the share of pairs of keys, one bit apart, whose hashes differ in each bit, over many secrets.
    fn changed(hash: impl Fn(Secret, u32) -> u64) -> Vec<f64> {
        let secrets: Vec<Secret> = (0..100).map(|_| Secret::default()).collect();
        let mut changed = [0u32; 64];
        for key in 0..2000u32 {
            let (secret, bit) = (secrets[key as usize % secrets.len()], key % 32);
            let key = key.wrapping_mul(0x9E37_79B9);
            let difference = hash(secret, key) ^ hash(secret, key ^ 1 << bit);
            (0..64).for_each(|place| changed[place] += (difference >> place & 1) as u32);
        }
        changed.iter().map(|&count| f64::from(count) / 2000.0).collect()
    }

    #[test]
    #[cfg_attr(miri, ignore = "judges a share of thousands")]
    fn each_bit_of_a_key_changes_each_bit_of_its_hash_in_half_of_all_cases() {
        let flow = |secret: Secret, number: u32| {
            let mut key = [6; 13];
            key[9..].copy_from_slice(&number.to_be_bytes());
            secret.hash_one(FlowKey::V4(key))
        };
        for share in changed(|secret, number| secret.hash_one(number)).into_iter().chain(changed(flow)) {
            assert!((0.4..0.6).contains(&share), "{share}");
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "judges a share of thousands")]
    fn which_keys_collide_is_a_secret_of_each_map() {
        let (one, other) = (Secret::default(), Secret::default());
        let place = |secret: &Secret, key: u32| secret.hash_one(key) % 1024;
        // a thousandth of all keys, though of some secrets fewer of the first million
        let colliding: Vec<u32> = (0..1 << 26).filter(|&key| place(&one, key) == 7).take(1000).collect();
        assert_eq!(colliding.len(), 1000);
        let together = colliding.iter().filter(|&&key| place(&other, key) == place(&other, colliding[0]));
        assert!(together.count() < 20);
        assert_eq!(one.hash_one(5u32), one.hash_one(5u32));
    }
}
