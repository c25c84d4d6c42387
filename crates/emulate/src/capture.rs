//! Writes real packets to pcapng files, which Wireshark and tshark open.
//!
//! Source: draft-ietf-opsawg-pcapng (sections 4.1 to 4.3). One interface per host, with the host's name; whole IP packets,
//! nanosecond timestamps that are real dates, and each packet's direction as its host sees it.
//!
//! The thread that moves packets must not wait for a disk. It copies packets into chunks, which another thread writes and
//! returns. The number of chunks is limited; packets that find none free are left out and counted.

use std::borrow::Cow;
use std::io;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};
use pcap_file::pcapng::{PcapNgBlock, PcapNgWriter};
use pcap_file::{DataLink, Endianness, PcapError};
use record::OutputFile;
use units::{Span, Time};

use crate::Error;
use netio::rights;

/// The length that Wireshark takes for no limit.
const SNAPLEN: u32 = 262_144;
/// `if_tsresol` of nanoseconds: 10^-9.
const NANOSECONDS: u8 = 9;
/// Bytes of a chunk, and most chunks: half a second at 1 Gbit/s.
const CHUNK: usize = 1 << 18;
const MOST_CHUNKS: usize = 256;
/// A chunk is written once a packet is this much younger than its first, even if the chunk is not full.
const AGE: Span = Span::from_millis(100);

/// Which way a packet goes, as its host sees it (`epb_flags`, bits 0 and 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To the host.
    Inbound = 1,
    /// From the host.
    Outbound = 2,
}

/// A capture that is being written. Call [`RawCapture::finish`] at the end.
pub struct RawCapture {
    filling: Chunk,
    /// Number of chunks made; they are here, at the writer, or in `empty`.
    chunks: usize,
    empty: Receiver<Chunk>,
    full: Sender<Chunk>,
    writer: JoinHandle<Result<(), record::Error>>,
    dropped: u64,
    /// Why it ended early, if it did.
    failure: Arc<OnceLock<String>>,
}

/// Packets one after the other.
#[derive(Default)]
struct Chunk {
    bytes: Vec<u8>,
    packets: Vec<Packet>,
}

struct Packet {
    interface: u32,
    direction: Direction,
    time: Time,
    len: u32,
}

impl RawCapture {
    /// Starts a capture of the `interfaces`, by their names; `began` is the date of [`Time::ZERO`].
    ///
    /// Call it before the thread becomes a real-time one: the thread that writes inherits that.
    ///
    /// # Errors
    /// [`Error::Record`] if the file cannot be written, [`Error::System`] if there can be no thread.
    pub fn new(file: OutputFile, interfaces: &[&str], began: SystemTime) -> Result<RawCapture, Error> {
        let path = file.path().to_owned();
        let fail = |error| cannot_write(&path, error);
        let mut writer = PcapNgWriter::with_endianness(file, Endianness::Little).map_err(fail)?;
        for name in interfaces {
            let options = vec![
                InterfaceDescriptionOption::IfName(Cow::Borrowed(*name)),
                InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
            ];
            let interface = InterfaceDescriptionBlock { linktype: DataLink::RAW, snaplen: SNAPLEN, options };
            writer.write_block(&interface.into_block()).map_err(fail)?;
        }
        let began = began.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
        let ((full, to_write), (written, empty)) = (channel(), channel());
        let failure = Arc::new(OnceLock::new());
        let failed = Arc::clone(&failure);
        let writer = std::thread::Builder::new()
            .name("capture".to_owned())
            .spawn(move || write_all(writer, began, &to_write, &written, &failed))
            .map_err(Error::system("start a thread that writes a capture"))?;
        Ok(RawCapture { filling: Chunk::new(), chunks: 1, empty, full, writer, dropped: 0, failure })
    }

    /// Captures a packet at the interface with this number (in the order of [`RawCapture::new`]). Never blocks: the packet is
    /// left out if the disk is too slow.
    pub fn packet(&mut self, interface: u32, direction: Direction, time: Time, bytes: &[u8]) {
        if !self.filling.takes(bytes.len(), time) && !self.hand_over() {
            self.dropped += 1;
            return;
        }
        self.filling.bytes.extend_from_slice(bytes);
        self.filling.packets.push(Packet { interface, direction, time, len: bytes.len() as u32 });
    }

    /// Returns why nothing is written any more, if so: the disk is full, or nearly.
    pub fn failure(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }

