//! Products of a coefficient matrix over GF(256) with rows of bytes: one kernel per instruction set.
//!
//! A kernel computes up to `GROUP` rows of the product at once, `columns` bytes wide at a time, with the sums in
//! registers. The last block is moved back to end at the width: some bytes are computed twice and stored as the
//! same values, and no kernel needs a loop for what is left over. `product` checks all bounds, so that a kernel
//! may rely on them, and hands rows narrower than a block over in a wide copy.

#[cfg(target_arch = "aarch64")]
mod neon;
mod portable;
#[cfg(target_arch = "x86_64")]
mod x86;

use std::sync::OnceLock;

use crate::error::{invalid, Error};

/// Rows of a product that are computed together.
const GROUP: usize = 4;
/// The widest block of any kernel, in bytes.
const WIDEST: usize = 64;

/// One way to compute; all give the same bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kernel {
    Portable,
    Ssse3,
    Avx2,
    /// AVX2 with the affine instruction of GFNI.
    Gfni,
    Neon,
}

impl Kernel {
    pub const ALL: [Kernel; 5] = [Kernel::Portable, Kernel::Ssse3, Kernel::Avx2, Kernel::Gfni, Kernel::Neon];

    pub fn name(self) -> &'static str {
        match self {
            Kernel::Portable => "portable",
            Kernel::Ssse3 => "ssse3",
            Kernel::Avx2 => "avx2",
            Kernel::Gfni => "gfni",
            Kernel::Neon => "neon",
        }
    }

    /// Returns true if this processor (and this build) can run it.
    pub fn is_available(self) -> bool {
        match self {
            Kernel::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Kernel::Ssse3 => is_x86_feature_detected!("ssse3"),
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2 => is_x86_feature_detected!("avx2"),
            #[cfg(target_arch = "x86_64")] // Miri has no inline assembly
            Kernel::Gfni => {
                !cfg!(miri) && is_x86_feature_detected!("avx2") && is_x86_feature_detected!("gfni")
            }
            #[cfg(target_arch = "aarch64")]
            Kernel::Neon => true,
            #[allow(unreachable_patterns)]
            _ => false,
        }
    }

    /// Returns the kernels that can run here, slowest first.
    pub fn available() -> Vec<Kernel> {
        Kernel::ALL.into_iter().filter(|kernel| kernel.is_available()).collect()
    }

    /// Returns the fastest kernel that can run here; looked up once.
    pub fn best() -> Kernel {
        static BEST: OnceLock<Kernel> = OnceLock::new();
        *BEST.get_or_init(|| Kernel::available().pop().unwrap_or(Kernel::Portable))
    }

    /// Returns the kernel of that name, or an error if it cannot run here.
    pub fn named(name: &str) -> Result<Kernel, Error> {
        match Kernel::available().into_iter().find(|kernel| kernel.name() == name) {
            Some(kernel) => Ok(kernel),
            None => {
                let names: Vec<_> = Kernel::available().iter().map(|kernel| kernel.name()).collect();
                invalid!("kernel '{name}' cannot run here; there are {}", names.join(", "))
            }
        }
    }
}

/// Computes a matrix product over GF(256): row i of `out` is the sum over j of `coefficients[i * k + j] * sources[j]`.
///
/// `sources` are k rows of `width` bytes; `out` is rows x `width` bytes and overwritten.
pub fn product(
    kernel: Kernel,
    coefficients: &[u8],
    sources: &[&[u8]],
    width: usize,
    out: &mut [u8],
) -> Result<(), Error> {
    let k = sources.len();
    if let Some(wrong) = sources.iter().find(|source| source.len() != width) {
        return invalid!("a source of {} B does not fit a width of {width} B", wrong.len());
    }
    if k == 0 || width == 0 {
        if !coefficients.is_empty() && k == 0 {
            return invalid!("{} coefficients do not fit no sources", coefficients.len());
        }
        out.fill(0);
        return Ok(());
    }
    if coefficients.len() % k != 0 || coefficients.len() / k * width != out.len() {
        return invalid!(
            "{} coefficients of {k} sources of {width} B do not fit a result of {} B",
            coefficients.len(),
            out.len()
        );
    }
    if !kernel.is_available() {
        return invalid!("kernel '{}' cannot run here", kernel.name());
    }
    if width < WIDEST && kernel != Kernel::Portable {
        let wide: Vec<[u8; WIDEST]> = sources
            .iter()
            .map(|source| {
                let mut row = [0; WIDEST];
                row[..width].copy_from_slice(source);
                row
            })
            .collect();
        let rows: Vec<&[u8]> = wide.iter().map(|row| &row[..]).collect();
        let mut wide_out = vec![0; coefficients.len() / k * WIDEST];
        groups(kernel, coefficients, &rows, WIDEST, &mut wide_out);
        for (narrow, wide) in out.chunks_exact_mut(width).zip(wide_out.chunks_exact(WIDEST)) {
            narrow.copy_from_slice(&wide[..width]);
        }
        return Ok(());
    }
    groups(kernel, coefficients, sources, width, out);
    Ok(())
}

/// Computes the product, a group of rows at a time. Sizes fit and the kernel is available: `product` has checked.
fn groups(kernel: Kernel, coefficients: &[u8], sources: &[&[u8]], width: usize, out: &mut [u8]) {
    let k = sources.len();
    for (coefficients, out) in coefficients.chunks(GROUP * k).zip(out.chunks_mut(GROUP * width)) {
        match kernel {
            Kernel::Portable => portable::rows(coefficients, sources, width, out),
            // SAFETY: the instructions are there, each source has `width` bytes, at least a block's, and `out` has
            // a row of `width` bytes for each k coefficients, at most GROUP.
            #[cfg(target_arch = "x86_64")]
            Kernel::Ssse3 => unsafe { x86::ssse3(coefficients, sources, width, out) },
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2 => unsafe { x86::avx2(coefficients, sources, width, out) },
            #[cfg(target_arch = "x86_64")]
            Kernel::Gfni => unsafe { x86::gfni(coefficients, sources, width, out) },
            #[cfg(target_arch = "aarch64")]
            Kernel::Neon => unsafe { neon::neon(coefficients, sources, width, out) },
            #[allow(unreachable_patterns)]
            _ => unreachable!("kernel {} is not of this architecture", kernel.name()),
        }
    }
}

/// Add `source` to `sum`, byte by byte: XOR. Both have the same length.
#[inline]
pub fn add(sum: &mut [u8], source: &[u8]) {
    debug_assert_eq!(sum.len(), source.len());
    for (sum, source) in sum.iter_mut().zip(source) {
        *sum ^= source;
    }
}
