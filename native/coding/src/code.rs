//! The codes by their numbers on the wire, and their encoding and decoding of symbols of equal length.

use crate::error::{invalid, Error};
use crate::field::quotient;
use crate::kernels::{product, Kernel};
use crate::rebuilt::Rebuilt;
use crate::{ldpc, linear, parity};

/// Most sources of a unit, and most repairs: both are one byte on the wire.
pub const MOST: usize = 255;
/// Most sources and repairs together of `Mds`: the elements of the field.
pub const MOST_MDS: usize = 256;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// Repair j is the XOR of the sources i with i mod r = j.
    Xor,
    /// Random linear: coefficients 1..255 by splitmix64 from (seed, j, i).
    Rlc,
    /// LDPC-staircase of RFC 5170.
    Ldpc,
    /// Cauchy matrix: any k of the k + r symbols give the unit.
    Mds,
}

impl Code {
    pub const ALL: [Code; 4] = [Code::Xor, Code::Rlc, Code::Ldpc, Code::Mds];

    pub fn numbered(number: u8) -> Result<Code, Error> {
        match number {
            1 => Ok(Code::Xor),
            2 => Ok(Code::Rlc),
            3 => Ok(Code::Ldpc),
            4 => Ok(Code::Mds),
            _ => invalid!("code number {number} is not known"),
        }
    }

    /// Returns the number of the code, the inverse of `numbered`.
    pub fn number(self) -> u8 {
        match self {
            Code::Xor => 1,
            Code::Rlc => 2,
            Code::Ldpc => 3,
            Code::Mds => 4,
        }
    }

    /// Returns an error unless a unit of k sources and r repairs is possible.
    pub fn check(self, k: usize, r: usize) -> Result<(), Error> {
        if k == 0 || k > MOST || r == 0 || r > MOST {
            return invalid!("a unit of k = {k}, r = {r} cannot be: both must be 1..{MOST}");
        }
        if self == Code::Mds && k + r > MOST_MDS {
            return invalid!("a unit of k = {k}, r = {r} cannot be: mds has at most {MOST_MDS} symbols");
        }
        Ok(())
    }

    /// Returns true if `decode` is likely to find anything with so many sources missing and repairs at hand: of a dense
    /// code fewer repairs than losses determine nothing.
    pub fn worth_trying(self, missing: usize, repairs: usize) -> bool {
        match self {
            Code::Rlc | Code::Mds => repairs >= missing,
            Code::Xor | Code::Ldpc => repairs > 0,
        }
    }

    /// Returns coefficients over GF(256): a row of k for each index (below MOST). Only of codes that are given by such
    /// rows.
    pub(crate) fn rows(self, seed: u32, indices: impl Iterator<Item = usize>, k: usize) -> Vec<u8> {
        let mut rows = Vec::with_capacity(indices.size_hint().0 * k);
        for index in indices {
            match self {
                Code::Mds => rows.extend_from_slice(&CAUCHY[index][..k]),
                _ => rows.extend((0..k).map(|source| random(seed, index as u64, source as u64))),
            }
        }
        rows
    }

    /// Write the r repairs of `sources`, all `width` bytes wide, into `out` (r x width bytes).
    pub fn encode(
        self,
        kernel: Kernel,
        seed: u32,
        sources: &[&[u8]],
        width: usize,
        out: &mut [u8],
    ) -> Result<(), Error> {
        let k = sources.len();
        if width == 0 || out.len() % width != 0 {
            return invalid!("{} B of repairs are not whole rows of {width} B", out.len());
        }
        let r = out.len() / width;
        self.check(k, r)?;
        if let Some(wrong) = sources.iter().find(|source| source.len() != width) {
            return invalid!("a source of {} B does not fit a width of {width} B", wrong.len());
        }
        match self {
            Code::Xor => parity::encode(sources, width, out),
            Code::Ldpc => ldpc::encode(&ldpc::rows(k, r, seed), sources, width, out),
            Code::Rlc | Code::Mds => {
                product(kernel, &self.rows(seed, 0..r, k), sources, width, out)?;
            }
        }
        Ok(())
    }

