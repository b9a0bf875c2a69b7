//! Every kernel that this processor has, on random sizes at random addresses between pages without access: it
//! gives what the portable one gives, and a byte read or written outside of its rows ends the process.
#![cfg(all(target_os = "linux", target_pointer_width = "64", not(miri)))]

mod random;

use std::ffi::{c_int, c_void};
use std::ptr;
use std::slice;
use std::time::{Duration, Instant};

use coding::kernels::product;
use coding::packets::{Received, Repairs};
use coding::{Code, Kernel};
use random::Random;

const PAGE: usize = 65536; // a multiple of the page of any Linux
const NO_ACCESS: c_int = 0;
const READ_WRITE: c_int = 3;
const PRIVATE_ANONYMOUS: c_int = 0x22;
/// How long each test goes on beyond its least number of trials.
const TIME: Duration = Duration::from_millis(1500);
const LEAST: usize = 300;

unsafe extern "C" {
    fn mmap(
        at: *mut c_void,
        size: usize,
        access: c_int,
        flags: c_int,
        file: c_int,
        offset: i64,
    ) -> *mut c_void;
    fn mprotect(at: *mut c_void, size: usize, access: c_int) -> c_int;
    fn munmap(at: *mut c_void, size: usize) -> c_int;
}

/// A page between two without access.
struct Guarded(*mut u8);

impl Guarded {
    fn new() -> Guarded {
        // SAFETY: new memory, of which only the middle is made accessible; the results are checked.
        unsafe {
            let start = mmap(ptr::null_mut(), 3 * PAGE, NO_ACCESS, PRIVATE_ANONYMOUS, -1, 0);
            assert!(start as isize != -1);
            let middle = start.cast::<u8>().add(PAGE);
            assert_eq!(mprotect(middle.cast(), PAGE, READ_WRITE), 0);
            Guarded(middle)
        }
    }

    /// Returns `size` bytes that end with the page, begin with it, or lie somewhere between.
    fn place(&mut self, size: usize, random: &mut Random) -> &mut [u8] {
        let last = PAGE - size;
        let start = [0, last, random.within(0, last)][random.within(0, 2)];
        // SAFETY: inside of the page, which lives as long as `self`.
        unsafe { slice::from_raw_parts_mut(self.0.add(start), size) }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: as it was mapped.
        unsafe { munmap(self.0.sub(PAGE).cast(), 3 * PAGE) };
    }
}

fn trials() -> impl Iterator<Item = usize> {
    let start = Instant::now();
    (0..).take_while(move |&trial| trial < LEAST || start.elapsed() < TIME)
}

fn width(random: &mut Random) -> usize {
    let near = [16, 32, 64, 128, 1400][random.within(0, 4)];
    if random.within(0, 1) == 0 {
        random.within(1, 300)
    } else {
        random.within(near - 3, near + 3)
    }
}

#[test]
fn products_stay_within_their_rows() {
    let mut random = Random(11);
    let mut pages: Vec<Guarded> = (0..40).map(|_| Guarded::new()).collect();
    let mut result = Guarded::new();
    for trial in trials() {
        let (k, rows, width) = (random.within(1, pages.len()), random.within(1, 9), width(&mut random));
        let sources: Vec<&[u8]> = pages[..k]
            .iter_mut()
            .map(|page| {
                let place = page.place(width, &mut random);
                place.copy_from_slice(&random.bytes(width));
                &*place
            })
            .collect();
        let coefficients = random.bytes(rows * k);
        let mut expected = vec![0; rows * width];
        product(Kernel::Portable, &coefficients, &sources, width, &mut expected).unwrap();
        for kernel in Kernel::available() {
            let out = result.place(rows * width, &mut random);
            out.fill(0xA5);
            product(kernel, &coefficients, &sources, width, out).unwrap();
            assert!(*out == expected, "trial {trial}: {} {rows}x{k}x{width}", kernel.name());
        }
    }
}

#[test]
fn units_are_coded_where_their_packets_lie() {
    let mut random = Random(12);
    let mut pages: Vec<Guarded> = (0..32).map(|_| Guarded::new()).collect();
    for trial in trials() {
        let (k, r, longest) = (random.within(1, pages.len()), random.within(1, 6), width(&mut random));
        let code = Code::ALL[random.within(0, 3)];
        let packets: Vec<&[u8]> = pages[..k]
            .iter_mut()
            .map(|page| {
                let size = if random.within(0, 3) == 0 { random.within(1, longest) } else { longest };
                let place = page.place(size, &mut random);
                place.copy_from_slice(&random.bytes(size));
                &*place
            })
            .collect();
        let seed = random.next() as u32;
        let made = |kernel| -> Vec<Vec<u8>> {
            let repairs = Repairs::encode(code, kernel, &packets, r, seed).unwrap();
            repairs.symbols().map(|(length, packet)| [length, packet].concat()).collect()
        };
        let expected = made(Kernel::Portable);
        let lost = random.within(0, k - 1);
        let mut known: Vec<Option<&[u8]>> = packets.iter().copied().map(Some).collect();
        known[lost] = None;
        let repairs: Vec<(usize, &[u8])> = expected.iter().map(|symbol| &symbol[..]).enumerate().collect();
        let received = Received::pack(&known, &repairs).unwrap();
        for kernel in Kernel::available() {
            assert!(made(kernel) == expected, "trial {trial}: {code:?} {} {k}+{r}x{longest}", kernel.name());
            let rebuilt = received.decode(code, kernel, r, seed).unwrap();
            assert!(rebuilt == [(lost, packets[lost].to_vec())], "trial {trial}: {code:?} {}", kernel.name());
        }
    }
}
