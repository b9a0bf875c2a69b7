//! CRC-32C (Castagnoli; RFC 3720, B.4), as the package `crc32c` computes it for protocol/datagram.py.

const POLYNOMIAL: u32 = 0x82F6_3B78;

/// TABLES[n][b]: the CRC register after byte b and n zero bytes.
static TABLES: [[u32; 256]; 8] = tables();

const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0u32; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut value = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 == 1 { value >> 1 ^ POLYNOMIAL } else { value >> 1 };
            bit += 1;
        }
        tables[0][byte] = value;
        byte += 1;
    }
    let mut table = 1;
    while table < 8 {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[table - 1][byte];
            tables[table][byte] = before >> 8 ^ tables[0][(before & 0xFF) as usize];
            byte += 1;
        }
        table += 1;
    }
    tables
}

/// Returns the CRC-32C of what gave `crc` (0: nothing) followed by `data`.
pub fn crc32c(crc: u32, data: &[u8]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("sse4.2") {
        if data.len() >= THREE_AT_LEAST && std::arch::is_x86_feature_detected!("pclmulqdq") {
            // SAFETY: the processor has both.
            return unsafe { three_at_once(crc, data) };
        }
        // SAFETY: the processor has SSE4.2.
        return unsafe { sse42(crc, data) };
    }
    portable(crc, data)
}

/// Returns the same on any processor, eight bytes at a time (Kounavis and Berry, "slicing-by-8").
pub fn portable(crc: u32, data: &[u8]) -> u32 {
    let mut state = !crc;
    let mut words = data.chunks_exact(8);
    for word in &mut words {
        let low = u32::from_le_bytes([word[0], word[1], word[2], word[3]]) ^ state;
        let entry = |table: usize, value: u32| TABLES[table][(value & 0xFF) as usize];
        state = entry(7, low) ^ entry(6, low >> 8) ^ entry(5, low >> 16) ^ entry(4, low >> 24);
        for (offset, &byte) in word[4..].iter().enumerate() {
            state ^= TABLES[3 - offset][byte as usize];
        }
    }
    for &byte in words.remainder() {
        state = state >> 8 ^ TABLES[0][((state ^ u32::from(byte)) & 0xFF) as usize];
    }
    !state
}

#[cfg(target_arch = "x86_64")]
/// Returns the same by the instruction of SSE 4.2.
///
/// # Safety
/// The processor has SSE 4.2.
#[target_feature(enable = "sse4.2")]
#[allow(unused_unsafe)] // newer compilers than Debian 12's know that the instructions are safe here
unsafe fn sse42(crc: u32, data: &[u8]) -> u32 {
    use std::arch::x86_64::{_mm_crc32_u64, _mm_crc32_u8};
    let mut state = u64::from(!crc);
    let mut words = data.chunks_exact(8);
    for word in &mut words {
        let word = u64::from_le_bytes(word.try_into().expect("chunks of eight"));
        // SAFETY: this function's own condition.
        state = unsafe { _mm_crc32_u64(state, word) };
    }
    let mut state = state as u32;
    for &byte in words.remainder() {
        // SAFETY: as above.
        state = unsafe { _mm_crc32_u8(state, byte) };
    }
    !state
}

/// Shorter data is done with sooner than its parts are joined.
#[cfg(target_arch = "x86_64")]
const THREE_AT_LEAST: usize = 192;
/// Words of eight bytes in each of three parts that are worked on together, at most: an Ethernet packet's.
#[cfg(target_arch = "x86_64")]
const MOST_WORDS: usize = 64;

