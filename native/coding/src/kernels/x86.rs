//! Kernels for x86-64. GFNI's instruction is written as assembly: its intrinsic is not in every compiler that we
//! support (stable from Rust 1.89 on), the assembler's mnemonic is.
//!
//! # Safety
//!
//! Callers of `ssse3`, `avx2` and `gfni` vouch that the processor has the instructions, that every source has `width`
//! bytes, at least a block's (16, 32, 64), and that `out` is `coefficients.len() / sources.len()` rows, 1 to GROUP,
//! of `width` bytes.

use std::arch::asm;
use std::arch::x86_64::*;

use super::GROUP;
use crate::field::{MATRICES, NIBBLES};

/// Call `$rows` with the number of rows as a constant.
macro_rules! by_rows {
    ($rows:ident, $coefficients:ident, $sources:ident, $width:ident, $out:ident) => {{
        let count = $coefficients.len() / $sources.len();
        assert!((1..=GROUP).contains(&count) && $out.len() == count * $width);
        // SAFETY: passed on from the caller; the number of rows is right.
        unsafe {
            match count {
                4 => $rows::<4>($coefficients, $sources, $width, $out),
                3 => $rows::<3>($coefficients, $sources, $width, $out),
                2 => $rows::<2>($coefficients, $sources, $width, $out),
                _ => $rows::<1>($coefficients, $sources, $width, $out),
            }
        }
    }};
}

/// Computes the product by SSSE3.
///
/// # Safety
/// See the module.
pub unsafe fn ssse3(coefficients: &[u8], sources: &[&[u8]], width: usize, out: &mut [u8]) {
    by_rows!(ssse3_rows, coefficients, sources, width, out)
}

/// Computes the product by AVX2.
///
/// # Safety
/// See the module.
pub unsafe fn avx2(coefficients: &[u8], sources: &[&[u8]], width: usize, out: &mut [u8]) {
    by_rows!(avx2_rows, coefficients, sources, width, out)
}

/// Computes the product by GFNI.
///
/// # Safety
/// See the module.
pub unsafe fn gfni(coefficients: &[u8], sources: &[&[u8]], width: usize, out: &mut [u8]) {
    by_rows!(gfni_rows, coefficients, sources, width, out)
}

/// Returns the first columns of all blocks of `block` bytes: the last block ends at `width`.
fn blocks(width: usize, block: usize) -> impl Iterator<Item = usize> {
    (0..width).step_by(block).map(move |column| column.min(width - block))
}

#[target_feature(enable = "ssse3")]
unsafe fn ssse3_rows<const R: usize>(coefficients: &[u8], sources: &[&[u8]], width: usize, out: &mut [u8]) {
    const BLOCK: usize = 16;
    // SAFETY: column + BLOCK <= width, the length of each source; a table has 32 bytes; `out` has R rows of `width`.
    unsafe {
        let k = sources.len();
        let low_bits = _mm_set1_epi8(15);
        for column in blocks(width, BLOCK) {
            let mut sums = [_mm_setzero_si128(); R];
            for (j, source) in sources.iter().enumerate() {
                let bytes = _mm_loadu_si128(source.as_ptr().add(column).cast());
                let low = _mm_and_si128(bytes, low_bits);
                let high = _mm_and_si128(_mm_srli_epi64::<4>(bytes), low_bits);
                for (i, sum) in sums.iter_mut().enumerate() {
                    let table = NIBBLES[coefficients[i * k + j] as usize].as_ptr();
                    let (of_low, of_high) =
                        (_mm_loadu_si128(table.cast()), _mm_loadu_si128(table.add(16).cast()));
                    let products =
                        _mm_xor_si128(_mm_shuffle_epi8(of_low, low), _mm_shuffle_epi8(of_high, high));
                    *sum = _mm_xor_si128(*sum, products);
                }
            }
            for (i, sum) in sums.into_iter().enumerate() {
                _mm_storeu_si128(out.as_mut_ptr().add(i * width + column).cast(), sum);
            }
        }
    }
}

#[target_feature(enable = "avx2")]
unsafe fn avx2_rows<const R: usize>(coefficients: &[u8], sources: &[&[u8]], width: usize, out: &mut [u8]) {
    const BLOCK: usize = 32;
    // SAFETY: column + BLOCK <= width, the length of each source; a table has 32 bytes; `out` has R rows of `width`.
    unsafe {
        let k = sources.len();
        let low_bits = _mm256_set1_epi8(15);
        for column in blocks(width, BLOCK) {
            let mut sums = [_mm256_setzero_si256(); R];
            for (j, source) in sources.iter().enumerate() {
                let bytes = _mm256_loadu_si256(source.as_ptr().add(column).cast());
                let low = _mm256_and_si256(bytes, low_bits);
                let high = _mm256_and_si256(_mm256_srli_epi64::<4>(bytes), low_bits);
                for (i, sum) in sums.iter_mut().enumerate() {
                    let table = NIBBLES[coefficients[i * k + j] as usize].as_ptr();
                    let (of_low, of_high) =
                        (_mm_loadu_si128(table.cast()), _mm_loadu_si128(table.add(16).cast()));
                    let products = _mm256_xor_si256(
                        _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(of_low), low),
                        _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(of_high), high),
                    );
                    *sum = _mm256_xor_si256(*sum, products);
                }
            }
            for (i, sum) in sums.into_iter().enumerate() {
                _mm256_storeu_si256(out.as_mut_ptr().add(i * width + column).cast(), sum);
            }
        }
    }
}

#[target_feature(enable = "avx2")]
unsafe fn gfni_rows<const R: usize>(coefficients: &[u8], sources: &[&[u8]], width: usize, out: &mut [u8]) {
    const BLOCK: usize = 64;
    // SAFETY: column + BLOCK <= width, the length of each source; a table has 32 bytes; `out` has R rows of `width`.
    unsafe {
        let k = sources.len();
        // matrices[j][i]: what a source is multiplied by, in the order in which it is wanted
        let mut matrices = vec![[0; R]; k];
        for (i, factors) in coefficients.chunks_exact(k).enumerate() {
            for (matrices, &factor) in matrices.iter_mut().zip(factors) {
                matrices[i] = MATRICES[factor as usize];
            }
        }
        for column in blocks(width, BLOCK) {
            let mut sums = [[_mm256_setzero_si256(); 2]; R];
            for (source, matrices) in sources.iter().zip(&matrices) {
                let bytes = source.as_ptr().add(column);
                let left = _mm256_loadu_si256(bytes.cast());
                let right = _mm256_loadu_si256(bytes.add(32).cast());
                for (sum, &matrix) in sums.iter_mut().zip(matrices) {
                    let matrix = _mm256_set1_epi64x(matrix as i64);
                    sum[0] = _mm256_xor_si256(sum[0], affine(left, matrix));
                    sum[1] = _mm256_xor_si256(sum[1], affine(right, matrix));
                }
            }
            for (i, sum) in sums.into_iter().enumerate() {
                let bytes = out.as_mut_ptr().add(i * width + column);
                _mm256_storeu_si256(bytes.cast(), sum[0]);
                _mm256_storeu_si256(bytes.add(32).cast(), sum[1]);
            }
        }
    }
}

/// Returns the matrix times each byte.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn affine(bytes: __m256i, matrix: __m256i) -> __m256i {
    let products;
    // SAFETY: registers to a register.
    unsafe {
        asm!(
            "vgf2p8affineqb {products}, {bytes}, {matrix}, 0",
            products = lateout(ymm_reg) products,
            bytes = in(ymm_reg) bytes,
            matrix = in(ymm_reg) matrix,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    products
}
