//! What can be wrong with what a caller or a peer hands in.

use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// The arguments do not fit each other, or a number is out of range.
    Invalid(String),
    /// Received symbols of one unit cannot all be right: no packet of it may be rebuilt.
    Contradiction(String),
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Invalid(text) | Error::Contradiction(text) => formatter.write_str(text),
        }
    }
}

impl std::error::Error for Error {}

/// `Err(Error::Invalid)` with a formatted text.
macro_rules! invalid {
    ($($text:tt)*) => { Err($crate::error::Error::Invalid(format!($($text)*))) };
}
pub(crate) use invalid;
