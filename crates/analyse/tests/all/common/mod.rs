//! Captures of known content.
#![allow(unreachable_pub, missing_docs)]

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;

use analyse::{Analysis, Error, Options, Rules};
use wire::{Block, Flags, Options as TcpOptions, Sack, Segment, SynOptions, Timestamps, segment_headers};

pub const SYN: u8 = 0x02;
pub const ACK: u8 = 0x10;
pub const FIN: u8 = 0x01;

/// A packet: `data` goes from the client to the server.
#[derive(Clone, Debug, Default)]
pub struct Packet {
    pub at_us: u64,
    pub back: bool,
    pub seq: u32,
    pub ack: u32,
    pub len: u16,
    pub flags: u8,
    pub window: u16,
    pub stamps: Option<(u32, u32)>,
    pub sack: Vec<(u32, u32)>,
}

/// What came of an analysis, if not an error, whose text must be one line.
pub fn or_one_line(outcome: Result<Analysis, Error>) -> Option<Analysis> {
    let text = match outcome {
        Ok(analysis) => return Some(analysis),
        Err(error) => error.to_string(),
    };
    assert!(!text.is_empty() && !text.contains('\n'), "{text}");
    None
}

pub fn ends() -> (SocketAddr, SocketAddr) {
    ("10.0.0.1:40000".parse().unwrap(), "10.0.0.2:80".parse().unwrap())
}

impl Packet {
    /// The IP packet, with its payload of zeros.
    pub fn bytes(&self) -> Vec<u8> {
        let (client, server) = ends();
        let (from, to) = if self.back { (server, client) } else { (client, server) };
        let mut sack = Sack::NONE;
        self.sack.iter().for_each(|&(start, end)| sack.push(Block { start, end }));
        let options = if self.flags & SYN != 0 {
            TcpOptions::Syn(SynOptions { mss: 1_460, window_scale: Some(7), sack_permitted: true, reports: false })
        } else {
            TcpOptions::Sack(sack)
        };
        let segment = Segment {
            seq: self.seq,
            ack: self.ack,
            window: self.window,
            len: self.len,
            flags: Flags(self.flags),
            timestamps: self.stamps.map(|(value, echo)| Timestamps { value, echo }),
            options,
        };
        let mut bytes = segment_headers(&segment, from, to, 0, &[]).unwrap().to_vec();
        bytes.resize(bytes.len() + usize::from(self.len), 0);
        bytes
    }
}

/// A conversation, one packet after another. The client's first data has the sequence number `base + 1`.
#[derive(Clone, Debug)]
pub struct Script {
    pub packets: Vec<Packet>,
    pub base: u32,
    pub stamped: bool,
}

/// The server's initial sequence number.
pub const SERVER: u32 = 7_000_000;
/// Bytes of a full segment.
pub const MSS: u16 = 1_000;

impl Script {
    /// A handshake of `rtt_us`, seen at the client, of a connection whose client begins at `base`.
    pub fn new(base: u32, rtt_us: u64, stamped: bool) -> Script {
        let mut script = Script { packets: Vec::new(), base, stamped };
        script.push(Packet { flags: SYN, seq: base, window: 64_000, ..Packet::default() });
        let ack = base.wrapping_add(1);
        let back = true;
        let flags = SYN | ACK;
        script.push(Packet { at_us: rtt_us, back, flags, seq: SERVER, ack, window: 64_000, ..Packet::default() });
        let (seq, ack) = (ack, SERVER + 1);
        script.push(Packet { at_us: rtt_us + 50, flags: ACK, seq, ack, window: 500, ..Packet::default() });
        script
    }

    fn push(&mut self, mut packet: Packet) {
        if self.stamped && packet.stamps.is_none() {
            let value = (packet.at_us / 1_000) as u32 + if packet.back { 900_000 } else { 100_000 };
            let echo = self.packets.iter().rev().find(|other| other.back != packet.back).and_then(|other| other.stamps);
            packet.stamps = Some((value, echo.map_or(0, |stamps| stamps.0)));
        }
        self.packets.push(packet);
    }

    /// Segment `n` of the client's data.
    pub fn data(&mut self, at_us: u64, n: u32) -> &mut Packet {
        let seq = self.base.wrapping_add(1).wrapping_add(n * u32::from(MSS));
        self.push(Packet { at_us, seq, ack: SERVER + 1, len: MSS, flags: ACK, window: 500, ..Packet::default() });
        self.packets.last_mut().unwrap()
    }

    /// An acknowledgement up to segment `n`, with SACK blocks of segments.
    pub fn ack(&mut self, at_us: u64, n: u32, sacked: &[(u32, u32)]) -> &mut Packet {
        let number = |n: u32| self.base.wrapping_add(1).wrapping_add(n * u32::from(MSS));
        let sack = sacked.iter().map(|&(start, end)| (number(start), number(end))).collect();
        let (ack, seq, back) = (number(n), SERVER + 1, true);
        self.push(Packet { at_us, back, seq, ack, flags: ACK, window: 500, sack, ..Packet::default() });
        self.packets.last_mut().unwrap()
    }

    /// The capture in a file.
    pub fn write(&self, path: &Path) -> PathBuf {
        std::fs::write(path, pcap(101, self.packets.iter().map(|packet| (packet.at_us * 1_000, packet.bytes()))))
            .unwrap();
        path.to_owned()
    }
}

/// A pcap file with times in nanoseconds.
pub fn pcap(link: u32, packets: impl IntoIterator<Item = (u64, Vec<u8>)>) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_3c4d, 2 | 4 << 16, 0, 0, 262_144, link] {
        file.extend(u32::to_le_bytes(word));
    }
    for (at, packet) in packets {
        // Not at the epoch, which some readers take for no time.
        let at = at + 1_000_000_000_000_000_000;
        for word in [(at / 1_000_000_000) as u32, (at % 1_000_000_000) as u32, packet.len() as u32, packet.len() as u32]
        {
            file.extend(word.to_le_bytes());
        }
        file.extend(packet);
    }
    file
}

pub fn analysed(files: &[PathBuf], rules: Rules) -> Result<Analysis, Error> {
    let stop = AtomicBool::new(false);
    analyse::analyse(files, &Options { rules, flows: &[], ends: None, interval: None, progress: &|_| {}, stop: &stop })
}

/// What a script comes to, as its first flow's row of `tcp_flows` and `flows`.
pub fn of(script: &Script) -> Analysis {
    let dir = tempfile::tempdir().unwrap();
    let file = script.write(&dir.path().join("capture.pcap"));
    analysed(&[file], Rules::Ranway).unwrap()
}

/// Fields of all packets as tshark sees them; `None` without tshark.
pub fn tshark(file: &Path, fields: &[&str]) -> Option<Vec<Vec<String>>> {
    let mut command = Command::new("tshark");
    command.args(["-n", "-r"]).arg(file).args(["-T", "fields", "-E", "separator=|"]);
    fields.iter().for_each(|field| {
        command.args(["-e", field]);
    });
    let output = command.output().ok();
    testkit::root::has_program(output.is_some(), "tshark");
    let output = output?;
    let text = String::from_utf8(output.stdout).unwrap();
    Some(text.lines().map(|line| line.split('|').map(str::to_owned).collect()).collect())
}

/// A folder for thousands of files that are written and removed: in memory, where there is a place for that.
pub fn quick_folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}
