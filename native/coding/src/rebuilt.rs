//! What a decoder found.

/// Symbols that were rebuilt.
#[derive(Debug, PartialEq, Eq)]
pub struct Rebuilt {
    /// Source indices, ascending.
    pub indices: Vec<usize>,
    /// Their symbols, `width` bytes each.
    pub symbols: Vec<u8>,
}