    /// Rebuild what the received symbols determine.
    ///
    /// `sources` are the unit's k sources, None where one has not come; `repairs` are received ones of the r, with
    /// their indices, in any order. All symbols are `width` bytes wide. Those that are not determined are absent.
    pub fn decode(
        self,
        kernel: Kernel,
        seed: u32,
        r: usize,
        sources: &[Option<&[u8]>],
        repairs: &[(usize, &[u8])],
        width: usize,
    ) -> Result<Rebuilt, Error> {
        self.check(sources.len(), r)?;
        let symbols = sources.iter().flatten().chain(repairs.iter().map(|(_, symbol)| symbol));
        for symbol in symbols {
            if symbol.len() != width {
                return invalid!("a symbol of {} B does not fit a width of {width} B", symbol.len());
            }
        }
        let mut seen = [false; MOST];
        for &(index, _) in repairs {
            if index >= r {
                return invalid!("repair {index} of r = {r} cannot be");
            }
            if std::mem::replace(&mut seen[index], true) {
                return invalid!("repair {index} was given twice");
            }
        }
        match self {
            Code::Xor => parity::decode(r, sources, repairs, width),
            Code::Ldpc => ldpc::decode(&ldpc::rows(sources.len(), r, seed), sources, repairs, width),
            Code::Rlc | Code::Mds => {
                let indices = repairs.iter().map(|&(index, _)| index);
                let coefficients = self.rows(seed, indices, sources.len());
                linear::decode(kernel, &coefficients, sources, repairs, width)
            }
        }
    }
}

/// Returns c(seed, j, i) of `Rlc`: splitmix64 (Steele, Lea, Flood, OOPSLA 2014) at the counter that seed, j and i make.
/// Never 0, so that any repair heals any single loss.
fn random(seed: u32, repair: u64, source: u64) -> u8 {
    let mut state = (u64::from(seed) << 32) ^ (repair << 8 | source);
    state = state.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    state = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    state = (state ^ (state >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    state ^= state >> 31;
    (1 + (state >> 32) % 255) as u8
}

/// c(j, i) of `Mds`, for j + i < 256: the Cauchy matrix 1 / (x_j + y_i) with y_i = i and x_j = 255 - j, its columns scaled so that
/// repair 0 is the XOR of the sources. Scaling keeps every square part invertible.
static CAUCHY: [[u8; 256]; 256] = {
    let mut table = [[0; 256]; 256];
    let mut repair = 0;
    while repair < 256 {
        let mut source = 0;
        while source < 256 - repair {
            table[repair][source] = quotient(255 ^ source as u8, (255 - repair as u8) ^ source as u8);
            source += 1;
        }
        repair += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repair_0_of_mds_is_the_xor() {
        for k in [1, 2, 32, 128, 255] {
            assert_eq!(Code::Mds.rows(7, 0..1, k), vec![1; k]);
        }
    }

    #[test]
    fn random_coefficients_are_never_zero_and_depend_on_all() {
        let rows = Code::Rlc.rows(1, 0..3, 255);
        assert!(rows.iter().all(|&factor| factor != 0));
        assert_ne!(rows[..255], rows[255..510]);
        assert_ne!(rows, Code::Rlc.rows(2, 0..3, 255));
    }

    #[test]
    fn units_that_cannot_be_are_refused() {
        for code in Code::ALL {
            for (k, r) in [(0, 1), (1, 0), (256, 1), (1, 256)] {
                assert!(matches!(code.check(k, r), Err(Error::Invalid(_))));
            }
        }
        assert!(Code::Mds.check(200, 57).is_err());
        assert!(Code::Mds.check(200, 56).is_ok());
        assert!(Code::numbered(0).is_err() && Code::numbered(5).is_err());
    }

    #[test]
    fn wrong_symbols_are_refused() {
        let (kernel, symbol) = (Kernel::best(), [1u8; 8]);
        let sources = [Some(&symbol[..]), None];
        let decode = |repairs: &[(usize, &[u8])]| Code::Rlc.decode(kernel, 1, 2, &sources, repairs, 8);
        assert!(decode(&[(2, &symbol)]).is_err());
        assert!(decode(&[(0, &symbol[..7])]).is_err());
        assert!(decode(&[(1, &symbol), (1, &symbol)]).is_err());
        let mut out = [0; 8];
        assert!(Code::Xor.encode(kernel, 1, &[&symbol, &symbol[..4]], 8, &mut out).is_err());
        assert!(Code::Xor.encode(kernel, 1, &[&symbol], 5, &mut out).is_err());
        assert!(Code::Xor.encode(kernel, 1, &[&[]], 0, &mut out).is_err());
    }
}
