//! Systematic erasure codes over GF(256) and GF(2) on symbols of equal length.
//!
//! `kernels` holds the only unsafe code: products of a small coefficient matrix with rows of bytes, one
//! implementation per instruction set, the same bytes from each. Everything else is plain Rust on slices.

pub mod code;
pub mod error;
pub mod field;
pub mod kernels;
pub mod ldpc;
pub mod linear;
pub mod packets;
pub mod parity;
pub mod rebuilt;

pub use code::Code;
pub use error::Error;
pub use kernels::Kernel;
