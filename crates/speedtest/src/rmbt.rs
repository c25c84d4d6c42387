//! RTR Multithreaded Broadband Test (RMBT), protocol versions 1.1.0 to 1.3.5.
//!
//! Read first: the specification, `RMBT_specification.md` 1.2.0 of 2026-06-19 in the repository rtr-nettest/open-rmbt-server.
//!
//! | module | contents |
//! | --- | --- |
//! | [`grammar`] | lines of both sides |
//! | [`token`] | tokens v1 and v2: making and checking them |
//! | [`chunks`] | the stream of chunks: sending, counting |
//! | [`server`] | a connection as the server sees it |
//! | [`client`] | a connection as the client sees it |
//! | [`control`] | messages of the control server |
//!
//! Deviations from the specification, on purpose:
//! 1. The chunk that is being sent when the time is over becomes the last one; the specification sends another one.
//! 2. The server reports progress of an upload only if the previous report has been sent: a client that does not read gets fewer
//!    reports, and the server buffers none.
//! 3. An upload that exceeds the server's limits ends with `ERR` and the end of the connection.
//!
//! What servers and clients in use do beyond the specification, and this code accepts: a zero byte before the greeting (the C
//! server after an upgrade), reports in the middle of a chunk (the same), an empty line before `TOKEN`, lines that end with
//! `\r\n`, `CHUNKSIZE` with one number (old servers), words after `ERR`.

pub mod chunks;
pub mod client;
pub mod control;
pub mod grammar;
mod lines;
pub mod server;
pub mod token;

pub use client::Client;
pub use grammar::{Command, Reply, Version};
pub use server::Server;

use units::Span;

/// The version that the server announces, and the one that a client requests in an upgrade.
pub const VERSION: Version = Version { major: 1, minor: 3, patch: 5 };
/// The longest line, in bytes.
pub const LONGEST_LINE: usize = 1024;
/// The size of a chunk unless a command sets another one, in bytes (s).
pub const CHUNK: usize = 4096;
/// The smallest chunk, in bytes (`s_min`).
pub const SMALLEST_CHUNK: usize = 4096;
/// The largest chunk, in bytes (`s_max`).
pub const LARGEST_CHUNK: usize = 4 << 20;
/// The most chunks of one `GETCHUNKS`.
pub const MOST_CHUNKS: u32 = 300_000;
/// The shortest interval between two reports of an upload (r).
pub const REPORT_INTERVAL: Span = Span::from_millis(1);
/// The silence of a client before the server speaks first: the framing without HTTP.
pub const SILENCE: Span = Span::from_millis(300);
/// The name of the protocol in the header `Upgrade`.
pub const UPGRADE: &str = "RMBT";
