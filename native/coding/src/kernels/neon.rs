//! The kernel for 64-bit ARM, where NEON is always there.

use std::arch::aarch64::*;

use super::GROUP;
use crate::field::NIBBLES;

/// Computes the product by NEON.
///
/// # Safety
/// Every source has `width` bytes, at least 16, and `out` is `coefficients.len() / sources.len()` rows, 1 to GROUP, of
/// `width` bytes.
pub unsafe fn neon(coefficients: &[u8], sources: &[&[u8]], width: usize, out: &mut [u8]) {
    let count = coefficients.len() / sources.len();
    assert!((1..=GROUP).contains(&count) && out.len() == count * width);
    // SAFETY: passed on from the caller; the number of rows is right.
    unsafe {
        match count {
            4 => rows::<4>(coefficients, sources, width, out),
            3 => rows::<3>(coefficients, sources, width, out),
            2 => rows::<2>(coefficients, sources, width, out),
            _ => rows::<1>(coefficients, sources, width, out),
        }
    }
}

#[target_feature(enable = "neon")]
unsafe fn rows<const R: usize>(coefficients: &[u8], sources: &[&[u8]], width: usize, out: &mut [u8]) {
    const BLOCK: usize = 16;
    let k = sources.len();
    // SAFETY: column + BLOCK <= width, the length of each source; a table has 32 bytes; `out` has R rows of `width`.
    unsafe {
        let low_bits = vdupq_n_u8(15);
        for column in (0..width).step_by(BLOCK).map(|column| column.min(width - BLOCK)) {
            let mut sums = [vdupq_n_u8(0); R];
            for (j, source) in sources.iter().enumerate() {
                let bytes = vld1q_u8(source.as_ptr().add(column));
                let low = vandq_u8(bytes, low_bits);
                let high = vshrq_n_u8::<4>(bytes);
                for (i, sum) in sums.iter_mut().enumerate() {
                    let table = NIBBLES[coefficients[i * k + j] as usize].as_ptr();
                    let products =
                        veorq_u8(vqtbl1q_u8(vld1q_u8(table), low), vqtbl1q_u8(vld1q_u8(table.add(16)), high));
                    *sum = veorq_u8(*sum, products);
                }
            }
            for (i, sum) in sums.into_iter().enumerate() {
                vst1q_u8(out.as_mut_ptr().add(i * width + column), sum);
            }
        }
    }
}
