//! The least that a tunnel costs: packets pass between a TUN device and a UDP socket, and nothing is decided. What the
//! agents' figures are compared with (benchmarks/naive_tunnel.py).

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use pyo3::prelude::*;

const LONGEST_BYTES: usize = 2048;

fn checked(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// Passes packets on, each way one by one, as an agent's loop does: it waits for both in one call of the kernel.
fn pass_on(tun: RawFd, wire: RawFd) -> io::Result<()> {
    // SAFETY: the new descriptor belongs to `epoll` alone.
    let epoll = unsafe { OwnedFd::from_raw_fd(checked(libc::epoll_create1(libc::EPOLL_CLOEXEC))?) };
    for fd in [tun, wire] {
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: fd as u64 };
        // SAFETY: the kernel reads `event`, which lives until after the call.
        checked(unsafe { libc::epoll_ctl(epoll.as_raw_fd(), libc::EPOLL_CTL_ADD, fd, &raw mut event) })?;
    }
    let mut packet = [0u8; LONGEST_BYTES];
    loop {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 2];
        // SAFETY: the kernel writes at most as many events as there are.
        let ready = unsafe { libc::epoll_wait(epoll.as_raw_fd(), events.as_mut_ptr(), 2, -1) };
        let ready = match checked(ready) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            ready => ready?,
        };
        for event in &events[..ready as usize] {
            let from = event.u64 as RawFd;
            let to = if from == tun { wire } else { tun };
            // SAFETY: the kernel writes at most as many bytes as there are, and reads those that it has written. What
            // finds no room, or no other end, is lost.
            unsafe {
                let bytes = libc::read(from, packet.as_mut_ptr().cast(), packet.len());
                if bytes > 0 {
                    libc::write(to, packet.as_ptr().cast(), bytes as usize);
                }
            }
        }
    }
}

#[pyfunction]
fn carry_undecided(py: Python<'_>, tun: RawFd, wire: RawFd) -> PyResult<()> {
    Ok(py.detach(|| pass_on(tun, wire))?)
}

/// Add this to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(carry_undecided, module)?)
}
