//! Packets as bytes: IP, TCP, UDP and ICMP headers, TCP options with this project's own, and checksums.
//!
//! [`Segment`] is the one representation of a TCP header: models carry it by value, [`tcp::View`] reads it from bytes and
//! [`tcp::header`] writes it. Bytes may come from anybody: whatever they are, parsers return a value or an [`Error`]. Nothing
//! here allocates, reads a clock or does input or output.
//!
//! Fixed IP and UDP headers are read and written by `etherparse`, a maintained library whose views borrow the bytes. TCP options
//! and IPv6 extension headers are read here: its options end at the first that it does not know, which Linux skips, and its
//! extensions (0.21) are read past their end if the last is cut off.
//!
//! | module | contents |
//! | --- | --- |
//! | `error` | what is wrong with bytes |
//! | `checksum` | RFC 1071 sums and RFC 1624 updates |
//! | `fields` | flags, sequence ranges, SACK blocks, timestamps |
//! | `list` | the list of TCP options, one by one |
//! | `siphash` | the keyed hash that authenticates reports |
//! | `report` | this project's TCP option: a sender's announcement and a PEP's reports |
//! | `segment` | [`Segment`] |
//! | `option` | a segment's options as bytes |
//! | `ip`, `tcp`, `udp`, `icmp` | one header each |
//! | `tcp_info` | the kernel's state of a TCP connection |
//! | `hash` | hashes that tell flows apart |
//! | `headers` | [`Headers`], all headers of a packet at once |

#![cfg_attr(not(test), no_std)]

pub mod checksum;
mod error;
mod fields;
pub mod hash;
mod headers;
pub mod icmp;
pub mod ip;
mod list;
mod option;
pub mod report;
mod segment;
mod siphash;
pub mod tcp;
pub mod tcp_info;
pub mod udp;

pub use error::Error;
pub use fields::{Block, Flags, Sack, Timestamps};
pub use headers::{Headers, Transport, datagram_headers, segment_headers};
pub use segment::{Options, Segment, SynOptions};
