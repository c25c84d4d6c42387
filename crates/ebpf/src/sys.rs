//! System calls that libbpf-rs does not wrap.
#![allow(unsafe_code)]

use libbpf_rs::btf::Btf;
use libbpf_rs::{AsRawLibbpf, OpenObject};
use std::ffi::c_int;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// The attachment point of a program at an interface (`enum bpf_attach_type`).
#[derive(Clone, Copy, Debug)]
pub(crate) enum Tcx {
    Ingress = 46,
    Egress = 47,
}

/// Attaches a program to an interface, after existing ones, for as long as the descriptor is open.
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
    checked(link).map(own)
}

/// A program attached at an interface of this thread's network namespace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attached {
    /// The program's ID.
    pub(crate) program: u32,
    /// The link's ID; 0 if it is attached without one.
    pub(crate) link: u32,
}

/// Returns the programs attached there, in order of execution.
pub(crate) fn attached(interface: u32, place: Tcx) -> io::Result<Vec<Attached>> {
    // The maximum number that the kernel allows.
    let (mut programs, mut links) = ([0_u32; 64], [0_u32; 64]);
    let interface = c_int::try_from(interface).map_err(|_| io::ErrorKind::InvalidInput)?;
    let mut query = libbpf_sys::bpf_prog_query_opts {
        sz: size_of::<libbpf_sys::bpf_prog_query_opts>() as libbpf_sys::size_t,
        prog_ids: programs.as_mut_ptr(),
        link_ids: links.as_mut_ptr(),
        ..Default::default()
    };
    query.__bindgen_anon_1.count = programs.len() as u32;
    // SAFETY: both arrays outlive the call and have room for `count` numbers.
    checked(unsafe {
        libbpf_sys::bpf_prog_query_opts(interface, place as libbpf_sys::bpf_attach_type, &raw mut query)
    })?;
    // SAFETY: all members of the union are this number.
    let count = unsafe { query.__bindgen_anon_1.count } as usize;
    Ok(programs.into_iter().zip(links).take(count).map(|(program, link)| Attached { program, link }).collect())
}

/// Opens a link, which exists for as long as the descriptor is open, whoever created it.
pub(crate) fn link_by_id(id: u32) -> io::Result<OwnedFd> {
    // SAFETY: the argument is a number.
    checked(unsafe { libbpf_sys::bpf_link_get_fd_by_id(id) }).map(own)
}

/// Replaces a program atomically: no packet passes both or neither. Fails if the old program is not attached any more.
pub(crate) fn replace(link: BorrowedFd<'_>, old: BorrowedFd<'_>, new: BorrowedFd<'_>) -> io::Result<()> {
    let options = libbpf_sys::bpf_link_update_opts {
        sz: size_of::<libbpf_sys::bpf_link_update_opts>() as libbpf_sys::size_t,
        flags: libbpf_sys::BPF_F_REPLACE,
        old_prog_fd: old.as_raw_fd().cast_unsigned(),
        ..Default::default()
    };
    // SAFETY: the options outlive the call; the other arguments are numbers.
    checked(unsafe { libbpf_sys::bpf_link_update(link.as_raw_fd(), new.as_raw_fd(), &raw const options) }).map(drop)
}

/// Detaches a link's program, although the link stays.
pub(crate) fn detach(link: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: the argument is a number.
    checked(unsafe { libbpf_sys::bpf_link_detach(link.as_raw_fd()) }).map(drop)
}

/// Returns the types of an object that is not loaded yet.
pub(crate) fn types_of(object: &OpenObject) -> libbpf_rs::Result<Option<Btf<'_>>> {
    // SAFETY: the object lives for as long as it is borrowed.
    Btf::from_bpf_object(unsafe { object.as_libbpf_object().as_ref() })
}

/// Converts the return value of a libbpf call.
fn checked(returned: c_int) -> io::Result<c_int> {
    if returned < 0 { Err(io::Error::from_raw_os_error(-returned)) } else { Ok(returned) }
}

fn own(descriptor: c_int) -> OwnedFd {
    // SAFETY: the kernel has just returned this descriptor, and nobody else has it.
    unsafe { OwnedFd::from_raw_fd(descriptor) }
}
