//! Numbers that wrap at 2^32 (RFC 1982): datagrams, positions, clocks in microseconds, TCP's sequence numbers.

/// Returns a - b as -2^31 to 2^31 - 1; above 0: a comes after b.
pub fn serial_difference(a: u32, b: u32) -> i32 {
    a.wrapping_sub(b) as i32
}

/// Consecutive numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberRange {
    /// The first of them.
    pub first: u32,
    /// How many there are.
    pub count: u32,
}

#[cfg(test)]
mod tests {
    use super::serial_difference;
    use crate::{Generator, Random};
    use trials::trials;

    #[test]
    fn the_difference_inverts_addition() {
        let mut random = Generator::new(1);
        for case in 0..trials(1000) {
            let start = random.bits32();
            let step = [i32::MIN, -1, 0, 1, i32::MAX, random.bits32() as i32][case % 6];
            assert_eq!(serial_difference(start.wrapping_add_signed(step), start), step);
        }
    }
}
