//! The metadata broker of a MONROE node.
//!
//! Read first: ZMTP 3.0 (rfc.zeromq.org/spec/23), the README of MONROE-PROJECT/Experiments, and `metadata_writer_zeromq.c` in
//! MONROE-PROJECT/data-exporter. A message is one frame, `TOPIC JSON`. Unknown values are left out, 0, -1 or, of RSSI, -127. A
//! message after a change tells little more than that change; all values come every 30 s with the topic `UPDATE`. Its time is
//! that of the export.
//!
//! Only the reading half of ZMTP is here. A library would accept frames of any length that the broker names.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use rnis::event::Signal;
use rnis::identity::is_cell_identity;
use serde::Deserialize;
use units::{Span, Time};

use super::cell::{CellSample, MOST_SAMPLES, TURN, Technology, rssi};
use crate::line::Clock;

/// The broker as containers on a node see it.
pub const BROKER: &str = "172.17.0.1:5556";

/// The topic, before the identity of a SIM card and the kind of message.
const TOPIC: &str = "MONROE.META.DEVICE.MODEM";
/// Interval between messages with all values.
const UPDATES: Span = Span::from_secs(30);
/// Time after which a modem that tells nothing may be anywhere.
const FORGOTTEN: Span = Span::from_secs(60);
/// Time to connect, and for the handshake.
const CONNECT: Duration = Duration::from_secs(2);
/// The longest frame: that of the exporter has at most 8192 bytes.
const LONGEST: usize = 64 << 10;
/// The most modems of a node.
const MOST_MODEMS: usize = 16;

/// ZMTP's greeting: signature, version 3.0, mechanism NULL, no server.
fn greeting() -> [u8; 64] {
    let mut bytes = [0; 64];
    bytes[0] = 0xff;
    (bytes[8], bytes[9], bytes[10]) = (1, 0x7f, 3);
    bytes[12..16].copy_from_slice(b"NULL");
    bytes
}

/// The command READY of a subscriber, and then its subscription.
fn subscription() -> Vec<u8> {
    let mut ready = b"\x05READY\x0bSocket-Type\x00\x00\x00\x03SUB".to_vec();
    let mut bytes = vec![4, ready.len() as u8];
    bytes.append(&mut ready);
    bytes.extend([0, TOPIC.len() as u8 + 1, 1]);
    bytes.extend(TOPIC.as_bytes());
    bytes
}

/// Cuts a stream of ZMTP after the greeting into frames.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    buffer: Vec<u8>,
}

impl Frames {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Returns the next frame of a message; commands are left out.
    ///
    /// # Errors
    /// A frame is too long.
    pub(crate) fn next(&mut self) -> Result<Option<Vec<u8>>, String> {
        loop {
            let Some(&flags) = self.buffer.first() else { return Ok(None) };
            let is_long = flags & 2 != 0;
            let header = if is_long { 9 } else { 2 };
            if self.buffer.len() < header {
                return Ok(None);
            }
            let length = match is_long {
                true => u64::from_be_bytes(self.buffer[1..9].try_into().expect("eight bytes")),
                false => self.buffer[1].into(),
            };
            if flags & !7 != 0 || length > LONGEST as u64 {
                return Err("the broker sends what is no message of ZeroMQ".into());
            }
            let end = header + length as usize;
            if self.buffer.len() < end {
                return Ok(None);
            }
            let frame = self.buffer[header..end].to_vec();
            self.buffer.drain(..end);
            if flags & 4 == 0 {
                return Ok(Some(frame));
            }
        }
    }
}

/// What is read of a message. Identities are not.
#[derive(Clone, Debug, Default, Deserialize)]
struct Fields {
    #[serde(rename = "InternalInterface")]
    internal: Option<String>,
    #[serde(rename = "InterfaceName")]
    interface: Option<String>,
    #[serde(rename = "DeviceMode")]
    mode: Option<i64>,
    #[serde(rename = "CID")]
    cell: Option<i64>,
    #[serde(rename = "PCI")]
    pci: Option<i64>,
    #[serde(rename = "Band")]
    band: Option<i64>,
    #[serde(rename = "Frequency")]
    frequency: Option<f64>,
    #[serde(rename = "RSRP")]
    rsrp: Option<f64>,
    #[serde(rename = "RSRQ")]
    rsrq: Option<f64>,
    #[serde(rename = "RSSI")]
    rssi: Option<f64>,
}

