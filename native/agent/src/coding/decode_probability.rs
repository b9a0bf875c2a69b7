//! P(a unit is decoded), for independent blocking (docs/coding.md, Redundancy).

use coding::Code;

use crate::coding::ldpc_failure::ldpc_failure;

/// Returns the probability that all k sources are there, from the packets that are not blocked, if each of the k + r is
/// blocked with probability `blocking_probability`.
pub fn decode_probability(code: Code, k: u32, r: u32, blocking_probability: f64) -> f64 {
    let p = blocking_probability.clamp(0.0, 1.0);
    if r == 0 {
        return power(1.0 - p, k);
    }
    match code {
        Code::Xor => each_parity(k, r, p),
        Code::Ldpc => (0..=r).map(|x| binomial(k + r, x, p) * (1.0 - ldpc_failure(k, r, x))).sum(),
        Code::Mds => enough(k, r, p),
        Code::Rlc => enough(k, r, p) - lacks_rank(k, r, p),
    }
}

/// Returns P(X = x) for X ~ Binomial(n, p).
pub fn binomial(n: u32, x: u32, p: f64) -> f64 {
    let ways = choose(n, x).map_or_else(|| about(n, x), |exact| exact as f64);
    ways * power(p, x) * power(1.0 - p, n.saturating_sub(x))
}

fn power(base: f64, exponent: u32) -> f64 {
    libm::pow(base, f64::from(exponent))
}

/// Returns n over x; None above 128 bits, which takes n of 125 and more.
fn choose(n: u32, x: u32) -> Option<u128> {
    if x > n {
        return Some(0);
    }
    let factor = |i: u32| (u128::from(n - i), u128::from(i + 1));
    (0..x.min(n - x)).map(factor).try_fold(1u128, |ways, (times, over)| Some(ways.checked_mul(times)? / over))
}

/// Returns n over x with a relative error below 1e-13.
fn about(n: u32, x: u32) -> f64 {
    (0..x.min(n - x)).fold(1.0, |ways, i| ways * f64::from(n - i) / f64::from(i + 1))
}

/// Returns P(at most r of k + r are blocked), as the negative binomial sum: what an MDS code decodes.
fn enough(k: u32, r: u32, p: f64) -> f64 {
    let mut term = power(1.0 - p, k);
    let mut total = term;
    for x in 1..=r {
        term *= p * f64::from(k - 1 + x) / f64::from(x);
        total += term;
    }
    total
}

/// Returns P(a random matrix over GF(256) lacks full column rank) with so many surplus rows, for two columns or more.
///
/// Ours has no zero coefficients, so one column always has rank 1, and two columns fail with 1/255 exactly; for more
/// columns the difference is below 1e-4.
fn rank_failure(surplus: i32) -> f64 {
    1.0 - (surplus + 1..surplus + 6).map(|j| 1.0 - 256f64.powi(-j)).product::<f64>()
}

/// Returns P(at most r of k + r are blocked, but the coefficients of RLC lack rank).
///
/// With x of all packets blocked, repairs received exceed sources missing by r - x, however x is split.
fn lacks_rank(k: u32, r: u32, p: f64) -> f64 {
    let n = k + r;
    let one_surplus = |surplus: u32| {
        let x = r - surplus;
        let chance = two_sources_missing(k, r, x) * power(p, x) * power(1.0 - p, n - x);
        chance * rank_failure(surplus as i32)
    };
    (0..=r.min(2)).map(one_surplus).sum()
}

/// Returns in how many ways x of k + r packets are missing of which two or more are sources.
fn two_sources_missing(k: u32, r: u32, x: u32) -> f64 {
    let one_source = |repairs: u128| match x {
        0 => Some(repairs),
        _ => choose(r, x - 1)?.checked_mul(u128::from(k))?.checked_add(repairs),
    };
    let exact = || choose(k + r, x)?.checked_sub(choose(r, x).and_then(one_source)?);
    exact().map_or_else(
        || about(k + r, x) - about(r, x) - if x == 0 { 0.0 } else { f64::from(k) * about(r, x - 1) },
        |ways| ways as f64,
    )
}

/// Returns P(every parity group lost no source, or one and not its parity).
fn each_parity(k: u32, r: u32, p: f64) -> f64 {
    (0..r.min(k)).fold(1.0, |whole, j| {
        let size = (k - j - 1) / r + 1;
        whole * (power(1.0 - p, size) + f64::from(size) * p * power(1.0 - p, size))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use trials::trials;

    #[test]
    fn ways_to_choose_are_those_of_pascal() {
        let mut row = vec![1u128];
        for n in 0..=trials(124u32) {
            for (x, ways) in row.iter().enumerate() {
                assert_eq!(choose(n, x as u32), Some(*ways));
                assert!((about(n, x as u32) / *ways as f64 - 1.0).abs() < 1e-13);
            }
            let inner = row.windows(2).map(|pair| pair[0] + pair[1]);
            row = [1].into_iter().chain(inner).chain([1]).collect();
        }
        assert_eq!(choose(3, 4), Some(0));
        assert_eq!(choose(255, 127), None);
    }

    #[test]
    fn what_arrives_adds_up_to_everything() {
        for n in [1, 7, 60, 192] {
            let total: f64 = (0..=n).map(|x| binomial(n, x, 0.3)).sum();
            assert!((total - 1.0).abs() < 1e-12, "{n}: {total}");
        }
    }

    #[test]
    fn a_better_code_decodes_more_often() {
        for k in [1, 9, 2, 32, 128].into_iter().take(trials(5)) {
            for r in [1, 5, 2, 16, 64].into_iter().take(trials(5)) {
                for step in 0..=20 {
                    let p = f64::from(step) / 20.0;
                    let [xor, rlc, ldpc, mds] = [Code::Xor, Code::Rlc, Code::Ldpc, Code::Mds]
                        .map(|code| decode_probability(code, k, r, p));
                    assert!(mds <= 1.0 + 1e-9 && rlc <= mds && ldpc <= mds + 1e-9 && xor <= mds + 1e-9);
                    assert!(rlc >= power(1.0 - p, k) - 1e-9, "without repairs");
                }
            }
        }
    }
}
