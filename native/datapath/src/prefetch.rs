//! Hints that memory will be read soon. Where it is in none of the processor's caches, what reads it meanwhile need not
//! wait for it. They change nothing else.

/// Bytes that processors fetch together.
const LINE: usize = 64;

/// Has the processor fetch a value that will be read soon, without waiting for it. Does nothing on processors other than
/// x86-64.
#[inline(always)]
pub fn prefetch<T: ?Sized>(value: &T) {
    let (first, bytes) = (std::ptr::from_ref(value).cast::<i8>(), size_of_val(value));
    let mut offset = 0;
    while offset < bytes {
        line(first.wrapping_add(offset));
        offset += LINE;
    }
    if bytes > 1 {
        line(first.wrapping_add(bytes - 1)); // a value may begin amid a line, and end in one line more
    }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
#[allow(unused_unsafe)] // newer compilers than Debian 12's may know that the instruction is safe
fn line(address: *const i8) {
    use std::arch::x86_64::{_mm_prefetch, _MM_HINT_T0};
    // SAFETY: every x86-64 processor has SSE. The instruction reads nothing, and does nothing where there is no memory.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(address) }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn line(_address: *const i8) {}
