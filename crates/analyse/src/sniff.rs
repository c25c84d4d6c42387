//! Tells what kind a file is by its first bytes.

use std::io::Read as _;
use std::path::Path;

use crate::collector::{Error, open};
use crate::iperf3;

/// A kind of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// pcap or pcapng.
    Capture,
    /// JSON of iperf3.
    Iperf3,
}

/// Bytes that are looked at.
const START: u64 = 64 << 10;
/// The first bytes of pcap files of both byte orders and resolutions, of Kuznetsov's variant, and of pcapng.
const CAPTURES: [[u8; 4]; 6] = [
    [0xd4, 0xc3, 0xb2, 0xa1],
    [0xa1, 0xb2, 0xc3, 0xd4],
    [0x4d, 0x3c, 0xb2, 0xa1],
    [0xa1, 0xb2, 0x3c, 0x4d],
    [0x34, 0xcd, 0xb2, 0xa1],
    [0x0a, 0x0d, 0x0d, 0x0a],
];
/// The first bytes of compressed files, and what makes plain ones of them.
const COMPRESSED: [(&[u8], &str); 4] = [
    (&[0x1f, 0x8b], "gunzip"),
    (&[0xfd, b'7', b'z'], "unxz"),
    (&[0x28, 0xb5, 0x2f, 0xfd], "unzstd"),
    (b"BZh", "bunzip2"),
];

/// The kind of the file at `path`.
pub(crate) fn kind(path: &Path) -> Result<Kind, Error> {
    let mut start = Vec::new();
    open(path)?.take(START).read_to_end(&mut start).map_err(Error::io(path))?;
    of(&start).map_err(|what| Error::Invalid(format!("{}: {what}", path.display())))
}

fn of(start: &[u8]) -> Result<Kind, String> {
    if start.is_empty() {
        return Err("it is empty".to_owned());
    }
    if CAPTURES.iter().any(|magic| start.starts_with(magic)) {
        return Ok(Kind::Capture);
    }
    if let Some((_, tool)) = COMPRESSED.iter().find(|(magic, _)| start.starts_with(magic)) {
        return Err(format!("compressed: run {tool} first"));
    }
    if iperf3::is_one(start) {
        return Ok(Kind::Iperf3);
    }
    Err("unknown format: expected a capture (pcap, pcapng) or results of iperf3 (--json)".to_owned())
}
