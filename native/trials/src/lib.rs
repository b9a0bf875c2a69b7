//! How many inputs a test tries: all, or under Miri, which takes some thousand times as long, a hundredth.

use std::ops::Div;

/// Returns `count`, or under Miri a hundredth of it, at least 2.
pub fn trials<N: Copy + Ord + Div<Output = N> + From<u8>>(count: N) -> N {
    if cfg!(miri) {
        (count / N::from(100)).max(N::from(2)).min(count)
    } else {
        count
    }
}
