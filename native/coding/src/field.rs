//! GF(256) with the polynomial x^8 + x^4 + x^3 + x^2 + 1 (0x11D), the field of RFC 5510 and most storage codes.
//!
//! All tables are computed by the compiler.

pub const POLYNOMIAL: u16 = 0x11D;

const POWERS: [u8; 255] = powers();
const LOGARITHMS: [u8; 256] = logarithms();

/// `PRODUCT[a][b]` is a * b.
pub static PRODUCT: [[u8; 256]; 256] = products();

/// For each factor, its products with 0..15, then with 0, 16, .. 240: two byte shuffles multiply.
pub static NIBBLES: [[u8; 32]; 256] = nibbles();

/// For each factor, its multiplication as a matrix over GF(2), as `gf2p8affineqb` takes it: byte 7 - i of the
/// word is the row that gives bit i of the product.
pub static MATRICES: [u64; 256] = matrices();

/// Returns the product of two elements.
#[inline]
pub fn multiply(a: u8, b: u8) -> u8 {
    PRODUCT[a as usize][b as usize]
}

/// Returns the inverse of an element that is not 0; 0 gives 0.
pub const fn inverse(a: u8) -> u8 {
    quotient(1, a)
}

/// Returns a / b; 0 where b is 0.
pub const fn quotient(a: u8, b: u8) -> u8 {
    if a == 0 || b == 0 {
        return 0;
    }
    POWERS[(LOGARITHMS[a as usize] as usize + 255 - LOGARITHMS[b as usize] as usize) % 255]
}

const fn powers() -> [u8; 255] {
    let mut table = [0; 255];
    let mut value: u16 = 1;
    let mut exponent = 0;
    while exponent < 255 {
        table[exponent] = value as u8;
        value <<= 1;
        if value & 0x100 != 0 {
            value ^= POLYNOMIAL;
        }
        exponent += 1;
    }
    table
}

const fn logarithms() -> [u8; 256] {
    let mut table = [0; 256];
    let mut exponent = 0;
    while exponent < 255 {
        table[POWERS[exponent] as usize] = exponent as u8;
        exponent += 1;
    }
    table
}

const fn product(a: u8, b: u8) -> u8 {
    if a == 0 || b == 0 {
        return 0;
    }
    POWERS[(LOGARITHMS[a as usize] as usize + LOGARITHMS[b as usize] as usize) % 255]
}

const fn products() -> [[u8; 256]; 256] {
    let mut table = [[0; 256]; 256];
    let mut a = 0;
    while a < 256 {
        let mut b = 0;
        while b < 256 {
            table[a][b] = product(a as u8, b as u8);
            b += 1;
        }
        a += 1;
    }
    table
}

const fn nibbles() -> [[u8; 32]; 256] {
    let mut table = [[0; 32]; 256];
    let mut factor = 0;
    while factor < 256 {
        let mut nibble = 0;
        while nibble < 16 {
            table[factor][nibble] = product(factor as u8, nibble as u8);
            table[factor][16 + nibble] = product(factor as u8, (nibble as u8) << 4);
            nibble += 1;
        }
        factor += 1;
    }
    table
}

const fn matrices() -> [u64; 256] {
    let mut table = [0; 256];
    let mut factor = 0;
    while factor < 256 {
        let mut input = 0;
        while input < 8 {
            let image = product(factor as u8, 1 << input);
            let mut output = 0;
            while output < 8 {
                if image >> output & 1 != 0 {
                    table[factor] |= 1 << (8 * (7 - output) + input);
                }
                output += 1;
            }
            input += 1;
        }
        factor += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From an element to the next that is tried; Miri is slow.
    const STEP: usize = if cfg!(miri) { 17 } else { 1 };

    /// Returns the product bit by bit, by the definition.
    fn slowly(a: u8, b: u8) -> u8 {
        let (mut a, mut sum) = (a as u16, 0);
        for bit in 0..8 {
            if b >> bit & 1 != 0 {
                sum ^= a;
            }
            a <<= 1;
            if a & 0x100 != 0 {
                a ^= POLYNOMIAL;
            }
        }
        sum as u8
    }

    #[test]
    fn tables_are_the_field() {
        for a in (0..=255).step_by(STEP) {
            for b in (0..=255).step_by(STEP) {
                assert_eq!(multiply(a, b), slowly(a, b), "{a} * {b}");
            }
            assert_eq!(multiply(a, inverse(a)), (a != 0) as u8);
            assert!((1..=255).step_by(STEP).all(|b| multiply(quotient(a, b), b) == a));
        }
    }

    #[test]
    fn nibbles_and_matrices_multiply() {
        for factor in (0..=255u8).step_by(STEP) {
            for value in (0..=255u8).step_by(STEP) {
                let table = &NIBBLES[factor as usize];
                let by_nibbles = table[value as usize & 15] ^ table[16 + (value as usize >> 4)];
                let mut by_matrix = 0;
                for bit in 0..8 {
                    let row = MATRICES[factor as usize].to_le_bytes()[7 - bit];
                    by_matrix |= ((row & value).count_ones() as u8 & 1) << bit;
                }
                assert_eq!(by_nibbles, multiply(factor, value));
                assert_eq!(by_matrix, multiply(factor, value));
            }
        }
    }
}