/// SHIFTS[n]: x^(64 n - 33) modulo the polynomial, reflected: multiplied by it without carries, a CRC register is what
/// the instruction takes to the register after 8 n zero bytes (Gopal et al., "Fast CRC computation for iSCSI polynomial
/// using CRC32 instruction", Intel, 2011).
#[cfg(target_arch = "x86_64")]
static SHIFTS: [u32; 2 * MOST_WORDS + 1] = {
    let mut shifts = [0; 2 * MOST_WORDS + 1];
    let mut power = 1u32; // x^31
    let mut words = 1;
    while words < shifts.len() {
        shifts[words] = power;
        let mut bit = 0;
        while bit < 64 {
            power = if power & 1 == 1 { power >> 1 ^ POLYNOMIAL } else { power >> 1 };
            bit += 1;
        }
        words += 1;
    }
    shifts
};

/// Returns the same over three parts of the data at a time: the instruction takes three cycles, but one can begin in
/// each.
///
/// # Safety
/// The processor has SSE 4.2 and PCLMULQDQ.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse4.2,pclmulqdq")]
#[allow(unused_unsafe)] // as above
unsafe fn three_at_once(crc: u32, data: &[u8]) -> u32 {
    use std::arch::x86_64::{_mm_clmulepi64_si128, _mm_crc32_u64, _mm_cvtsi128_si64, _mm_cvtsi64_si128};
    let shifted = |state: u64, words: usize| {
        // SAFETY: this function's own condition.
        unsafe {
            let factor = _mm_cvtsi64_si128(i64::from(SHIFTS[words]));
            let product = _mm_clmulepi64_si128::<0>(_mm_cvtsi64_si128(state as i64), factor);
            _mm_crc32_u64(0, _mm_cvtsi128_si64(product) as u64)
        }
    };
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("chunks of eight"));
    let (mut state, mut rest) = (u64::from(!crc), data);
    while rest.len() >= THREE_AT_LEAST {
        let words = (rest.len() / 24).min(MOST_WORDS);
        let (first, others) = rest.split_at(8 * words);
        let (second, others) = others.split_at(8 * words);
        let (third, others) = others.split_at(8 * words);
        let (mut states, parts) = ([state, 0, 0], first.chunks_exact(8).zip(second.chunks_exact(8)));
        for ((first, second), third) in parts.zip(third.chunks_exact(8)) {
            // SAFETY: as above.
            unsafe {
                states[0] = _mm_crc32_u64(states[0], word(first));
                states[1] = _mm_crc32_u64(states[1], word(second));
                states[2] = _mm_crc32_u64(states[2], word(third));
            }
        }
        state = shifted(states[0], 2 * words) ^ shifted(states[1], words) ^ states[2];
        rest = others;
    }
    // SAFETY: as above.
    unsafe { sse42(!(state as u32), rest) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trials::trials;

    #[test]
    fn published_values() {
        // RFC 3720, B.4, and the check value of the CRC catalogue
        assert_eq!(crc32c(0, &[0; 32]), 0x8A91_36AA);
        assert_eq!(crc32c(0, &[0xFF; 32]), 0x62A8_AB43);
        assert_eq!(crc32c(0, b"123456789"), 0xE306_9283);
    }

    #[test]
    fn both_ways_agree_at_every_length_and_cut() {
        let data: Vec<u8> = (0..200u32).map(|index| ((index * 151) >> 2) as u8).collect();
        let step = if cfg!(miri) { 37 } else { 1 };
        for length in (0..data.len()).step_by(step) {
            let whole = crc32c(0, &data[..length]);
            assert_eq!(whole, portable(0, &data[..length]));
            for cut in (0..length).step_by(step) {
                assert_eq!(whole, portable(crc32c(0, &data[..cut]), &data[cut..length]));
            }
        }
        let data: Vec<u8> = (0..9000u32).map(|index| ((index * index) >> 3) as u8).collect();
        for length in (0..trials(4000)).chain([8192, 8999, 9000]) {
            let (start, before) = (length % 9, (length as u32).wrapping_mul(0x9E37_79B9));
            let some = &data[start.min(data.len() - length)..][..length];
            assert_eq!(crc32c(before, some), portable(before, some), "{length} B");
        }
    }
}
