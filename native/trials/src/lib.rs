//! How much a test tries: all, or under Miri, which takes some thousand times as long, a hundredth of its inputs and the
//! first lines of a recording.

use std::ops::Div;

/// Returns `count`, or under Miri a hundredth of it, at least 2.
pub fn trials<N: Copy + Ord + Div<Output = N> + From<u8>>(count: N) -> N {
    if cfg!(miri) {
        (count / N::from(100)).max(N::from(2)).min(count)
    } else {
        count
    }
}

/// Returns the events of a recording with their line numbers, from 1; under Miri the first of them.
pub fn recorded(vector: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..).zip(vector.lines()).filter(|(_, line)| !line.starts_with('#')).take(tried(usize::MAX))
}

/// Returns how many of `all` events of a recording are tried.
pub fn tried(all: usize) -> usize {
    if cfg!(miri) {
        all.min(40)
    } else {
        all
    }
}