/// What the modems of a node have told in messages with the topic `MONROE.META.DEVICE.MODEM`.
#[derive(Debug, Default)]
pub struct Modems {
    latest: BTreeMap<String, CellSample>,
}

impl Modems {
    /// Takes a message, and returns what is known of its modem then; `None` if it is about no modem.
    pub(crate) fn take(&mut self, message: &[u8], now: Time) -> Option<CellSample> {
        let text = std::str::from_utf8(message).ok()?;
        let (topic, json) = text.split_once(' ')?;
        if !topic.starts_with(TOPIC) { None } else { self.take_json(json, now) }
    }

    /// The same of a message without its topic, as archives of metadata have it. Times must not go back.
    pub fn take_json(&mut self, json: &str, now: Time) -> Option<CellSample> {
        let fields: Fields = serde_json::from_str(json).ok()?;
        let name = fields.internal.as_ref().or(fields.interface.as_ref())?;
        let modem: String = name.chars().filter(char::is_ascii_graphic).take(15).collect();
        let known = self.latest.remove(&modem).filter(|known| now.saturating_since(known.at) < FORGOTTEN);
        let mut sample = known.unwrap_or_else(|| CellSample { modem: modem.clone(), ..CellSample::default() });
        (sample.at, sample.source, sample.lag) = (now, "monroe", Some(UPDATES));
        fields.change(&mut sample);
        if self.latest.len() < MOST_MODEMS {
            self.latest.insert(modem, sample.clone());
        }
        Some(sample)
    }
}

impl Fields {
    fn change(&self, sample: &mut CellSample) {
        let small = |value: Option<i64>| value.filter(|&value| value > 0).and_then(|value| u32::try_from(value).ok());
        if let Some(mode) = self.mode {
            // In CONNECTIVITY, LTE is 6; here it is 5.
            let technology = match mode {
                3 => Some(Technology::Gsm),
                4 => Some(Technology::Umts),
                5 => Some(Technology::Lte),
                _ => None,
            };
            if technology != sample.technology {
                let CellSample { at, source, lag, .. } = *sample;
                let modem = std::mem::take(&mut sample.modem);
                *sample = CellSample { at, source, lag, modem, technology, ..CellSample::default() };
            }
        }
        if let Some(cell) = small(self.cell).filter(|&cell| is_cell_identity(cell.into())) {
            if sample.cell.is_some_and(|before| before != u64::from(cell)) {
                (sample.pci, sample.band, sample.frequency_mhz) = (None, None, None);
            }
            sample.cell = Some(cell.into());
        }
        let keep = |known: &mut Option<u32>, told: Option<u32>| *known = told.or(*known);
        keep(&mut sample.pci, small(self.pci));
        keep(&mut sample.band, small(self.band));
        let positive = self.frequency.filter(|mhz| (1.0..100_000.0).contains(mhz));
        sample.frequency_mhz = positive.or(sample.frequency_mhz);
        let told = Signal::of_modem(self.rsrp, self.rsrq, None);
        sample.rsrp_dbm = told.rsrp_dbm.or(sample.rsrp_dbm);
        sample.rsrq_db = told.rsrq_db.or(sample.rsrq_db);
        sample.rssi_dbm = self.rssi.filter(|&told| told != -1.0).and_then(rssi).or(sample.rssi_dbm);
    }
}

/// Follows the broker until `end`. Returns what is missing and why.
pub(super) fn follow(broker: SocketAddr, clock: Clock, end: &AtomicBool, samples: &mut Vec<CellSample>) -> Vec<String> {
    match read(broker, clock, end, samples) {
        Ok(()) if samples.is_empty() => {
            vec![format!("the MONROE broker at {broker} told nothing about a modem: it tells all every {UPDATES}")]
        }
        Ok(()) => Vec::new(),
        Err(why) => vec![format!("the MONROE broker at {broker}: {why}")],
    }
}

