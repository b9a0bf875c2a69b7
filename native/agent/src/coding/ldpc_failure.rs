//! How often an LDPC-staircase unit cannot be decoded though no more packets are missing than it has repairs.
//!
//! There is no closed form for so small graphs: the table holds, for grid values of k and r, how many of 1000 units
//! peeling and elimination failed to decode (host_agent/coding/ldpc_failure.py measures it).

use std::sync::LazyLock;

const GRID_K: [u32; 14] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128];
const MOST_R: u32 = 24;

/// Failures by k's place in the grid, then by r - 1, then by packets missing - 1.
static FAILURES: LazyLock<Vec<Vec<f64>>> = LazyLock::new(|| {
    let lines = include_str!("ldpc_failure.txt").lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.split(' ').skip(2).map(thousandths).collect()).collect()
});

fn thousandths(count: &str) -> f64 {
    count.parse::<f64>().expect("the table holds numbers") / 1000.0
}

/// Returns P(not all of k sources are rebuilt) if `missing` of the k + r packets do not come.
///
/// Between grid values the next larger k counts; above the grid's largest r, its largest r with the same surplus of
/// repairs.
pub fn ldpc_failure(k: u32, r: u32, missing: u32) -> f64 {
    if missing > r {
        return 1.0;
    }
    let above = r.saturating_sub(MOST_R);
    let (r, missing) = (r - above, missing.saturating_sub(above));
    if missing == 0 {
        return 0.0;
    }
    let place = GRID_K.partition_point(|&grid| grid < k).min(GRID_K.len() - 1);
    FAILURES[place * MOST_R as usize + r as usize - 1][missing as usize - 1]
}

#[cfg(test)]
mod tests {
    use super::*;
    use trials::trials;

    #[test]
    fn the_table_holds_the_whole_grid_in_order() {
        let heads =
            include_str!("ldpc_failure.txt").lines().filter(|line| !line.starts_with('#')).map(|line| {
                let mut words = line.split(' ').map(|word| word.parse::<u32>().unwrap());
                (words.next().unwrap(), words.next().unwrap())
            });
        let grid = GRID_K.iter().flat_map(|&k| (1..=MOST_R).map(move |r| (k, r)));
        assert!(heads.eq(grid));
        for (line, failures) in FAILURES.iter().enumerate() {
            assert_eq!(failures.len(), line % MOST_R as usize + 1);
            assert!(failures.iter().all(|failure| (0.0..=1.0).contains(failure)));
        }
    }

    #[test]
    fn more_missing_than_repairs_cannot_be_rebuilt_and_none_missing_need_not() {
        for k in 1..=trials(255) {
            for r in 1..=64 {
                assert_eq!(ldpc_failure(k, r, 0), 0.0);
                assert_eq!(ldpc_failure(k, r, r + 1), 1.0);
                assert!((0.0..=1.0).contains(&ldpc_failure(k, r, r)));
            }
        }
        assert_eq!(ldpc_failure(33, 30, 6), 0.0, "30 - 24 missing are as none");
        assert_eq!(ldpc_failure(33, 30, 30), ldpc_failure(48, 24, 24));
    }
}
