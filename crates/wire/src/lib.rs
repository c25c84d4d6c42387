//! TCP segments, their options and a PEP's reports, as they are on the wire.
//!
//! - `fields`: flags, sequence ranges, SACK blocks, timestamps.
//! - `siphash`: the keyed hash that authenticates reports.
//! - [`report`]: the TCP option of this project: a sender's announcement and a PEP's reports.
//! - `segment`: [`Segment`], the one representation of a TCP header.

mod fields;
pub mod report;
mod segment;
mod siphash;

pub use fields::{Block, Flags, Sack, Timestamps};
pub use segment::{Options, Segment, SynOptions};