fn read(broker: SocketAddr, clock: Clock, end: &AtomicBool, samples: &mut Vec<CellSample>) -> Result<(), String> {
    let failed = |why: io::Error| why.to_string();
    let mut socket = TcpStream::connect_timeout(&broker, CONNECT).map_err(failed)?;
    socket.set_write_timeout(Some(CONNECT)).map_err(failed)?;
    socket.set_read_timeout(Some(TURN)).map_err(failed)?;
    socket.write_all(&greeting()).map_err(failed)?;
    let (mut frames, mut modems, mut head) = (Frames::default(), Modems::default(), Vec::new());
    let mut buffer = [0; 4096];
    while !end.load(Relaxed) {
        let length = match socket.read(&mut buffer) {
            Ok(0) => return Err("it has closed the connection".into()),
            Ok(length) => length,
            Err(error) if [io::ErrorKind::WouldBlock, io::ErrorKind::TimedOut].contains(&error.kind()) => continue,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(failed(error)),
        };
        let mut input = &buffer[..length];
        if head.len() < 64 {
            let taken = input.len().min(64 - head.len());
            head.extend_from_slice(&input[..taken]);
            input = &input[taken..];
            if head.first() != Some(&0xff) || (head.len() > 10 && head[10] < 3) {
                return Err("it does not speak ZeroMQ (ZMTP 3)".into());
            }
            if head.len() == 64 {
                socket.write_all(&subscription()).map_err(failed)?;
            }
        }
        frames.push(input);
        while let Some(frame) = frames.next()? {
            let sample = modems.take(&frame, clock.now());
            samples.extend(sample.filter(|_| samples.len() < MOST_SAMPLES));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use zeromq::{PubSocket, Socket, SocketSend};

    const UPDATE: &str = r#"MONROE.META.DEVICE.MODEM.89480610500302602379.UPDATE {"SequenceNumber":7,"Timestamp":1512345678.25,
        "DataVersion":3,"DataId":"MONROE.META.DEVICE.MODEM","CID":3262520,"DeviceMode":5,"DeviceSubmode":0,"DeviceState":3,
        "ICCID":"89480610500302602379","IMSI":"260060080260237","IMEI":"866948011255141","InterfaceName":"usb0",
        "InternalInterface":"op0","Operator":"Play","LAC":32,"RSRP":-96,"Frequency":1800,"RSRQ":-11,"Band":3,"PCI":13,
        "RSSI":-69,"NWMCCMNC":26006}"#;

    fn at(seconds: u64) -> Time {
        Time::ZERO + Span::from_secs(seconds)
    }

    #[test]
    fn an_update_tells_all_and_a_change_the_rest() {
        let mut modems = Modems::default();
        let whole = modems.take(UPDATE.as_bytes(), at(1)).expect("a modem");
        let expected = CellSample {
            at: at(1),
            source: "monroe",
            lag: Some(UPDATES),
            modem: "op0".into(),
            technology: Some(Technology::Lte),
            cell: Some(3_262_520),
            pci: Some(13),
            band: Some(3),
            frequency_mhz: Some(1800.0),
            rsrp_dbm: Some(-96.0),
            rsrq_db: Some(-11.0),
            rssi_dbm: Some(-69.0),
            ..CellSample::default()
        };
        assert_eq!(whole, expected);
        let mut tell = |json: &str, seconds| {
            let message = format!("{TOPIC}.8948.SIGNAL {json}");
            modems.take(message.as_bytes(), at(seconds))
        };
        let weaker =
            tell(r#"{"InternalInterface":"op0","RSRP":-101,"RSSI":-127,"RSRQ":0,"PCI":-1}"#, 2).expect("a modem");
        assert_eq!(weaker, CellSample { at: at(2), rsrp_dbm: Some(-101.0), ..expected.clone() });
        let moved = tell(r#"{"InternalInterface":"op0","CID":3262521,"PCI":14}"#, 3).expect("a modem");
        assert_eq!((moved.cell, moved.pci, moved.band), (Some(3_262_521), Some(14), None));
        // 6 is LTE elsewhere in MONROE's metadata, and nothing here; without service nothing is known.
        let gone = tell(r#"{"InternalInterface":"op0","DeviceMode":6}"#, 4).expect("a modem");
        assert_eq!((gone.technology, gone.cell, gone.rsrp_dbm), (None, None, None));
        assert_eq!(
            tell(r#"{"InternalInterface":"op0","RSRP":-80}"#, 200).map(|sample| sample.lag),
            Some(Some(UPDATES))
        );
        assert_eq!(tell(r#"{"RSRP":-80}"#, 200), None);
    }

    #[test]
    fn a_publisher_of_another_implementation_is_understood_and_no_identity_is_kept() {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("threads");
        let within = runtime.enter();
        let mut socket = PubSocket::new();
        drop(within);
        let endpoint = runtime.block_on(socket.bind("tcp://127.0.0.1:0")).expect("a port").to_string();
        let broker = endpoint.trim_start_matches("tcp://").parse().expect("an address");
        let end = AtomicBool::new(false);
        let mut samples = Vec::new();
        let missing = std::thread::scope(|scope| {
            let follower = scope.spawn(|| follow(broker, Clock::start(), &end, &mut samples));
            // A subscription takes a moment, and what is published before it is lost.
            for _ in 0..100 {
                let padded = format!("{UPDATE}{}", " ".repeat(300));
                for message in [padded.as_str(), "MONROE.META.DEVICE.GPS {\"Latitude\":59.4}"] {
                    runtime.block_on(socket.send(message.to_owned().into())).expect("it is sent");
                }
                std::thread::sleep(Duration::from_millis(10));
            }
            end.store(true, Relaxed);
            follower.join().expect("it ends")
        });
        assert_eq!(missing, Vec::<String>::new());
        assert!(samples.len() > 10, "{}", samples.len());
        assert!(samples.iter().all(|one| one.cell == Some(3_262_520) && one.modem == "op0"));
        let kept = format!("{samples:?}");
        for identity in ["89480610500302602379", "260060080260237", "866948011255141", "Play"] {
            assert!(!kept.contains(identity), "{kept}");
        }
    }

    #[test]
    fn a_broker_that_is_absent_or_speaks_something_else_is_a_reason() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("it is bound");
        let end = AtomicBool::new(false);
        let follow = |samples: &mut Vec<_>| super::follow(address, Clock::start(), &end, samples);
        let mut samples = Vec::new();
        let why = std::thread::scope(|scope| {
            scope.spawn(|| {
                listener.accept().map(|(mut socket, _)| socket.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n"))
            });
            follow(&mut samples)
        });
        assert_eq!(why, [format!("the MONROE broker at {address}: it does not speak ZeroMQ (ZMTP 3)")]);
        drop(listener);
        let why = follow(&mut samples);
        assert_eq!(why, [format!("the MONROE broker at {address}: Connection refused (os error 111)")]);
        assert!(samples.is_empty());
    }

    #[test]
    fn any_bytes_are_frames_or_an_error_and_any_message_is_a_sample_or_nothing() {
        bolero::check!().for_each(|bytes: &[u8]| {
            let (mut frames, mut modems) = (Frames::default(), Modems::default());
            for piece in bytes.chunks(7) {
                frames.push(piece);
                while let Ok(Some(frame)) = frames.next() {
                    assert!(frame.len() <= LONGEST);
                    modems.take(&frame, at(1));
                }
            }
            let message = [TOPIC.as_bytes(), b" ", bytes].concat();
            modems.take(&message, at(2));
        });
        // Numbers at the ends of their ranges.
        for number in ["1e400", "-9223372036854775808", "9223372036854775807", "null", "0", "-1", "4294967296"] {
            let json = format!(
                "{TOPIC} {{\"InterfaceName\":\"a\",\"CID\":{number},\"RSRP\":{number},\"Frequency\":{number}}}"
            );
            let sample = Modems::default().take(json.as_bytes(), at(1));
            assert!(sample.is_none_or(|one| one.cell.is_none() && one.rsrp_dbm.is_none()), "{number}");
        }
    }
}