    /// Writes what is left and flushes the capture to the disk. Returns the number of packets left out.
    ///
    /// # Errors
    /// [`Error::Record`] if anything could not be written.
    pub fn finish(self) -> Result<u64, Error> {
        let RawCapture { filling, full, writer, mut dropped, .. } = self;
        let rest = filling.packets.len() as u64;
        dropped += full.send(filling).map_or(rest, |()| 0);
        drop(full);
        match writer.join() {
            Ok(written) => written?,
            Err(panic) => std::panic::resume_unwind(panic),
        }
        Ok(dropped)
    }

    /// Passes the filled chunk to the writer and takes an empty one, if there is one.
    fn hand_over(&mut self) -> bool {
        let empty = match self.empty.try_recv() {
            Ok(chunk) => chunk,
            Err(_) if self.chunks < MOST_CHUNKS => {
                self.chunks += 1;
                Chunk::new()
            }
            Err(_) => return false,
        };
        // The writer takes chunks until there will be no more.
        let _ = self.full.send(std::mem::replace(&mut self.filling, empty));
        true
    }
}

impl Chunk {
    fn new() -> Chunk {
        Chunk { bytes: Vec::with_capacity(CHUNK), packets: Vec::new() }
    }

    /// Whether a packet may be added: it finds room, or nothing else has.
    fn takes(&self, len: usize, time: Time) -> bool {
        self.packets
            .first()
            .is_none_or(|first| self.bytes.len() + len <= CHUNK && time.saturating_since(first.time) < AGE)
    }
}

/// Writes chunks and returns them, until there will be no more. After a failure it only returns them.
fn write_all(
    mut writer: PcapNgWriter<OutputFile>,
    began: Duration,
    chunks: &Receiver<Chunk>,
    written: &Sender<Chunk>,
    failure: &OnceLock<String>,
) -> Result<(), record::Error> {
    let mut outcome = Ok(());
    // What it writes was sent by others. Without that it still can do no more than before.
    let _ = rights::give_up();
    for mut chunk in chunks {
        if outcome.is_ok() {
            outcome = if writer.get_ref().is_short_of_space() {
                Err(PcapError::IoError(io::ErrorKind::StorageFull.into()))
            } else {
                write(&mut writer, began, &chunk)
            };
            if outcome.is_err() {
                let path = writer.get_ref().path().display();
                let _ = failure.set(format!("the capture {path} has ended early: the disk is full, or nearly"));
            }
        }
        chunk.bytes.clear();
        chunk.packets.clear();
        // Nobody wants it any more after the last.
        let _ = written.send(chunk);
    }
    outcome.map_err(|error| cannot_write(writer.get_ref().path(), error))?;
    writer.into_inner().finish()
}

fn write(writer: &mut PcapNgWriter<OutputFile>, began: Duration, chunk: &Chunk) -> Result<(), PcapError> {
    let mut rest = chunk.bytes.as_slice();
    for packet in &chunk.packets {
        let data;
        (data, rest) = rest.split_at(packet.len as usize);
        let block = EnhancedPacketBlock {
            interface_id: packet.interface,
            timestamp: began + Duration::from_nanos(packet.time.as_nanos()),
            original_len: packet.len,
            data: Cow::Borrowed(data),
            options: vec![EnhancedPacketOption::Flags(packet.direction as u32)],
        };
        writer.write_block(&block.into_block())?;
    }
    Ok(())
}

fn cannot_write(path: &Path, error: PcapError) -> record::Error {
    let source = match error {
        PcapError::IoError(error) => error,
        error => io::Error::other(error),
    };
    record::Error::Io { doing: "write", path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_hangs_costs_packets_and_no_time() {
        let ((full, to_write), (written, empty)) = (channel::<Chunk>(), channel());
        let writer = std::thread::spawn(move || {
            // Hangs until the capture ends.
            let kept: Vec<Chunk> = to_write.into_iter().collect();
            drop(written);
            assert_eq!(kept.iter().map(|chunk| chunk.packets.len()).sum::<usize>(), MOST_CHUNKS * 174);
            Ok(())
        });
        let failure = Arc::default();
        let mut capture = RawCapture { filling: Chunk::new(), chunks: 1, empty, full, writer, dropped: 0, failure };
        let fit = MOST_CHUNKS as u64 * (CHUNK / 1_500) as u64;
        for _ in 0..fit + 1_000 {
            capture.packet(0, Direction::Inbound, Time::ZERO, &[0; 1_500]);
        }
        assert_eq!(capture.finish().unwrap(), 1_000);
    }
}
