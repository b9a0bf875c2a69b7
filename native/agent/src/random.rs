//! Randomness that is passed in: a trait, and the generator of agents and simulations.

/// Draws, each independent of the ones before. Tests replay recorded ones.
pub trait Random {
    /// Returns 32 random bits.
    fn bits32(&mut self) -> u32;

    /// Returns a number below `bound`, each with the same probability (0 if the bound is 0).
    ///
    /// Lemire: "Fast Random Integer Generation in an Interval", ACM TOMACS 29, 2019, Algorithm 5.
    fn below(&mut self, bound: u32) -> u32 {
        let mut wide = u64::from(self.bits32()) * u64::from(bound);
        if (wide as u32) < bound {
            let unfair = bound.wrapping_neg() % bound;
            while (wide as u32) < unfair {
                wide = u64::from(self.bits32()) * u64::from(bound);
            }
        }
        (wide >> 32) as u32
    }

    /// Returns a multiple of 2^-53 in [0, 1), each with the same probability.
    fn unit(&mut self) -> f64 {
        let high = u64::from(self.bits32() >> 5);
        let low = u64::from(self.bits32() >> 6);
        (high << 26 | low) as f64 / (1u64 << 53) as f64
    }
}

/// xoshiro256++ (Blackman and Vigna: "Scrambled Linear Pseudorandom Number Generators", ACM TOMS 47, 2021).
#[derive(Clone, Debug)]
pub struct Generator([u64; 4]);

impl Generator {
    /// Returns a generator whose draws follow from `seed`: its state is drawn by SplitMix64, so it is never all zeros.
    pub fn new(seed: u64) -> Generator {
        let mut state = seed;
        Generator(std::array::from_fn(|_| {
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut mixed = state;
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            mixed ^ (mixed >> 31)
        }))
    }

    /// Returns 64 random bits.
    pub fn bits64(&mut self) -> u64 {
        let [a, b, c, d] = &mut self.0;
        let drawn = a.wrapping_add(*d).rotate_left(23).wrapping_add(*a);
        let shifted = *b << 17;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= shifted;
        *d = d.rotate_left(45);
        drawn
    }

    /// Returns a generator of its own, whose draws follow from one of ours.
    pub fn split(&mut self) -> Generator {
        Generator::new(self.bits64())
    }
}

impl Random for Generator {
    fn bits32(&mut self) -> u32 {
        (self.bits64() >> 32) as u32
    }
}

impl<R: Random + ?Sized> Random for &mut R {
    fn bits32(&mut self) -> u32 {
        (**self).bits32()
    }

    fn below(&mut self, bound: u32) -> u32 {
        (**self).below(bound)
    }

    fn unit(&mut self) -> f64 {
        (**self).unit()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_those_of_the_published_generator() {
        // The authors' C code from this state; the first draw is rotl(1 + 4, 23) + 1.
        let mut generator = Generator([1, 2, 3, 4]);
        let drawn: Vec<u64> = (0..4).map(|_| generator.bits64()).collect();
        assert_eq!(drawn, [41_943_041, 58_720_359, 3_588_806_011_781_223, 3_591_011_842_654_386]);
    }

    #[test]
    #[cfg_attr(miri, ignore = "judges a share of thousands")]
    fn every_number_below_a_bound_is_drawn_as_often() {
        let mut generator = Generator::new(7);
        for bound in [1u32, 2, 3, 5, 48, 1000] {
            let mut counts = vec![0u32; bound as usize];
            let each = 1000;
            for _ in 0..each * bound {
                counts[generator.below(bound) as usize] += 1;
            }
            let chi_square: f64 =
                counts.iter().map(|&count| (f64::from(count) - f64::from(each)).powi(2)).sum::<f64>()
                    / f64::from(each);
            let degrees = f64::from(bound - 1);
            assert!(chi_square <= degrees + 5.0 * (2.0 * degrees).sqrt(), "{bound}: {chi_square}");
        }
        assert_eq!(generator.below(0), 0);
    }

    #[test]
    fn what_would_favour_small_numbers_is_drawn_again() {
        struct Bits(Vec<u32>);
        impl Random for Bits {
            fn bits32(&mut self) -> u32 {
                self.0.remove(0)
            }
        }
        // 2^32 mod 3 = 1: of 2^32 products one is too many, that of 0.
        assert_eq!(Bits(vec![0, u32::MAX]).below(3), 2);
        assert_eq!(Bits(vec![1]).below(3), 0);
    }

    #[test]
    #[cfg_attr(miri, ignore = "judges a share of thousands")]
    fn units_fill_the_interval() {
        let mut generator = Generator::new(1);
        let drawn: Vec<f64> = (0..10_000).map(|_| generator.unit()).collect();
        assert!(drawn.iter().all(|draw| (0.0..1.0).contains(draw)));
        let mean = drawn.iter().sum::<f64>() / 10_000.0;
        assert!((mean - 0.5).abs() < 0.012, "four standard errors: {mean}");
    }
}
