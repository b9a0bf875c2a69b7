//! Recorded decisions: a vector is a text file, one event a line, words apart by blanks. Floats are written as Python's
//! `repr` writes them, which names them exactly.

pub mod coded_flow;
pub mod hosts;

use std::collections::VecDeque;
use std::str::{FromStr, SplitWhitespace};
use std::sync::{Arc, Mutex};

use agent::Random;
pub use trials::{recorded, tried};

/// Gives recorded draws again, in order. A clone gives those that the other has not given yet.
#[derive(Clone, Debug, Default)]
pub struct Replay(Arc<Mutex<VecDeque<u64>>>);

impl Replay {
    /// Adds draws: what `below` gave, or the 53 bits of what `unit` gave.
    pub fn add(&self, draws: impl IntoIterator<Item = u64>) {
        self.0.lock().unwrap().extend(draws);
    }

    /// Returns how many draws were recorded and not asked for.
    pub fn left(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    fn next(&self) -> u64 {
        self.0.lock().unwrap().pop_front().expect("more was drawn than recorded")
    }
}

impl Random for Replay {
    fn bits32(&mut self) -> u32 {
        self.next().try_into().expect("a recorded draw has more than 32 bits")
    }

    fn below(&mut self, bound: u32) -> u32 {
        let drawn = self.bits32();
        assert!(drawn < bound, "{drawn} was recorded where a number below {bound} is drawn");
        drawn
    }

    fn unit(&mut self) -> f64 {
        self.next() as f64 / (1u64 << 53) as f64
    }
}

/// Reads the words of a line.
pub struct Words<'a>(SplitWhitespace<'a>);

impl<'a> Words<'a> {
    /// Begins at the first word.
    pub fn of(line: &'a str) -> Words<'a> {
        Words(line.split_whitespace())
    }

    /// Returns the next word.
    pub fn word(&mut self) -> &'a str {
        self.0.next().expect("the line ends early")
    }

    /// Returns the next word as a number.
    pub fn number<T: FromStr>(&mut self) -> T {
        let word = self.word();
        word.parse().unwrap_or_else(|_| panic!("{word:?} is no number of the kind expected here"))
    }

    /// Returns all that is left, as numbers.
    pub fn rest<T: FromStr>(&mut self) -> Vec<T> {
        self.0.by_ref().map(|word| word.parse().unwrap_or_else(|_| panic!("{word:?} is no number"))).collect()
    }
}
