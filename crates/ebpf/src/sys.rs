//! The one call to the kernel that libbpf-rs does not wrap.
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Where in an interface's way a program stands (`enum bpf_attach_type`).
#[derive(Clone, Copy, Debug)]
pub(crate) enum Tcx {
    Ingress = 46,
    Egress = 47,
}

/// Attaches a program to an interface, after those that are there, for as long as the descriptor is open.
pub(crate) fn attach_tcx(program: BorrowedFd<'_>, interface: u32, place: Tcx) -> io::Result<OwnedFd> {
    let interface = c_int::try_from(interface).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: the options may be null; the other arguments are numbers.
    let link = unsafe {
        libbpf_sys::bpf_link_create(
            program.as_raw_fd(),
            interface,
            place as libbpf_sys::bpf_attach_type,
            std::ptr::null(),
        )
    };
    if link < 0 {
        return Err(io::Error::from_raw_os_error(-link));
    }
    // SAFETY: the kernel has just given us this descriptor, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(link) })
}
