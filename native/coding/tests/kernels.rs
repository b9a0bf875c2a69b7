//! Every kernel gives the same bytes as the definition, for every size, and writes nothing beyond its result.

mod random;

use coding::field::multiply;
use coding::kernels::product;
use coding::Kernel;
use random::Random;

fn by_definition(coefficients: &[u8], sources: &[&[u8]], width: usize) -> Vec<u8> {
    let mut out = Vec::new();
    for factors in coefficients.chunks(sources.len()) {
        for column in 0..width {
            let terms = factors.iter().zip(sources).map(|(&factor, source)| multiply(factor, source[column]));
            out.push(terms.fold(0, |sum, term| sum ^ term));
        }
    }
    out
}

#[test]
fn all_kernels_agree_with_the_definition() {
    let mut random = Random(1);
    let mut widths: Vec<usize> = (1..if cfg!(miri) { 4 } else { 200 }).collect();
    widths.extend([15, 16, 31, 32, 63, 64, 65, 127, 128, 1399, 1400, 1401]);
    for width in widths {
        for _ in 0..if cfg!(miri) { 1 } else { 12 } {
            let (rows, k) = (random.within(1, 9), random.within(1, 40));
            let coefficients = random.bytes(rows * k);
            // rows at any alignment: they follow each other in one piece of memory
            let memory = random.bytes(k * width + 7);
            let start = random.within(0, 7);
            let sources: Vec<&[u8]> = memory[start..].chunks_exact(width).take(k).collect();
            let expected = by_definition(&coefficients, &sources, width);
            for kernel in Kernel::available() {
                let mut out = vec![0xA5; rows * width + 2 * 64];
                product(kernel, &coefficients, &sources, width, &mut out[64..][..rows * width]).unwrap();
                assert_eq!(out[64..][..rows * width], expected, "{} {rows}x{k}x{width}", kernel.name());
                assert!(out[..64].iter().chain(&out[64 + rows * width..]).all(|&byte| byte == 0xA5));
            }
        }
    }
}

#[test]
fn every_coefficient_meets_every_byte() {
    let source: Vec<u8> = (0..=255).collect();
    let coefficients: Vec<u8> = (0..=255).step_by(if cfg!(miri) { 51 } else { 1 }).collect();
    let expected = by_definition(&coefficients, &[&source], 256);
    for kernel in Kernel::available() {
        let mut out = vec![0; coefficients.len() * 256];
        product(kernel, &coefficients, &[&source], 256, &mut out).unwrap();
        assert!(out == expected, "{}", kernel.name());
    }
}

#[test]
fn sizes_that_do_not_fit_are_refused() {
    let row = [1u8; 64];
    for kernel in Kernel::available() {
        let mut out = [0; 64];
        assert!(product(kernel, &[1, 2, 3], &[&row, &row], 64, &mut out).is_err());
        assert!(product(kernel, &[1, 2], &[&row, &row[..63]], 64, &mut out).is_err());
        assert!(product(kernel, &[1, 2], &[&row, &row], 64, &mut out[..63]).is_err());
        assert!(product(kernel, &[1, 2, 3, 4], &[&row, &row], 64, &mut out).is_err());
        assert!(product(kernel, &[1], &[], 64, &mut out).is_err());
    }
}

#[test]
fn kernels_are_found_by_name_and_only_where_they_can_run() {
    assert_eq!(Kernel::available()[0], Kernel::Portable);
    assert!(Kernel::best().is_available());
    for kernel in Kernel::ALL {
        assert_eq!(Kernel::named(kernel.name()).is_ok(), kernel.is_available());
        if !kernel.is_available() {
            assert!(product(kernel, &[1], &[&[1; 64]], 64, &mut [0; 64]).is_err());
        }
    }
    assert!(Kernel::named("mmx").is_err());
}
