//! What runs in the kernel, and its loaders: the multi-domain congestion control ([`mdcc`]) as a `struct_ops` with what
//! reads the PEP's option, the PEP itself between two interfaces ([`pep`]), and what has packets take another way for as long
//! as somebody looks after them ([`divert`]).
//!
//! The programs are C, in `src/bpf`, compiled when this crate is built and bound to the running kernel when they are
//! loaded (CO-RE). `docs/src/pep-messages.md` is the contract between both.
// A loader reads files and talks to the kernel by its nature.
#![allow(clippy::disallowed_methods)]

mod bpffs;
pub mod divert;
mod error;
mod key;
mod loading;
pub mod mdcc;
pub mod pep;
mod sys;
mod turn;

pub use error::Error;
pub use key::Key;

/// What `build.rs` makes of the C sources.
#[allow(unsafe_code, missing_docs, unreachable_pub, clippy::all, clippy::pedantic)]
mod skeleton {
    pub(crate) mod divert {
        include!(concat!(env!("OUT_DIR"), "/divert.skel.rs"));
    }
    pub(crate) mod mdcc {
        include!(concat!(env!("OUT_DIR"), "/mdcc.skel.rs"));
    }
    pub(crate) mod pep {
        include!(concat!(env!("OUT_DIR"), "/pep.skel.rs"));
    }
}
