//! The stories of endpoints, in one program: it is compiled and linked once for all of them.

#![allow(missing_docs, reason = "a test binary")]

#[path = "../pipe/mod.rs"]
mod pipe;
mod receiving;
mod reports;
mod scripted;
mod sending;
mod traces;
