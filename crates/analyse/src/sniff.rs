//! Tells what kind an input is by its content.

use std::io::{BufReader, Read as _};
use std::path::Path;

use import::packets::Reader;

use crate::collector::{Error, open};
use crate::{iperf3, text};

/// A kind of input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// pcap or pcapng.
    Capture,
    /// JSON of iperf3.
    Iperf3,
    /// A directory with results of ours.
    Results,
    /// Our table `tcp_info` alone.
    Recording,
    /// What `ss -ti` printed, again and again.
    SocketStatistics,
    /// A file of a test of MONROE's nettest.
    Monroe(MonroeFile),
    /// A directory with such files.
    MonroeFolder,
    /// Metadata of modems of a MONROE node.
    Metadata,
    /// JSON of ndt7.
    Ndt7,
}

/// A file of a test of MONROE's nettest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MonroeFile {
    /// The figures of the test.
    Summary,
    /// Bytes over time.
    Flows,
    /// The kernel's state over time.
    Stats,
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
/// The first bytes of compressed files that are not unpacked here, and what makes plain ones of them.
const COMPRESSED: [(&[u8], &str); 3] = [(GZIP, "gunzip"), (&[0x28, 0xb5, 0x2f, 0xfd], "unzstd"), (b"BZh", "bunzip2")];
const GZIP: &[u8] = &[0x1f, 0x8b];
/// The first bytes of Parquet.
const PARQUET: &[u8] = b"PAR1";
/// What is valid, for messages.
const EXPECTED: &str = "expected a capture (pcap, pcapng), results of iperf3 (--json), ndt7 or MONROE's nettest (JSON), metadata of a \
MONROE node, output of ss -ti, a table tcp_info.parquet, or a directory of results";

/// The kind of what is at `path`.
pub(crate) fn kind(path: &Path) -> Result<Kind, Error> {
    let invalid = |what: String| Error::Invalid(format!("{}: {what}", path.display()));
    if path.is_dir() {
        return directory(path);
    }
    let mut start = Vec::new();
    open(path)?.take(START).read_to_end(&mut start).map_err(Error::io(path))?;
    // Readers of captures unpack gzip.
    if start.starts_with(GZIP) && Reader::new(&start[..]).is_ok() {
        return Ok(Kind::Capture);
    }
    if !start.starts_with(&text::XZ) {
        return of(&start).map_err(invalid);
    }
    start.clear();
    let file = BufReader::new(open(path)?);
    text::unpacked(file).take(START).read_to_end(&mut start).map_err(text::failed(path))?;
    match of(&start).map_err(invalid)? {
        Kind::Capture | Kind::Recording => Err(invalid("compressed: run unxz first".to_owned())),
        kind => Ok(kind),
    }
}

fn directory(path: &Path) -> Result<Kind, Error> {
    if path.join("meta.json").exists() {
        return Ok(Kind::Results);
    }
    let files = path.read_dir().map_err(Error::io(path))?;
    let mut names = files.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    if names.any(|name| stem(&name).is_some()) {
        return Ok(Kind::MonroeFolder);
    }
    let what =
        "no directory of results (no meta.json), and none of MONROE's nettest (no *_flows.json or *_summary.json)";
    Err(Error::Invalid(format!("{}: {what}", path.display())))
}

/// Returns what the names of the files of one test begin with.
pub(crate) fn stem(name: &str) -> Option<&str> {
    let plain = name.strip_suffix(".xz").unwrap_or(name);
    ["_summary.json", "_flows.json", "_stats.json"].iter().find_map(|ending| plain.strip_suffix(ending))
}

fn of(start: &[u8]) -> Result<Kind, String> {
    if start.is_empty() {
        return Err("it is empty".to_owned());
    }
    if CAPTURES.iter().any(|magic| start.starts_with(magic)) {
        return Ok(Kind::Capture);
    }
    if start.starts_with(PARQUET) {
        return Ok(Kind::Recording);
    }
    if let Some((_, tool)) = COMPRESSED.iter().find(|(magic, _)| start.starts_with(magic)) {
        return Err(format!("compressed: run {tool} first"));
    }
    let has = |text: &str| start.windows(text.len()).any(|part| part == text.as_bytes());
    let is_json = matches!(start.trim_ascii_start().first(), Some(b'{' | b'['));
    if iperf3::is_one(start) {
        return Ok(Kind::Iperf3);
    }
    if has("MONROE.META.DEVICE.MODEM") || is_json && has("\"DeviceMode\"") && !has("\"res_id_test\"") {
        return Ok(Kind::Metadata);
    }
    if is_json && has("\"res_details\"") {
        return Ok(Kind::Monroe(MonroeFile::Flows));
    }
    if is_json && has("\"tcpi_") && has("\"flow_id\"") {
        return Ok(Kind::Monroe(MonroeFile::Stats));
    }
    if is_json && has("\"res_id_test\"") {
        return Ok(Kind::Monroe(MonroeFile::Summary));
    }
    let ndt7 = ["\"AppInfo\"", "\"TCPInfo\"", "\"ServerMeasurements\"", "\"ClientMeasurements\""];
    if is_json && ndt7.into_iter().any(has) {
        return Ok(Kind::Ndt7);
    }
    if !is_json && (has(" cwnd:") && has("rto:") || has("Recv-Q")) {
        return Ok(Kind::SocketStatistics);
    }
    if !is_json && has("[ ID] Interval") {
        return Err("the text that iperf3 prints: run it with --json (-J), or --json-stream".to_owned());
    }
    Err(format!("unknown format: {EXPECTED}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_tells_the_kind() {
        let cases: [(&str, Kind); 10] = [
            (r#"{"start": {"connected": []}}"#, Kind::Iperf3),
            (r#"{"res_id_test": "a", "res_details": {}}"#, Kind::Monroe(MonroeFile::Flows)),
            (r#"[{"flow_id": 0, "timestamp_ns": 1, "tcpi_rtt": 2}]"#, Kind::Monroe(MonroeFile::Stats)),
            (r#"{"Guid": "a", "res_id_test": "a"}"#, Kind::Monroe(MonroeFile::Summary)),
            (r#"{"DataId": "MONROE.META.DEVICE.MODEM", "RSRP": -96}"#, Kind::Metadata),
            (r#"MONROE.META.DEVICE.MODEM.89.UPDATE {"RSRP": -96}"#, Kind::Metadata),
            (r#"{"AppInfo": {"NumBytes": 1}}"#, Kind::Ndt7),
            (r#"{"Download": {"ServerMeasurements": []}}"#, Kind::Ndt7),
            ("State Recv-Q Send-Q Local Address:Port", Kind::SocketStatistics),
            ("PAR1", Kind::Recording),
        ];
        for (text, kind) in cases {
            assert_eq!(of(text.as_bytes()), Ok(kind), "{text}");
        }
        assert!(of(b"hello").is_err() && of(b"{}").is_err());
        let text = b"Connecting to host 192.0.2.1, port 5201\n[ ID] Interval           Transfer     Bitrate\n";
        assert!(of(text).unwrap_err().contains("--json"));
    }
}
