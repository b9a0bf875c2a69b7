//! The kernel for every processor: table look-ups, a byte at a time.

use crate::field::PRODUCT;
use crate::kernels::add;

pub fn rows(coefficients: &[u8], sources: &[&[u8]], width: usize, out: &mut [u8]) {
    for (factors, sum) in coefficients.chunks_exact(sources.len()).zip(out.chunks_exact_mut(width)) {
        sum.fill(0);
        for (&factor, source) in factors.iter().zip(sources) {
            match factor {
                0 => {}
                1 => add(sum, source),
                _ => {
                    let products = &PRODUCT[factor as usize];
                    for (sum, &byte) in sum.iter_mut().zip(*source) {
                        *sum ^= products[byte as usize];
                    }
                }
            }
        }
    }
}
