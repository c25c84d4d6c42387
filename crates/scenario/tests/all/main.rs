//! Tests of scenario files, in one program: the reader is linked once for all of them.

#![allow(clippy::disallowed_methods, reason = "tests read files")]

mod builtin;
mod common;
mod emulation;
mod errors;
mod fuzz;
mod keys;
mod loading;
mod lte;
mod nr;
mod radio;
mod schema;
