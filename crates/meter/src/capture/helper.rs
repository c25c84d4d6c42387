//! The process that captures.

use std::borrow::Cow;
use std::io::{self, BufWriter, Write};
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use netio::rights::{self, CapabilitySet};
use netio::sniff::{self, Sniffer};
use netio::sys::{Caught, SNAP};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};
use pcap_file::pcapng::{PcapNgBlock, PcapNgWriter};
use pcap_file::{DataLink, Endianness, PcapError};

use super::Captured;

/// `if_tsresol` of nanoseconds: 10^-9.
const NANOSECONDS: u8 = 9;
/// Bytes of the file that wait to be written.
const BUFFER: usize = 64 << 10;
/// Pause after packets were taken: the ring has room for those that come meanwhile, and the processor for the measurement.
const PAUSE: Duration = Duration::from_millis(2);
/// How often buffered packets are written when few arrive.
const FLUSH: Duration = Duration::from_secs(1);
/// Packets that are taken before the end is looked for: a ring full of them.
const TURN: usize = 16_384;

/// Captures the packets of TCP connections with a server until the end of standard input, on an interface or, without one, on that of
/// the route. Writes pcapng to standard output, and what becomes of it to standard error. Call it in a process of its own, before it has
/// threads.
pub fn run_helper(server: SocketAddr, interface: Option<String>) {
    let line = match capture(server, interface) {
        Ok(captured) => format!("end {} {}", captured.packets, captured.dropped),
        Err(why) => format!("failed {why}"),
    };
    say(&line);
}

/// Nobody may listen any more.
fn say(line: &str) {
    let line: String = line.chars().filter(|c| !c.is_control()).collect();
    let _ = writeln!(io::stderr(), "{line}");
}

fn capture(server: SocketAddr, interface: Option<String>) -> Result<Captured, String> {
    let one_line = |error: netio::Error| error.to_string();
    rights::keep_only(CapabilitySet::NET_RAW).map_err(one_line)?;
    let interface = interface.map_or_else(|| sniff::interface_to(server), Ok).map_err(one_line)?;
    let mut sniffer = Sniffer::open(&interface, server).map_err(one_line)?;
    let end = io::stdin().as_fd().try_clone_to_owned().map_err(|why| why.to_string())?;
    let file = io::stdout().as_fd().try_clone_to_owned().map_err(|why| why.to_string())?;
    rights::confine(&[]).map_err(one_line)?;
    let cannot_write = |error| match error {
        PcapError::IoError(error) => format!("the capture cannot be written: {error}"),
        error => format!("the capture cannot be written: {error}"),
    };
    let mut writer = begin(file, &interface).map_err(cannot_write)?;
    say(&format!("ready {interface}"));
    let packets = write(&mut sniffer, &end, &mut writer).map_err(cannot_write)?;
    let dropped = sniffer.dropped().map_err(|why| format!("the kernel does not tell what it has dropped: {why}"))?;
    Ok(Captured { interface, packets, dropped: dropped.into() })
}

type Writer = PcapNgWriter<BufWriter<std::fs::File>>;

fn begin(file: OwnedFd, interface: &str) -> Result<Writer, PcapError> {
    let file = BufWriter::with_capacity(BUFFER, std::fs::File::from(file));
    let mut writer = PcapNgWriter::with_endianness(file, Endianness::Little)?;
    let options = vec![
        InterfaceDescriptionOption::IfName(Cow::Borrowed(interface)),
        InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
    ];
    let block = InterfaceDescriptionBlock { linktype: DataLink::RAW, snaplen: SNAP as u32, options };
    writer.write_block(&block.into_block())?;
    writer.get_mut().flush().map_err(PcapError::IoError)?;
    Ok(writer)
}

/// Writes packets until `end` ends. Returns their number.
fn write(sniffer: &mut Sniffer, end: &OwnedFd, writer: &mut Writer) -> Result<u64, PcapError> {
    let (mut packets, mut buffer, mut flushed) = (0, [0; SNAP], Instant::now());
    loop {
        let has_ended = wait(sniffer, end);
        // What came before the end is taken, too.
        for _ in 0..TURN {
            let Some(caught) = sniffer.take(&mut buffer) else { break };
            write_packet(writer, &caught, &buffer[..caught.kept])?;
            packets += 1;
        }
        if has_ended || flushed.elapsed() > FLUSH {
            writer.get_mut().flush().map_err(PcapError::IoError)?;
            flushed = Instant::now();
        }
        if has_ended {
            return Ok(packets);
        }
        std::thread::sleep(PAUSE);
    }
}

fn write_packet(writer: &mut Writer, caught: &Caught, bytes: &[u8]) -> Result<(), PcapError> {
    let direction = if caught.is_outgoing { 2 } else { 1 };
    let block = EnhancedPacketBlock {
        interface_id: 0,
        timestamp: caught.time,
        original_len: caught.len,
        data: Cow::Borrowed(bytes),
        options: vec![EnhancedPacketOption::Flags(direction)],
    };
    writer.write_block(&block.into_block()).map(drop)
}

/// Waits for packets. Returns whether the capture is to end.
fn wait(sniffer: &Sniffer, end: &OwnedFd) -> bool {
    let timeout = PollTimeout::try_from(FLUSH).unwrap_or(PollTimeout::MAX);
    let mut wanted = [PollFd::new(sniffer.as_fd(), PollFlags::POLLIN), PollFd::new(end.as_fd(), PollFlags::POLLIN)];
    let _ = poll(&mut wanted, timeout);
    wanted[1].revents().is_some_and(|found| !found.is_empty())
}
